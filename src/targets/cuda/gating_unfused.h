// moe_gating_topk as small kernels, each one pass over its whole tensor: cast, sigmoid or softmax, add, group scores,
// mask, top-k by counting who goes before, gather, normalise, scale, cast.
#pragma once

#include "cuda/gating.h"

namespace fusediff::cuda {

template <class A>
struct GatingBuffers {
  A *scores, *rank, *partial, *row, *group, *weights;  // [T, E], [T, E], [T, 16], [T], [T, G], [T, K]
  int32_t* picks;                                      // [T, K]

  template <class T>
  GatingBuffers(kit::Carver& carver, const Gating<T>& g)
      : scores(carver.take<A>(g.tokens * g.experts)),
        rank(carver.take<A>(g.tokens * g.experts)),
        partial(carver.take<A>(g.tokens * kLanes)),
        row(carver.take<A>(g.tokens)),
        group(carver.take<A>(g.tokens * g.groups)),
        weights(carver.take<A>(g.tokens * g.k)),
        picks(carver.take<int32_t>(g.tokens * g.k)) {}
};

template <class T, class A, class Stream>
void softmax_rows(Stream& stream, const Gating<T>& g, const GatingBuffers<A>& b) {
  const int64_t n = g.experts;
  stream.elements(
      g.tokens, FUSEDIFF_KERNEL(int64_t t) {
        A most = minus_infinity<A>();
        for (int64_t e = 0; e < n; ++e) {
          most = b.scores[t * n + e] > most ? b.scores[t * n + e] : most;
        }
        b.row[t] = most;
      });
  stream.elements(
      g.tokens * n, FUSEDIFF_KERNEL(int64_t i) { b.scores[i] -= b.row[i / n]; });
  stream.elements(
      g.tokens * n, FUSEDIFF_KERNEL(int64_t i) { b.scores[i] = exponential(b.scores[i]); });
  stream.elements(
      g.tokens * kLanes, FUSEDIFF_KERNEL(int64_t i) {
        A sum = 0;
        for (int64_t e = i % kLanes; e < n; e += kLanes) {
          sum += b.scores[i / kLanes * n + e];
        }
        b.partial[i] = sum;
      });
  stream.elements(
      g.tokens, FUSEDIFF_KERNEL(int64_t t) { b.row[t] = fold_lanes(b.partial + t * kLanes); });
  stream.elements(
      g.tokens * n, FUSEDIFF_KERNEL(int64_t i) { b.scores[i] /= b.row[i / n]; });
}

template <class T, class A, class Stream>
void mask_groups(Stream& stream, const Gating<T>& g, const GatingBuffers<A>& b) {
  stream.elements(
      g.tokens * g.groups,
      FUSEDIFF_KERNEL(int64_t i) { b.group[i] = group_score(b.rank + i * g.group_size, g.group_size, g.two); });
  stream.elements(
      g.tokens * g.experts, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t t = i / g.experts;
        if (is_dropped(b.group + t * g.groups, g.groups, g.kept_groups, i % g.experts / g.group_size)) {
          b.rank[i] = minus_infinity<A>();
        }
      });
}

// True if candidate a goes before b: the larger, NaN after every number, the lower index among equals.
template <class A>
FUSEDIFF_HD bool goes_before(const A* values, int64_t a, int64_t b) {
  const A left = values[a];
  const A right = values[b];
  if (left > right || left < right) {
    return left > right;
  }
  const bool left_nan = left != left;
  const bool right_nan = right != right;
  return left_nan == right_nan ? a < b : right_nan;
}

template <class T, class A, class Stream>
void select(Stream& stream, const Gating<T>& g, const GatingBuffers<A>& b) {
  stream.elements(
      g.tokens * g.experts, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t t = i / g.experts, e = i % g.experts;
        const A* ranks = b.rank + t * g.experts;
        int64_t slot = 0;
        for (int64_t other = 0; other < g.experts; ++other) {
          slot += goes_before(ranks, other, e) ? 1 : 0;
        }
        if (slot < g.k) {
          b.picks[t * g.k + slot] = static_cast<int32_t>(e);
        }
      });
  stream.elements(
      g.tokens * g.k, FUSEDIFF_KERNEL(int64_t i) { b.weights[i] = b.scores[i / g.k * g.experts + b.picks[i]]; });
}

template <class T, class A, class Stream>
void normalise(Stream& stream, const Gating<T>& g, const GatingBuffers<A>& b) {
  if (g.divide) {
    stream.elements(
        g.tokens, FUSEDIFF_KERNEL(int64_t t) {
          A sum = 0;
          for (int64_t j = 0; j < g.k; ++j) {
            sum += b.weights[t * g.k + j];
          }
          b.row[t] = sum;
        });
    stream.elements(
        g.tokens * g.k, FUSEDIFF_KERNEL(int64_t i) { b.weights[i] /= b.row[i / g.k] + g.eps; });
  }
  stream.elements(
      g.tokens * g.k, FUSEDIFF_KERNEL(int64_t i) { b.weights[i] *= g.scale; });
}

template <class T, class Stream, class A = Compute<T>>
void gating_unfused(Stream& stream, const kit::Call& call) {
  const Gating<T> g = read_gating<T>(call);
  kit::Carver carver = call.workspace();
  const GatingBuffers<A> b(carver, g);
  const int64_t n = g.experts, all = g.tokens * g.experts;
  stream.elements(
      all, FUSEDIFF_KERNEL(int64_t i) { b.scores[i] = widen(g.x(i / n, i % n)); });
  if (g.softmax) {
    softmax_rows(stream, g, b);
  } else {
    stream.elements(
        all, FUSEDIFF_KERNEL(int64_t i) { b.scores[i] = sigmoid(b.scores[i]); });
  }
  stream.elements(
      all, FUSEDIFF_KERNEL(int64_t i) { b.rank[i] = b.scores[i]; });
  if (g.bias.present()) {
    stream.elements(
        all, FUSEDIFF_KERNEL(int64_t i) { b.rank[i] += widen(g.bias(i % n)); });
  }
  if (g.kept_groups < g.groups) {
    mask_groups(stream, g, b);
  }
  select(stream, g, b);
  normalise(stream, g, b);
  if (g.norm_out.present()) {
    stream.elements(
        all, FUSEDIFF_KERNEL(int64_t i) { g.norm_out(i / n, i % n) = b.scores[i]; });
  }
  if (g.rank.present()) {
    stream.elements(
        all, FUSEDIFF_KERNEL(int64_t i) { g.rank(i / n, i % n) = b.rank[i]; });
  }
  stream.elements(
      g.tokens * g.k, FUSEDIFF_KERNEL(int64_t i) {
        g.expert_idx(i / g.k, i % g.k) = b.picks[i];
        g.y(i / g.k, i % g.k) = as_dtype<T>(b.weights[i]);
      });
}

template <class T>
size_t gating_unfused_workspace(const kit::Call& call) {
  kit::Carver carver;
  GatingBuffers<Compute<T>>(carver, read_gating<T>(call));
  return carver.bytes();
}

}  // namespace fusediff::cuda
