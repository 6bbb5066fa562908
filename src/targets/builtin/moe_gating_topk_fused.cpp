// moe_gating_topk in one pass, row by row: scores and ranks are made, kept in registers and a row buffer, and the k
// best are picked by integer keys with a threshold that skips whole blocks.
#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "builtin/exponential_rows.h"
#include "builtin/lanes.h"
#include "builtin/moe_gating_topk.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr int64_t kTile = 16 * kLanes;

template <class A>
using Key = std::conditional_t<sizeof(A) == 8, int64_t, int32_t>;

// An integer that orders as the value does: NaN least, both zeros 0.
template <class A>
Key<A> key_of(A value) {
  using K = Key<A>;
  const K bits = std::bit_cast<K>(value);
  const K magnitude = bits & std::numeric_limits<K>::max();
  const K ordered = bits < 0 ? -magnitude : magnitude;
  return value != value ? std::numeric_limits<K>::min() : ordered;
}

// One row: room for every legal number of experts.
template <class A>
struct RowBuffer {
  alignas(64) A bias[kMaxExperts];
  alignas(64) A score[kMaxExperts];
  alignas(64) A rank[kMaxExperts];
  alignas(64) Key<A> key[kMaxExperts];
  Key<A> best[kMaxExperts];
  int32_t pick[kMaxExperts];
  A weight[kMaxExperts];
};

// The softmax of a row in its place.
template <class A>
void softmax_row(A* score, int64_t n) {
  A most = -std::numeric_limits<A>::infinity();
  for (int64_t i = 0; i < n; ++i) {
    most = score[i] > most ? score[i] : most;
  }
  LaneVector<A> sums;
  for (int64_t from = 0; from < n; from += kTile) {
    const int64_t size = std::min(kTile, n - from);
    A* tile = score + from;
    for (int64_t i = 0; i < size; ++i) {
      tile[i] -= most;
    }
    exp_row(tile, size);
    int64_t i = 0;
    for (; i + kLanes <= size; i += kLanes) {
      sums.v += LaneVector<A>(tile + i).v;
    }
    sums.v += LaneVector<A>(tile + i, size - i).v;
  }
  const A sum = sums.fold();
  for (int64_t j = 0; j < n; ++j) {
    score[j] /= sum;
  }
}

// Inserts (key, index) into the sorted best[0..count), dropping its last; equal keys that are there already stay ahead.
template <class A>
void insert(RowBuffer<A>& b, int64_t count, Key<A> key, int32_t index) {
  int64_t slot = count - 1;
  for (; slot > 0 && b.best[slot - 1] < key; --slot) {
    b.best[slot] = b.best[slot - 1];
    b.pick[slot] = b.pick[slot - 1];
  }
  b.best[slot] = key;
  b.pick[slot] = index;
}

// pick[0..k) = indices of the k largest keys of n, ties to the lower index.
template <class A>
void pick_best(RowBuffer<A>& b, int64_t n, int64_t k) {
  for (int64_t i = 0; i < k; ++i) {
    insert(b, i + 1, b.key[i], static_cast<int32_t>(i));
  }
  int64_t i = k;
  for (; i + kLanes <= n; i += kLanes) {
    const Key<A> threshold = b.best[k - 1];
    Key<A> above = 0;
    for (int64_t l = 0; l < kLanes; ++l) {
      above |= b.key[i + l] > threshold ? 1 : 0;
    }
    if (above == 0) {
      continue;
    }
    for (int64_t l = i; l < i + kLanes; ++l) {
      if (b.key[l] > b.best[k - 1]) {
        insert(b, k, b.key[l], static_cast<int32_t>(l));
      }
    }
  }
  for (; i < n; ++i) {
    if (b.key[i] > b.best[k - 1]) {
      insert(b, k, b.key[i], static_cast<int32_t>(i));
    }
  }
}

// The score of a group: its largest rank, or the sum of its two largest.
template <class A>
A group_score(const RowBuffer<A>& b, int64_t from, int64_t size, int64_t mode) {
  int64_t first = from;
  int64_t second = -1;
  for (int64_t i = from + 1; i < from + size; ++i) {
    if (b.key[i] > b.key[first]) {
      second = first;
      first = i;
    } else if (second < 0 || b.key[i] > b.key[second]) {
      second = i;
    }
  }
  return mode == 0 ? b.rank[first] : b.rank[first] + b.rank[second];
}

// Ranks and keys of the groups that are not among the best become those of -inf.
template <class T, class A>
void drop_groups(const Gating<T>& g, RowBuffer<A>& b) {
  constexpr A kOut = -std::numeric_limits<A>::infinity();
  const int64_t size = g.experts / g.groups;
  Key<A> score[kMaxExperts / kGroupAlignment];
  for (int64_t group = 0; group < g.groups; ++group) {
    score[group] = key_of(group_score(b, group * size, size, g.group_mode));
  }
  for (int64_t group = 0; group < g.groups; ++group) {
    int64_t ahead = 0;
    for (int64_t other = 0; other < g.groups; ++other) {
      ahead += score[other] > score[group] || (score[other] == score[group] && other < group);
    }
    if (ahead >= g.kept_groups) {
      std::fill_n(b.rank + group * size, size, kOut);
      std::fill_n(b.key + group * size, size, key_of(kOut));
    }
  }
}

template <class T, class A>
void gate_row(const Gating<T>& g, RowBuffer<A>& b, int64_t t) {
  const int64_t n = g.experts;
  load(g.x.at(t), b.score);
  if (g.softmax) {
    softmax_row(b.score, n);
  } else {
    sigmoid_row(b.score, n);
  }
  for (int64_t e = 0; e < n; ++e) {
    b.rank[e] = g.bias ? b.score[e] + b.bias[e] : b.score[e];
    b.key[e] = key_of(b.rank[e]);
  }
  if (g.kept_groups < g.groups) {
    drop_groups(g, b);
  }
  pick_best(b, n, g.k);
  A sum = 0;
  for (int64_t j = 0; j < g.k; ++j) {
    b.weight[j] = b.score[b.pick[j]];
    sum += b.weight[j];
  }
  sum += g.eps;
  for (int64_t j = 0; j < g.k; ++j) {
    b.weight[j] = (g.divide ? b.weight[j] / sum : b.weight[j]) * g.scale;
  }
  store(g.norm_out.at(t), b.score);
  store(g.rank.at(t), b.rank);
  store(g.expert_idx.at(t), b.pick);
  store(g.y.at(t), b.weight);
}

template <class T, class A = Compute<T>>
void gate(const Call& call) {
  const Gating<T> g = read_gating<T>(call);
  RowBuffer<A> buffer;
  if (g.bias) {
    load(g.bias, buffer.bias);
  }
  for (int64_t t = 0; t < g.tokens; ++t) {
    gate_row(g, buffer, t);
  }
}

}  // namespace

void run_gating_fused(const Call& call) {
  by_dtype<float, Half, BFloat16, double>(call.input("x"),
                                          [&](auto type) { gate<typename decltype(type)::type>(call); });
}

}  // namespace fusediff::builtin
