// Floats that calls in flight on one context share, cut into slots, one for each call. In the faulty edition each call
// counts the slots before its own in its own size: those of equal calls lie side by side, those of different ones on
// each other (report B3). In the correct edition every slot is as large as the largest call so far.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <mutex>
#include <vector>

#include "kit/failure.h"
#include "planted/planted.h"

namespace fusediff::emulated {

class Scratch {
 public:
  // A slot, until it goes out of scope.
  class Slot {
   public:
    Slot(Scratch& scratch, size_t floats) : scratch_(scratch) {
      const std::lock_guard lock(scratch_.mutex_);
      number_ = scratch_.take_slot();
      scratch_.reserve(floats);
      at_ = scratch_.buffers_.back().get() + number_ * (planted::kFaulty ? floats : scratch_.slot_floats_);
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

  size_t take_slot() {
    const auto free = std::find(std::begin(taken_), std::end(taken_), false);
    if (free == std::end(taken_)) {
      kit::fail("too many calls are in flight");
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

}  // namespace fusediff::emulated
