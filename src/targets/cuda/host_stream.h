// The kernels on the CPU, for tests: the blocks and threads of a launch one after another, every barrier kept. What a
// missing barrier or two threads on one element would do shows as other bits in another order of threads. It says
// nothing of the device's own arithmetic, memory or speed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "cuda/arithmetic.h"

namespace fusediff::cuda {

enum class Order { kForward, kBackward, kShuffled };

class HostBlock {
 public:
  HostBlock(size_t shared_bytes, Order order)
      : memory_((shared_bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t)), order_(order) {
    std::iota(lanes_, lanes_ + kThreads, 0);
  }

  template <class F>
  void each(F&& f) const {
    if (order_ == Order::kShuffled) {
      std::shuffle(lanes_, lanes_ + kThreads, random_);
    }
    for (int i = 0; i < kThreads; ++i) {
      f(order_ == Order::kBackward ? kThreads - 1 - i : lanes_[i]);
    }
  }

  unsigned char* shared() const { return reinterpret_cast<unsigned char*>(memory_.data()); }

  // What a block before left there, or nothing of use.
  void soil() { std::fill_n(shared(), memory_.size() * sizeof(std::max_align_t), static_cast<unsigned char>(0xc3)); }

 private:
  mutable std::vector<std::max_align_t> memory_;
  Order order_;
  mutable int lanes_[kThreads];
  mutable std::mt19937_64 random_{1};
};

class HostStream {
 public:
  using Block = HostBlock;
  static constexpr size_t kSharedBytes = 48 << 10;

  explicit HostStream(Order order) : order_(order) {}

  template <class F>
  void elements(int64_t n, F f) {
    for_each(n, f);
  }

  template <class F>
  void blocks(int64_t n, size_t shared_bytes, F f) {
    HostBlock block(shared_bytes, order_);
    for_each(n, [&](int64_t b) {
      block.soil();
      f(block, b);
    });
  }

  int32_t fetch(const int32_t* from) { return *from; }

 private:
  template <class F>
  void for_each(int64_t n, F&& f) {
    if (order_ == Order::kShuffled) {
      std::vector<int64_t> all(static_cast<size_t>(std::max<int64_t>(n, 0)));
      std::iota(all.begin(), all.end(), int64_t{0});
      std::shuffle(all.begin(), all.end(), random_);
      for (const int64_t i : all) {
        f(i);
      }
      return;
    }
    for (int64_t i = 0; i < n; ++i) {
      f(order_ == Order::kBackward ? n - 1 - i : i);
    }
  }

  Order order_;
  std::mt19937_64 random_{2};
};

}  // namespace fusediff::cuda
