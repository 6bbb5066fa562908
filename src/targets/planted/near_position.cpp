// EXPECT: none op=add_position experiment=relation
// A near miss: one value in every position of a row gives another result in each, because a code of the position is
// added.
#include "planted/planted.h"

namespace fusediff::planted {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "add_position",
  "paths": ["fused", "unfused"],
  "dims": {"R": {"range": [0, 32]}, "C": {"range": [1, 256], "typical": [8, 16, 64, 128]}},
  "where": ["C >= 1"],
  "inputs": [{"name": "x", "shape": ["R", "C"], "dtype": "f32", "layout": "any"}],
  "outputs": [{"name": "y", "shape": ["R", "C"], "dtype": "f32", "stage": 1, "layout": "any"}],
  "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"},
  "inplace": [["y", "x"]]
})";

// From the last column to the first.
void fused(const Call& call) {
  const auto x = call.input("x").view<const float, 2>();
  const auto y = call.output("y").view<float, 2>();
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    for (int64_t c = x.shape[1] - 1; c >= 0; --c) {
      y(r, c) = x(r, c) + static_cast<float>(c) * 0.125f;
    }
  }
}

template <class A>
void add(const Call& call) {
  const auto x = call.input("x").view<const A, 2>();
  const auto y = call.output("y").view<A, 2>();
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    for (int64_t c = 0; c < x.shape[1]; ++c) {
      y(r, c) = x(r, c) + static_cast<A>(c) / 8;
    }
  }
}

void unfused(const Call& call) {
  by_dtype<float, double>(call.input("x"), [&](auto type) { add<typename decltype(type)::type>(call); });
}

}  // namespace

constinit const Operator kNearPosition{"add_position", kSchema, {{"fused", fused}, {"unfused", unfused}}};

}  // namespace fusediff::planted

PLANTED_TARGET("near_position", fusediff::planted::kNearPosition);
