// EXPECT: class=invariant op=moe_gating_topk experiment=pair output=expert_idx
// k rounds of "greater than the best so far", from -inf and index 0 on: among ranks that are all NaN or -inf nothing is
// greater, and every round picks expert 0. From vllm 39391.
#include <limits>

#include "planted/gating.h"

namespace fusediff::planted {
namespace {

using namespace kit;

// As above; ranks are overwritten.
void pick_by_rounds(float* rank, int64_t n, int64_t k, int32_t* picks) {
  for (int64_t j = 0; j < k; ++j) {
    float best = -std::numeric_limits<float>::infinity();
    int32_t index = 0;
    for (int64_t e = 0; e < n; ++e) {
      if (rank[e] > best) {
        best = rank[e];
        index = static_cast<int32_t>(e);
      }
    }
    picks[j] = index;
    rank[index] = -std::numeric_limits<float>::infinity();
  }
}

void run(const Call& call) {
  with_gating(call, [&](const auto& g) {
    const Ranked<float> all = built_in_ranks(call, g);
    std::vector<int32_t> picks(static_cast<size_t>(g.k));
    for (int64_t t = 0; t < g.tokens; ++t) {
      const float* rank = all.rank.data() + t * g.experts;
      if (kFaulty) {
        std::vector<float> left(rank, rank + g.experts);
        pick_by_rounds(left.data(), g.experts, g.k, picks.data());
      } else {
        pick_largest(rank, g.experts, g.k, picks.data());
      }
      write_row(g, t, all.score.data() + t * g.experts, rank, picks.data());
    }
  });
}

}  // namespace

constinit const Operator kVllm39391{"moe_gating_topk", PLANTED_LIKE_BUILTIN("moe_gating_topk"), {{"fused", run}}};

}  // namespace fusediff::planted

PLANTED_TARGET("vllm_39391", fusediff::planted::kVllm39391);
