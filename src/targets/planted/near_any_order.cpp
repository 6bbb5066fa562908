// EXPECT: none op=column_sum experiment=repeat
// A near miss: two threads of the path's own add to a sum, one row at a time, whoever is first, so its last bits
// change from run to run. The record says so, and how far they can.
#include <mutex>
#include <thread>
#include <vector>

#include "planted/planted.h"

namespace fusediff::planted {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "column_sum",
  "paths": ["fused", "unfused"],
  "deterministic": ["unfused"],
  "dims": {"R": {"range": [0, 64], "typical": [1, 16, 32]}, "C": {"range": [1, 64], "typical": [8, 16]}},
  "where": ["C >= 1", "R <= 64"],
  "inputs": [{"name": "x", "shape": ["R", "C"], "dtype": "f32", "role": "scale", "layout": "any"}],
  "outputs": [
    {"name": "y", "shape": ["C"], "dtype": "f32", "stage": 1, "layout": "any",
     "agree": {"ulp": 128, "why": "terms are positive: a sum of R in any order is within (1 + u)^(R - 1) of the exact one, R ULP; two of them, R <= 64. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 4.2"},
     "bound": {"ulp": "R + 1", "of": "element", "why": "one of these two"}}]
})";

constexpr int64_t kThreads = 2;

template <class A>
void add_row(const View<const A, 2>& x, int64_t row, std::vector<A>& sums) {
  for (int64_t c = 0; c < x.shape[1]; ++c) {
    sums[static_cast<size_t>(c)] += x(row, c);
  }
}

void fused(const Call& call) {
  const auto x = call.input("x").view<const float, 2>();
  std::vector<float> sums(static_cast<size_t>(x.shape[1]));
  std::mutex lock;
  std::vector<std::thread> threads;
  for (int64_t first = 0; first < kThreads; ++first) {
    threads.emplace_back([&, first] {
      for (int64_t row = first; row < x.shape[0]; row += kThreads) {
        const std::lock_guard held(lock);
        add_row(x, row, sums);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  store(call.output("y").view<float, 1>(), sums.data());
}

template <class A>
void sum_in_order(const Call& call) {
  const auto x = call.input("x").view<const A, 2>();
  std::vector<A> sums(static_cast<size_t>(x.shape[1]));
  for (int64_t row = 0; row < x.shape[0]; ++row) {
    add_row(x, row, sums);
  }
  store(call.output("y").view<A, 1>(), sums.data());
}

void unfused(const Call& call) {
  by_dtype<float, double>(call.input("x"), [&](auto type) { sum_in_order<typename decltype(type)::type>(call); });
}

}  // namespace

constinit const Operator kNearAnyOrder{"column_sum", kSchema, {{"fused", fused}, {"unfused", unfused}}};

}  // namespace fusediff::planted

PLANTED_TARGET("near_any_order", fusediff::planted::kNearAnyOrder);
