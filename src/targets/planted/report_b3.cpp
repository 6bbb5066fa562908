// EXPECT: class=contamination op=mhc_pre_sinkhorn_grad experiment=threads output=grad_bias cause=two_different_shapes
// The gradients of each token lie in a scratch of the context between the two stages of the call. It is cut into slots,
// one for each call in flight, but each call counts the slots in its own size: those of equal shapes lie side by side,
// those of different shapes lie on each other. From cann/ops-transformer 6619.
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "builtin/operators.h"
#include "planted/changed_call.h"
#include "planted/mhc_tokens.h"

namespace fusediff::planted {
namespace {

using namespace kit;

// Floats that calls in flight share, from any thread.
class Scratch {
 public:
  // The slot of a call, until it ends.
  class Slot {
   public:
    Slot(Scratch& scratch, size_t floats) : scratch_(scratch) {
      const std::lock_guard lock(scratch_.mutex_);
      number_ = scratch_.free_slot();
      scratch_.reserve(floats);
      const size_t size = kFaulty ? floats : scratch_.slot_floats_;
      at_ = scratch_.buffers_.back().get() + number_ * size;
    }
    ~Slot() {
      const std::lock_guard lock(scratch_.mutex_);
      scratch_.taken_[number_] = false;
    }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    float* at() const { return at_; }

   private:
    Scratch& scratch_;
    size_t number_ = 0;
    float* at_ = nullptr;
  };

 private:
  static constexpr size_t kSlots = 128;

  size_t free_slot() {
    const auto free = std::find(std::begin(taken_), std::end(taken_), false);
    if (free == std::end(taken_)) {
      fail("more than ", static_cast<int64_t>(kSlots), " calls are in flight");
    }
    *free = true;
    return static_cast<size_t>(free - std::begin(taken_));
  }

  // Earlier buffers stay: they may be in use.
  void reserve(size_t floats) {
    if (floats > slot_floats_) {
      slot_floats_ = floats;
      buffers_.emplace_back(new float[kSlots * floats]);
    }
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<float[]>> buffers_;
  size_t slot_floats_ = 0;  // of the largest call so far
  bool taken_[kSlots] = {};
};

size_t workspace(const Call& call) { return workspace_of_fused(builtin::kMhcPreSinkhornGrad, call); }

// Relaxed, as plain memory of a device is: whoever wrote last is read.
float* write(float* to, const std::vector<float>& from) {
  for (const float value : from) {
    std::atomic_ref(*to++).store(value, std::memory_order_relaxed);
  }
  return to;
}

float* add(float* from, std::vector<float>& sums) {
  for (float& sum : sums) {
    sum += std::atomic_ref(*from++).load(std::memory_order_relaxed);
  }
  return from;
}

void run_stages(const Call& call, const builtin::MhcSizes& s, float* scratch) {
  ParameterGrads sums(s), part(s);
  TokenCalls calls(call);
  float* to = scratch;
  for (int64_t t = 0; t < s.tokens(); ++t) {
    calls.run(t, part);
    to = write(write(to, part.bias), part.alpha);
    std::transform(sums.phi.begin(), sums.phi.end(), part.phi.begin(), sums.phi.begin(), std::plus());
  }
  std::this_thread::yield();  // until the first stage is done
  float* from = scratch;
  for (int64_t t = 0; t < s.tokens(); ++t) {
    from = add(add(from, sums.bias), sums.alpha);
  }
  store_parameters(call, s, sums);
}

void run(const Call& call) {
  const builtin::MhcSizes s = mhc_sizes(call);
  if (s.tokens() == 0) {
    return run_fused(builtin::kMhcPreSinkhornGrad, call);
  }
  const Scratch::Slot slot(call.context<Scratch>(), static_cast<size_t>(s.tokens() * (s.mixes() + 3)));
  run_stages(call, s, slot.at());
}

}  // namespace

constinit const Operator kReportB3{
    "mhc_pre_sinkhorn_grad", PLANTED_LIKE_BUILTIN("mhc_pre_sinkhorn_grad"), {{"fused", run, workspace}}};
constinit const Operator kReportB3Add{"add", PLANTED_LIKE_BUILTIN("add"), {{"fused", add_fused}}};

}  // namespace fusediff::planted

PLANTED_TARGET_WITH_CONTEXT(fusediff::planted::Scratch, "report_b3", fusediff::planted::kReportB3Add,
                            fusediff::planted::kReportB3);
