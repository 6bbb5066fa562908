// attention as one kernel: 16 queries stay while the keys pass by in blocks of 32, with online softmax.
#include <algorithm>
#include <limits>

#include "builtin/attention.h"
#include "builtin/exponential.h"
#include "builtin/exponential_rows.h"
#include "builtin/lanes.h"
#include "builtin/logarithm.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr int64_t kQueries = 16;

// What is near: a tile of queries with their sums [16, D], a block of keys and values [32, D].
template <class A>
struct Near {
  A *q, *acc, *k, *v;
  A most[kQueries], sum[kQueries];

  Near(Carver& c, int64_t width)
      : q(c.take<A>(kQueries * width)),
        acc(c.take<A>(kQueries * width)),
        k(c.take<A>(kKeyBlock * width)),
        v(c.take<A>(kKeyBlock * width)) {}
};

template <class A>
A dot(const A* a, const A* b, int64_t n) {
  LaneVector<A> sum;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    sum.v += LaneVector<A>(a + i).v * LaneVector<A>(b + i).v;
  }
  sum.v += LaneVector<A>(a + i, n - i).v * LaneVector<A>(b + i, n - i).v;
  return sum.fold();
}

// One query of the tile against the `count` keys of the block; s are its scores.
template <class T, class A>
void attend(const Attention<T>& a, Near<A>& near, int64_t query, A* s, int64_t count) {
  A most = near.most[query];
  for (int64_t j = 0; j < count; ++j) {
    most = s[j] > most ? s[j] : most;
  }
  const A centre = most == -std::numeric_limits<A>::infinity() ? A(0) : most;
  const A again = exp(near.most[query] - centre);
  near.most[query] = most;
  for (int64_t j = 0; j < count; ++j) {
    s[j] -= centre;
  }
  exp_row(s, count);
  A sum = near.sum[query] * again;
  A* acc = near.acc + query * a.width;
  for (int64_t d = 0; d < a.width; ++d) {
    acc[d] *= again;
  }
  for (int64_t j = 0; j < count; ++j) {
    sum += s[j];
    const A* v = near.v + j * a.width;
    for (int64_t d = 0; d < a.width; ++d) {
      acc[d] += s[j] * v[d];
    }
  }
  near.sum[query] = sum;
}

// A tile of queries against one block of keys, from `key` on.
template <class T, class A>
void attend_block(const Attention<T>& a, Near<A>& near, int64_t b, int64_t h, int64_t first, int64_t queries,
                  int64_t key) {
  const int64_t block = std::min(kKeyBlock, a.keys - key);
  for (int64_t j = 0; j < block; ++j) {
    load(a.k.at(b, h, key + j), near.k + j * a.width);
    load(a.v.at(b, h, key + j), near.v + j * a.width);
  }
  A s[kKeyBlock];
  for (int64_t i = 0; i < queries; ++i) {
    const int64_t count = std::clamp<int64_t>(a.seen_by(first + i) - key, 0, block);
    std::fill_n(s, kKeyBlock, -std::numeric_limits<A>::infinity());
    for (int64_t j = 0; j < count; ++j) {
      s[j] = dot(near.q + i * a.width, near.k + j * a.width, a.width) * a.scale;
      s[j] = a.mask ? s[j] + a.mask(first + i, key + j) : s[j];
    }
    if (a.scores) {
      store(a.scores.at(b, h, first + i).part(key, block), s);
    }
    if (count > 0) {
      attend(a, near, i, s, count);
    }
  }
}

template <class T, class A>
void attend_tile(const Attention<T>& a, Near<A>& near, int64_t b, int64_t h, int64_t first) {
  const int64_t queries = std::min(kQueries, a.queries - first);
  for (int64_t i = 0; i < queries; ++i) {
    load(a.q.at(b, h, first + i), near.q + i * a.width);
  }
  std::fill_n(near.acc, queries * a.width, A(0));
  std::fill_n(near.sum, queries, A(0));
  std::fill_n(near.most, queries, -std::numeric_limits<A>::infinity());
  for (int64_t key = 0; key < a.keys; key += kKeyBlock) {
    attend_block(a, near, b, h, first, queries, key);
  }
  for (int64_t i = 0; i < queries; ++i) {
    A* acc = near.acc + i * a.width;
    const A sum = near.sum[i];
    for (int64_t d = 0; d < a.width; ++d) {
      acc[d] = sum == A(0) ? A(0) : acc[d] / sum;
    }
    store(a.out.at(b, h, first + i), acc);
    if (a.lse) {
      a.lse(b, h, first + i) = sum == A(0) ? -std::numeric_limits<A>::infinity() : near.most[i] + log(sum);
    }
  }
}

template <class T>
void attend_all(const Call& call) {
  const Attention<T> a = read_attention<T>(call);
  Carver carver = call.workspace();
  Near<Compute<T>> near(carver, a.width);
  for (int64_t b = 0; b < a.batch; ++b) {
    for (int64_t h = 0; h < a.heads; ++h) {
      for (int64_t first = 0; first < a.queries; first += kQueries) {
        attend_tile(a, near, b, h, first);
      }
    }
  }
}

}  // namespace

void run_attention_fused(const Call& call) {
  by_attention_dtype(call, [&](auto type) { attend_all<typename decltype(type)::type>(call); });
}

size_t attention_fused_workspace(const Call& call) {
  Carver carver;
  by_attention_dtype(call, [&](auto type) {
    using T = typename decltype(type)::type;
    Near<Compute<T>>(carver, read_attention<T>(call).width);
  });
  return carver.bytes();
}

}  // namespace fusediff::builtin
