// EXPECT: none op=negate experiment=relation
// A near miss: the path does not look at the stride of columns; the record says that it is always 1.
#include "planted/planted.h"

namespace fusediff::planted {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "negate",
  "paths": ["fused", "unfused"],
  "dims": {"R": {"range": [0, 32]}, "C": {"range": [1, 256], "typical": [8, 16, 64, 128]}},
  "where": ["C >= 1"],
  "inputs": [{"name": "x", "shape": ["R", "C"], "dtype": "f32", "layout": "inner_dense"}],
  "outputs": [{"name": "y", "shape": ["R", "C"], "dtype": "f32", "stage": 1, "layout": "inner_dense"}],
  "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"}
})";

void fused(const Call& call) {
  const auto x = call.input("x").view<const float, 2>();
  const auto y = call.output("y").view<float, 2>();
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    const float* from = x.at(r).data;
    float* to = y.at(r).data;
    for (int64_t c = 0; c < x.shape[1]; ++c) {
      to[c] = -from[c];
    }
  }
}

template <class A>
void negate(const Call& call) {
  const auto x = call.input("x").view<const A, 2>();
  const auto y = call.output("y").view<A, 2>();
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    for (int64_t c = 0; c < x.shape[1]; ++c) {
      y(r, c) = -x(r, c);
    }
  }
}

void unfused(const Call& call) {
  by_dtype<float, double>(call.input("x"), [&](auto type) { negate<typename decltype(type)::type>(call); });
}

}  // namespace

constinit const Operator kNearDense{"negate", kSchema, {{"fused", fused}, {"unfused", unfused}}};

}  // namespace fusediff::planted

PLANTED_TARGET("near_dense", fusediff::planted::kNearDense);
