// EXPECT: none op=row_sum experiment=pair
// A near miss: widths that are no multiple of 64 are summed in another order than the rest, as the record allows.
#include "builtin/lanes.h"
#include "planted/planted.h"

namespace fusediff::planted {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "row_sum",
  "paths": ["fused", "unfused"],
  "dims": {"R": {"range": [0, 32]}, "C": {"range": [1, 512], "typical": [8, 16, 64, 128]}},
  "where": ["C >= 1", "C <= 512"],
  "inputs": [{"name": "x", "shape": ["R", "C"], "dtype": "f32", "role": "scale", "layout": "any"}],
  "outputs": [
    {"name": "y", "shape": ["R"], "dtype": "f32", "stage": 1, "layout": "any",
     "agree": {"ulp": 1024, "why": "terms are positive: a sum of C in any order is within (1 + u)^(C - 1) of the exact one, C ULP; two of them, C <= 512. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 4.2"},
     "bound": {"ulp": "C", "of": "element", "why": "one of these two"}}],
  "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"}
})";

template <class A>
void sum_in_order(const Call& call) {
  const auto x = call.input("x").view<const A, 2>();
  const auto y = call.output("y").view<A, 1>();
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    A sum = 0;
    for (int64_t c = 0; c < x.shape[1]; ++c) {
      sum += x(r, c);
    }
    y(r) = sum;
  }
}

void unfused(const Call& call) {
  by_dtype<float, double>(call.input("x"), [&](auto type) { sum_in_order<typename decltype(type)::type>(call); });
}

void fused(const Call& call) {
  const auto x = call.input("x").view<const float, 2>();
  const auto y = call.output("y").view<float, 1>();
  if (x.shape[1] % 64 == 0) {
    return sum_in_order<float>(call);
  }
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    y(r) = builtin::lane_sum<float>(x.shape[1], [&](int64_t c) { return x(r, c); });
  }
}

}  // namespace

constinit const Operator kNearWidths{"row_sum", kSchema, {{"fused", fused}, {"unfused", unfused}}};

}  // namespace fusediff::planted

PLANTED_TARGET("near_widths", fusediff::planted::kNearWidths);
