// moe_gating_topk: what both paths share. The call, read and checked by the built-in operator's own rules, as a struct
// that a kernel may hold; the order of candidates. The paths are gating_fused.h and gating_unfused.h.
#pragma once

#include "cuda/strided.h"
#include "kit/target.h"

namespace fusediff::cuda {

template <class T, class A = Compute<T>>
struct Gating {
  int64_t tokens, experts, k, groups, kept_groups, group_size;
  bool softmax, divide, two;  // two: a group's score is the sum of its two best ranks
  A scale, eps;
  Strided<const T, 2> x;
  Strided<const T, 1> bias;
  Strided<A, 2> norm_out, rank;
  Strided<int32_t, 2> expert_idx;
  Strided<T, 2> y;
};

// REJECTED where a rule of the schema is broken (readers.cpp).
template <class T>
Gating<T> read_gating(const kit::Call& call);

// The score of a group of `size` ranks: the best, or the sum of the two best. NaN is least.
template <class A>
FUSEDIFF_HD A group_score(const A* ranks, int64_t size, bool two) {
  int64_t first = 0;
  int64_t second = -1;
  for (int64_t i = 1; i < size; ++i) {
    const int64_t key = order_key(ranks[i]);
    if (key > order_key(ranks[first])) {
      second = first;
      first = i;
    } else if (second < 0 || key > order_key(ranks[second])) {
      second = i;
    }
  }
  return two ? ranks[first] + ranks[second] : ranks[first];
}

// True where `group` is not among the `kept` best of `groups`, ties to the lower one.
template <class A>
FUSEDIFF_HD bool is_dropped(const A* scores, int64_t groups, int64_t kept, int64_t group) {
  const int64_t key = order_key(scores[group]);
  int64_t ahead = 0;
  for (int64_t other = 0; other < groups; ++other) {
    const int64_t theirs = order_key(scores[other]);
    ahead += theirs > key || (theirs == key && other < group) ? 1 : 0;
  }
  return ahead >= kept;
}

}  // namespace fusediff::cuda
