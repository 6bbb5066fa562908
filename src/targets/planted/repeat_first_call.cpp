// EXPECT: class=contamination op=row_sum experiment=repeat output=y
// The first call on a context tries its kernels to find the fastest, and its result is that of the one tried last,
// which sums in another order: every later call on the context gives other bits.
#include <atomic>

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
  "inputs": [{"name": "x", "shape": ["R", "C"], "dtype": "f32", "layout": "any"}],
  "outputs": [
    {"name": "y", "shape": ["R"], "dtype": "f32", "stage": 1, "layout": "any",
     "bound": {"ulp": "2 * C", "of": "abs_inputs",
               "why": "S is the sum of absolute terms: C - 1 additions, each by half a unit of a sum below 2 S. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 4.2"}}],
  "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"}
})";

struct Tuning {
  std::atomic<bool> done{false};
};

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

void sum_by_lanes(const Call& call) {
  const auto x = call.input("x").view<const float, 2>();
  const auto y = call.output("y").view<float, 1>();
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    y(r) = builtin::lane_sum<float>(x.shape[1], [&](int64_t c) { return x(r, c); });
  }
}

void fused(const Call& call) {
  if (kFaulty && call.context<Tuning>().done.exchange(true)) {
    return sum_by_lanes(call);
  }
  sum_in_order<float>(call);
}

void unfused(const Call& call) {
  by_dtype<float, double>(call.input("x"), [&](auto type) { sum_in_order<typename decltype(type)::type>(call); });
}

}  // namespace

constinit const Operator kRepeatFirstCall{"row_sum", kSchema, {{"fused", fused}, {"unfused", unfused}}};

}  // namespace fusediff::planted

PLANTED_TARGET_WITH_CONTEXT(fusediff::planted::Tuning, "repeat_first_call", fusediff::planted::kRepeatFirstCall);
