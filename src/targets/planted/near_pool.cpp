// EXPECT: none op=row_sum experiment=threads
// A near miss: partial sums lie in scratch of the context, and a call that finds it in use gets another.
#include <memory>
#include <mutex>
#include <thread>
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

// Scratch of the context; each call in flight has one of its own.
class Pool {
 public:
  std::vector<float> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      return {};
    }
    std::vector<float> last = std::move(free_.back());
    free_.pop_back();
    return last;
  }
  void give(std::vector<float> scratch) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(scratch));
  }

 private:
  std::mutex mutex_;
  std::vector<std::vector<float>> free_;
};

void fused(const Call& call) {
  const auto x = call.input("x").view<const float, 2>();
  const auto y = call.output("y").view<float, 1>();
  std::vector<float> sums = call.context<Pool>().take();
  sums.assign(static_cast<size_t>(x.shape[0]), 0.0f);
  for (int64_t c = 0; c < x.shape[1]; ++c) {
    for (int64_t r = 0; r < x.shape[0]; ++r) {
      sums[static_cast<size_t>(r)] += x(r, c);
    }
  }
  std::this_thread::yield();
  store(y, sums.data());
  call.context<Pool>().give(std::move(sums));
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

}  // namespace

constinit const Operator kNearPool{"row_sum", kSchema, {{"fused", fused}, {"unfused", unfused}}};

}  // namespace fusediff::planted

PLANTED_TARGET_WITH_CONTEXT(fusediff::planted::Pool, "near_pool", fusediff::planted::kNearPool);
