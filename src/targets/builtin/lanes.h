// The order in which the built-in operators sum along a row, so that every path gives the same bits: 16 lanes, lane l
// adds elements l, l + 16, l + 32, ... to +0 in that order; then lane i gets lane i + 8, i + 4, i + 2, i + 1 added. The
// longest chain of additions for n elements is ceil(n / 16) + 4. Sums over other axes are plain: in index order from
// +0.
#pragma once

#include <cstdint>
#include <cstring>

namespace fusediff::builtin {

inline constexpr int64_t kLanes = 16;

// The last four additions of the order: the sum of 16 lanes. Leaves lanes changed.
template <class A>
A fold_lanes(A* lanes) {
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t i = 0; i < width; ++i) {
      lanes[i] += lanes[i + width];
    }
  }
  return lanes[0];
}

// Sum of term(i) for i < n in that order.
template <class A, class F>
A lane_sum(int64_t n, F&& term) {
  A lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) {
      lanes[l] += term(i + l);
    }
  }
  for (int64_t l = 0; i + l < n; ++l) {
    lanes[l] += term(i + l);
  }
  return fold_lanes(lanes);
}

// The 16 lanes as one vector of the compiler (gcc and clang), for fused paths.
template <class A>
struct LaneVector {
  typedef A Type __attribute__((vector_size(kLanes * sizeof(A))));
  Type v;

  LaneVector() : v{} {}
  // Elements from[0..15], or fewer (n < 16) with zeros behind.
  explicit LaneVector(const A* from) { std::memcpy(&v, from, sizeof(v)); }
  LaneVector(const A* from, int64_t n) : v{} { std::memcpy(&v, from, static_cast<size_t>(n) * sizeof(A)); }

  A fold() const {
    A lanes[kLanes];
    std::memcpy(lanes, &v, sizeof(v));
    return fold_lanes(lanes);
  }
};

}  // namespace fusediff::builtin
