// EXPECT: class=contamination op=rms_norm experiment=threads cause=equal_calls_in_flight
// Partial sums of squares lie in a scratch that the context keeps for each shape, and not for each caller: calls of
// different shapes have their own, calls of equal shape in flight clear it and add to it together. From flashinfer
// 4476.
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>

#include "builtin/operators.h"
#include "planted/changed_call.h"
#include "planted/norm.h"

namespace fusediff::planted {
namespace {

using namespace kit;
using builtin::kLanes;

// Scratch of the context: [rows, 16] floats for each key.
class Cache {
 public:
  std::vector<float>& of(int64_t rows, int64_t columns) {
    const std::lock_guard lock(mutex_);
    const std::thread::id caller = kFaulty ? std::thread::id() : std::this_thread::get_id();
    std::unique_ptr<std::vector<float>>& kept = kept_[{rows, columns, caller}];
    if (kept == nullptr) {
      kept = std::make_unique<std::vector<float>>(static_cast<size_t>(rows * kLanes));
    }
    return *kept;
  }

 private:
  std::mutex mutex_;
  std::map<std::tuple<int64_t, int64_t, std::thread::id>, std::unique_ptr<std::vector<float>>> kept_;
};

// Adds the squares of a row to its lanes. Relaxed, as plain memory of a device is.
void add_squares(const float* s, int64_t n, float* lanes) {
  for (int64_t c = 0; c < n; ++c) {
    std::atomic_ref lane(lanes[c % kLanes]);
    lane.store(lane.load(std::memory_order_relaxed) + s[c] * s[c], std::memory_order_relaxed);
  }
}

template <class T>
void run_stages(const Norm<T>& n, std::vector<float>& scratch) {
  for (float& lane : scratch) {
    std::atomic_ref(lane).store(0, std::memory_order_relaxed);
  }
  std::vector<float> s(static_cast<size_t>(n.columns));
  for (int64_t row = 0; row < n.rows; ++row) {
    load_sums(n, row, s.data());
    add_squares(s.data(), n.columns, scratch.data() + row * kLanes);
  }
  std::this_thread::yield();  // until the first stage is done
  for (int64_t row = 0; row < n.rows; ++row) {
    float lanes[kLanes];
    for (int64_t l = 0; l < kLanes; ++l) {
      lanes[l] = std::atomic_ref(scratch[static_cast<size_t>(row * kLanes + l)]).load(std::memory_order_relaxed);
    }
    load_sums(n, row, s.data());
    finish_row(n, row, s.data(), builtin::fold_lanes(lanes));
  }
}

void run(const Call& call) {
  with_norm(call, [&](const auto& n) { run_stages(n, call.context<Cache>().of(n.rows, n.columns)); });
}

}  // namespace

constinit const Operator kFlashinfer4476{"rms_norm", PLANTED_LIKE_BUILTIN("rms_norm"), {{"fused", run}}};
constinit const Operator kFlashinfer4476Add{"add", PLANTED_LIKE_BUILTIN("add"), {{"fused", add_fused}}};

}  // namespace fusediff::planted

PLANTED_TARGET_WITH_CONTEXT(fusediff::planted::Cache, "flashinfer_4476", fusediff::planted::kFlashinfer4476Add,
                            fusediff::planted::kFlashinfer4476);
