// EXPECT: none op=centre experiment=relation
// A near miss: each row depends on the others, because the mean over the batch is taken away; the record claims no
// independent rows.
#include <vector>

#include "planted/planted.h"

namespace fusediff::planted {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "centre",
  "paths": ["fused", "unfused"],
  "dims": {"R": {"range": [0, 32]}, "C": {"range": [1, 256], "typical": [8, 16, 64, 128]}},
  "where": ["C >= 1"],
  "inputs": [{"name": "x", "shape": ["R", "C"], "dtype": "f32", "layout": "any"}],
  "outputs": [{"name": "y", "shape": ["R", "C"], "dtype": "f32", "stage": 1, "layout": "any"}]
})";

// Means of all columns first.
void fused(const Call& call) {
  const auto x = call.input("x").view<const float, 2>();
  const auto y = call.output("y").view<float, 2>();
  std::vector<float> sums(static_cast<size_t>(x.shape[1]));
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    for (int64_t c = 0; c < x.shape[1]; ++c) {
      sums[static_cast<size_t>(c)] += x(r, c);
    }
  }
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    for (int64_t c = 0; c < x.shape[1]; ++c) {
      y(r, c) = x(r, c) - sums[static_cast<size_t>(c)] / static_cast<float>(x.shape[0]);
    }
  }
}

template <class A>
void centre(const Call& call) {
  const auto x = call.input("x").view<const A, 2>();
  const auto y = call.output("y").view<A, 2>();
  for (int64_t c = 0; c < x.shape[1]; ++c) {
    A sum = 0;
    for (int64_t r = 0; r < x.shape[0]; ++r) {
      sum += x(r, c);
    }
    for (int64_t r = 0; r < x.shape[0]; ++r) {
      y(r, c) = x(r, c) - sum / static_cast<A>(x.shape[0]);
    }
  }
}

void unfused(const Call& call) {
  by_dtype<float, double>(call.input("x"), [&](auto type) { centre<typename decltype(type)::type>(call); });
}

}  // namespace

constinit const Operator kNearBatch{"centre", kSchema, {{"fused", fused}, {"unfused", unfused}}};

}  // namespace fusediff::planted

PLANTED_TARGET("near_batch", fusediff::planted::kNearBatch);
