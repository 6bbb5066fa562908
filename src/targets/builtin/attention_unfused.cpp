// attention as a framework composes it, one head at a time: scores, scaling, mask, softmax, matrix product, division,
// each over its whole tensor. Softmax keeps, beside the weights, the factor by which earlier blocks of keys shrink.
#include <algorithm>
#include <limits>

#include "builtin/attention.h"
#include "builtin/exponential_rows.h"
#include "builtin/lanes.h"
#include "builtin/logarithm.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

// The tensors of one head: q [S, D], k and v [L, D], weights [S, L], shrink [S, blocks], and most and sum [S].
template <class T, class A>
struct Buffers {
  const Attention<T>& a;
  A *q, *k, *v, *weights, *shrink, *most, *sum;

  Buffers(Carver& c, const Attention<T>& call)
      : a(call),
        q(c.take<A>(a.queries * a.width)),
        k(c.take<A>(a.keys * a.width)),
        v(c.take<A>(a.keys * a.width)),
        weights(c.take<A>(a.queries * a.keys)),
        shrink(c.take<A>(a.queries * a.blocks())),
        most(c.take<A>(a.queries)),
        sum(c.take<A>(a.queries)) {}
};

template <class T, class A>
void load_head(const Buffers<T, A>& t, int64_t b, int64_t h) {
  for (int64_t i = 0; i < t.a.queries; ++i) {
    load(t.a.q.at(b, h, i), t.q + i * t.a.width);
  }
  for (int64_t j = 0; j < t.a.keys; ++j) {
    load(t.a.k.at(b, h, j), t.k + j * t.a.width);
    load(t.a.v.at(b, h, j), t.v + j * t.a.width);
  }
}

// q @ k^T, times scale, plus mask, hidden keys -inf.
template <class T, class A>
void score(const Buffers<T, A>& t) {
  const Attention<T>& a = t.a;
  for (int64_t at = 0; at < a.queries * a.keys; ++at) {
    const A* q = t.q + at / a.keys * a.width;
    const A* k = t.k + at % a.keys * a.width;
    t.weights[at] = lane_sum<A>(a.width, [&](int64_t d) { return q[d] * k[d]; });
  }
  for (int64_t at = 0; at < a.queries * a.keys; ++at) {
    t.weights[at] *= a.scale;
  }
  for (int64_t at = 0; a.mask && at < a.queries * a.keys; ++at) {
    t.weights[at] += a.mask(at / a.keys, at % a.keys);
  }
  for (int64_t i = 0; i < a.queries; ++i) {
    const int64_t seen = a.seen_by(i);
    std::fill_n(t.weights + i * a.keys + seen, a.keys - seen, -std::numeric_limits<A>::infinity());
  }
}

// Scores become exponents: less the maximum so far at the end of their block; shrink likewise.
template <class T, class A>
void centre(const Buffers<T, A>& t) {
  const Attention<T>& a = t.a;
  for (int64_t i = 0; i < a.queries; ++i) {
    A most = -std::numeric_limits<A>::infinity();
    for (int64_t block = 0; block < a.blocks(); ++block) {
      A* s = t.weights + i * a.keys;
      const int64_t from = block * kKeyBlock, end = std::min(a.keys, from + kKeyBlock);
      const A before = most;
      for (int64_t j = from; j < end; ++j) {
        most = s[j] > most ? s[j] : most;
      }
      const A zero = most == -std::numeric_limits<A>::infinity() ? A(0) : most;
      t.shrink[i * a.blocks() + block] = before - zero;
      for (int64_t j = from; j < end; ++j) {
        s[j] -= zero;
      }
    }
    t.most[i] = most;
  }
}

// Sums of the weights along the keys, shrinking at the edges of blocks.
template <class T, class A>
void sum_weights(const Buffers<T, A>& t) {
  const Attention<T>& a = t.a;
  for (int64_t i = 0; i < a.queries; ++i) {
    A sum = 0;
    for (int64_t j = 0; j < a.seen_by(i); ++j) {
      sum = j % kKeyBlock == 0 ? sum * t.shrink[i * a.blocks() + j / kKeyBlock] : sum;
      sum += t.weights[i * a.keys + j];
    }
    t.sum[i] = sum;
  }
}

// weights @ v, element by element, and the division.
template <class T, class A>
void mix(const Buffers<T, A>& t, int64_t b, int64_t h) {
  const Attention<T>& a = t.a;
  for (int64_t i = 0; i < a.queries; ++i) {
    for (int64_t d = 0; d < a.width; ++d) {
      A acc = 0;
      for (int64_t j = 0; j < a.seen_by(i); ++j) {
        acc = j % kKeyBlock == 0 ? acc * t.shrink[i * a.blocks() + j / kKeyBlock] : acc;
        acc += t.weights[i * a.keys + j] * t.v[j * a.width + d];
      }
      a.out(b, h, i, d) = convert<T>(t.sum[i] == A(0) ? A(0) : acc / t.sum[i]);
    }
  }
}

template <class T>
void attend_composed(const Call& call) {
  using A = Compute<T>;
  const Attention<T> a = read_attention<T>(call);
  Carver carver = call.workspace();
  const Buffers<T, A> t(carver, a);
  for (int64_t head = 0; head < a.batch * a.heads; ++head) {
    const int64_t b = head / a.heads, h = head % a.heads;
    load_head(t, b, h);
    score(t);
    for (int64_t i = 0; a.scores && i < a.queries; ++i) {
      store(a.scores.at(b, h, i), t.weights + i * a.keys);
    }
    centre(t);
    exp_row(t.weights, a.queries * a.keys);
    exp_row(t.shrink, a.queries * a.blocks());
    sum_weights(t);
    for (int64_t i = 0; a.lse && i < a.queries; ++i) {
      a.lse(b, h, i) = t.sum[i] == A(0) ? -std::numeric_limits<A>::infinity() : t.most[i] + log(t.sum[i]);
    }
    mix(t, b, h);
  }
}

}  // namespace

void run_attention_unfused(const Call& call) {
  by_attention_dtype(call, [&](auto type) { attend_composed<typename decltype(type)::type>(call); });
}

size_t attention_unfused_workspace(const Call& call) {
  Carver carver;
  by_attention_dtype(call, [&](auto type) {
    using T = typename decltype(type)::type;
    Buffers<T, Compute<T>>(carver, read_attention<T>(call));
  });
  return carver.bytes();
}

}  // namespace fusediff::builtin
