// EXPECT: none op=row_sum experiment=repeat
// A near miss: the first call on a context tries two kernels and keeps one; they differ in speed alone.
#include <atomic>
#include <vector>

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
  "outputs": [{"name": "y", "shape": ["R"], "dtype": "f32", "stage": 1, "layout": "any"}],
  "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"}
})";

struct Tuning {
  std::atomic<bool> done{false};
};

void sum_by_columns(const Call& call) {
  const auto x = call.input("x").view<const float, 2>();
  std::vector<float> sums(static_cast<size_t>(x.shape[0]));
  for (int64_t c = 0; c < x.shape[1]; ++c) {
    for (int64_t r = 0; r < x.shape[0]; ++r) {
      sums[static_cast<size_t>(r)] += x(r, c);
    }
  }
  store(call.output("y").view<float, 1>(), sums.data());
}

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
  if (!call.context<Tuning>().done.exchange(true)) {
    sum_in_order<float>(call);
  }
  sum_by_columns(call);
}

}  // namespace

constinit const Operator kNearTuned{"row_sum", kSchema, {{"fused", fused}, {"unfused", unfused}}};

}  // namespace fusediff::planted

PLANTED_TARGET_WITH_CONTEXT(fusediff::planted::Tuning, "near_tuned", fusediff::planted::kNearTuned);
