// moe_gating_topk as a framework composes it: sigmoid or softmax, add, group selection and masked fill, top-k, gather,
// normalise, scale, cast. Each step is one pass over its whole tensor.
#include <algorithm>
#include <limits>
#include <numeric>

#include "builtin/exponential_rows.h"
#include "builtin/lanes.h"
#include "builtin/moe_gating_topk.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

template <class A>
struct Buffers {
  A *scores, *rank, *group_scores, *weights, *bias;
  int32_t *order, *picks;

  template <class T>
  Buffers(Carver carver, const Gating<T>& g, size_t* bytes = nullptr)
      : scores(carver.take<A>(g.tokens * g.experts)),
        rank(carver.take<A>(g.tokens * g.experts)),
        group_scores(carver.take<A>(g.groups)),
        weights(carver.take<A>(g.tokens * g.k)),
        bias(carver.take<A>(g.experts)),
        order(carver.take<int32_t>(g.experts)),
        picks(carver.take<int32_t>(g.tokens * g.k)) {
    if (bytes != nullptr) {
      *bytes = carver.bytes();
    }
  }
};

// True if candidate a goes before b: the larger, NaN after every number, the lower index among equals.
template <class A>
struct Before {
  const A* values;
  bool operator()(int32_t a, int32_t b) const {
    const A left = values[a];
    const A right = values[b];
    if (left > right) {
      return true;
    }
    if (left < right) {
      return false;
    }
    const bool left_nan = left != left;
    const bool right_nan = right != right;
    return left_nan == right_nan ? a < b : right_nan;
  }
};

// order[0..count) = the best `count` of n values, best first.
template <class A>
void top_k(const A* values, int64_t n, int64_t count, int32_t* order) {
  std::iota(order, order + n, 0);
  std::partial_sort(order, order + count, order + n, Before<A>{values});
}

template <class A>
void softmax_rows(A* rows, int64_t tokens, int64_t experts) {
  for (int64_t t = 0; t < tokens; ++t) {
    A* row = rows + t * experts;
    A most = -std::numeric_limits<A>::infinity();
    for (int64_t e = 0; e < experts; ++e) {
      most = row[e] > most ? row[e] : most;
    }
    for (int64_t e = 0; e < experts; ++e) {
      row[e] -= most;
    }
    exp_row(row, experts);
    const A sum = lane_sum<A>(experts, [&](int64_t e) { return row[e]; });
    for (int64_t e = 0; e < experts; ++e) {
      row[e] /= sum;
    }
  }
}

// Ranks of the experts outside the kept_groups best groups become -inf.
template <class T, class A>
void mask_groups(const Gating<T>& g, const Buffers<A>& b) {
  const int64_t size = g.experts / g.groups;
  for (int64_t t = 0; t < g.tokens; ++t) {
    A* row = b.rank + t * g.experts;
    for (int64_t group = 0; group < g.groups; ++group) {
      const A* members = row + group * size;
      top_k(members, size, g.group_mode + 1, b.order);
      b.group_scores[group] = g.group_mode == 0 ? members[b.order[0]] : members[b.order[0]] + members[b.order[1]];
    }
    top_k(b.group_scores, g.groups, g.kept_groups, b.order);
    for (int64_t out = g.kept_groups; out < g.groups; ++out) {
      std::fill_n(row + b.order[out] * size, size, -std::numeric_limits<A>::infinity());
    }
  }
}

template <class T, class A>
void select(const Gating<T>& g, const Buffers<A>& b) {
  for (int64_t t = 0; t < g.tokens; ++t) {
    top_k(b.rank + t * g.experts, g.experts, g.k, b.order);
    std::copy_n(b.order, g.k, b.picks + t * g.k);
  }
  for (int64_t t = 0; t < g.tokens; ++t) {
    for (int64_t j = 0; j < g.k; ++j) {
      b.weights[t * g.k + j] = b.scores[t * g.experts + b.picks[t * g.k + j]];
    }
  }
}

template <class T, class A>
void normalise(const Gating<T>& g, const Buffers<A>& b) {
  for (int64_t t = 0; g.divide && t < g.tokens; ++t) {
    A* row = b.weights + t * g.k;
    A sum = 0;
    for (int64_t j = 0; j < g.k; ++j) {
      sum += row[j];
    }
    for (int64_t j = 0; j < g.k; ++j) {
      row[j] /= sum + g.eps;
    }
  }
  for (int64_t i = 0; i < g.tokens * g.k; ++i) {
    b.weights[i] *= g.scale;
  }
}

template <class T, class A = Compute<T>>
void compose(const Call& call) {
  const Gating<T> g = read_gating<T>(call);
  const Buffers<A> b(call.workspace(), g);
  for (int64_t t = 0; t < g.tokens; ++t) {
    load(g.x.at(t), b.scores + t * g.experts);
  }
  if (g.softmax) {
    softmax_rows(b.scores, g.tokens, g.experts);
  } else {
    sigmoid_row(b.scores, g.tokens * g.experts);
  }
  std::copy_n(b.scores, g.tokens * g.experts, b.rank);
  if (g.bias) {
    load(g.bias, b.bias);
    for (int64_t t = 0; t < g.tokens; ++t) {
      for (int64_t e = 0; e < g.experts; ++e) {
        b.rank[t * g.experts + e] += b.bias[e];
      }
    }
  }
  if (g.kept_groups < g.groups) {
    mask_groups(g, b);
  }
  select(g, b);
  normalise(g, b);
  for (int64_t t = 0; t < g.tokens; ++t) {
    store(g.norm_out.at(t), b.scores + t * g.experts);
    store(g.rank.at(t), b.rank + t * g.experts);
    store(g.expert_idx.at(t), b.picks + t * g.k);
    store(g.y.at(t), b.weights + t * g.k);
  }
}

}  // namespace

void run_gating_unfused(const Call& call) {
  by_dtype<float, Half, BFloat16, double>(call.input("x"),
                                          [&](auto type) { compose<typename decltype(type)::type>(call); });
}

size_t gating_unfused_workspace(const Call& call) {
  size_t bytes = 0;
  by_dtype<float, Half, BFloat16, double>(call.input("x"), [&](auto type) {
    using T = typename decltype(type)::type;
    Buffers<Compute<T>>(Carver(), read_gating<T>(call), &bytes);
  });
  return bytes;
}

}  // namespace fusediff::builtin
