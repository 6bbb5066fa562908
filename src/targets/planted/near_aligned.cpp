// EXPECT: none op=row_sum experiment=relation
// A near miss: where x is not aligned to 16 bytes the path sums in another order; the record asks for that alignment.
#include "builtin/lanes.h"
#include "planted/planted.h"

namespace fusediff::planted {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "row_sum",
  "paths": ["fused", "unfused"],
  "dims": {"R": {"range": [0, 32]}, "C": {"range": [1, 512], "typical": [8, 16, 64, 128]}},
  "where": ["C >= 1"],
  "inputs": [{"name": "x", "shape": ["R", "C"], "dtype": "f32", "layout": "dense", "align": 16}],
  "outputs": [{"name": "y", "shape": ["R"], "dtype": "f32", "stage": 1, "layout": "any"}]
})";

constexpr uintptr_t kAligned = 16;

template <class A>
void sum_by_lanes(const Call& call) {
  const auto x = call.input("x").view<const A, 2>();
  const auto y = call.output("y").view<A, 1>();
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    y(r) = builtin::lane_sum<A>(x.shape[1], [&](int64_t c) { return x(r, c); });
  }
}

void fused(const Call& call) {
  const auto x = call.input("x").view<const float, 2>();
  const auto y = call.output("y").view<float, 1>();
  if (reinterpret_cast<uintptr_t>(x.data) % kAligned == 0) {
    return sum_by_lanes<float>(call);
  }
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    y(r) = 0;
    for (int64_t c = 0; c < x.shape[1]; ++c) {
      y(r) += x(r, c);
    }
  }
}

void unfused(const Call& call) {
  by_dtype<float, double>(call.input("x"), [&](auto type) { sum_by_lanes<typename decltype(type)::type>(call); });
}

}  // namespace

constinit const Operator kNearAligned{"row_sum", kSchema, {{"fused", fused}, {"unfused", unfused}}};

}  // namespace fusediff::planted

PLANTED_TARGET("near_aligned", fusediff::planted::kNearAligned);
