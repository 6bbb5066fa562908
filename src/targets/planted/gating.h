// What planted gatings share: scores and ranks of the built-in fused path in dense memory, the right choice of picks,
// and the writing of a row. No fault stands here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "builtin/moe_gating_topk.h"
#include "planted/changed_call.h"
#include "planted/planted.h"

namespace fusediff::planted {

// [tokens, experts], row-major.
template <class A>
struct Ranked {
  std::vector<A> score, rank;
};

// What the built-in fused path reports; it also writes the other outputs of the call.
template <class T, class A = kit::Compute<T>>
Ranked<A> built_in_ranks(const kit::Call& call, const builtin::Gating<T>& g) {
  Ranked<A> made;
  made.score.resize(static_cast<size_t>(g.tokens * g.experts));
  made.rank.resize(made.score.size());
  const int64_t stride[] = {g.experts, 1};
  ChangedCall changed(call);
  changed.output("norm_out", made.score.data(), stride);
  changed.output("rank", made.rank.data(), stride);
  changed.run(builtin::run_gating_fused);
  return made;
}

// Does a rank go before another of a higher index: numbers before NaN, the larger first, ties to the lower index.
template <class A>
bool stays_ahead(A lower_index, A higher_index) {
  return higher_index != higher_index || lower_index >= higher_index;
}

// picks[0..k) = the k largest of n ranks, by the rule of the schema.
template <class A>
void pick_largest(const A* rank, int64_t n, int64_t k, int32_t* picks) {
  std::vector<bool> taken(static_cast<size_t>(n));
  for (int64_t j = 0; j < k; ++j) {
    int64_t best = -1;
    for (int64_t e = 0; e < n; ++e) {
      if (!taken[static_cast<size_t>(e)] && (best < 0 || !stays_ahead(rank[best], rank[e]))) {
        best = e;
      }
    }
    taken[static_cast<size_t>(best)] = true;
    picks[j] = static_cast<int32_t>(best);
  }
}

// Weights from scores and picks, in the order of the built-in paths; then every output of row t.
template <class T, class A>
void write_row(const builtin::Gating<T>& g, int64_t t, const A* score, const A* rank, const int32_t* picks) {
  std::vector<A> weights(static_cast<size_t>(g.k));
  A sum = 0;
  for (int64_t j = 0; j < g.k; ++j) {
    weights[static_cast<size_t>(j)] = score[picks[j]];
    sum += score[picks[j]];
  }
  sum += g.eps;
  for (A& weight : weights) {
    weight = (g.divide ? weight / sum : weight) * g.scale;
  }
  kit::store(g.norm_out.at(t), score);
  kit::store(g.rank.at(t), rank);
  kit::store(g.expert_idx.at(t), picks);
  kit::store(g.y.at(t), weights.data());
}

// Calls f(Gating<T>) for the dtypes of the operator.
template <class F>
void with_gating(const kit::Call& call, F&& f) {
  kit::by_dtype<float, kit::Half, kit::BFloat16>(
      call.input("x"), [&](auto type) { f(builtin::read_gating<typename decltype(type)::type>(call)); });
}

}  // namespace fusediff::planted
