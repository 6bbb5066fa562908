// EXPECT: class=flip op=moe_gating_topk experiment=pair stage=rank output=expert_idx
// Ties are to go to the lower index, and are broken by subtracting the index times 3e-7 from the rank before comparing:
// ranks that are close and not equal are reordered too. From sglang 31768.
#include "planted/gating.h"

namespace fusediff::planted {
namespace {

using namespace kit;

constexpr float kStep = 3e-7f;

void run(const Call& call) {
  with_gating(call, [&](const auto& g) {
    Ranked<float> all = built_in_ranks(call, g);
    std::vector<int32_t> picks(static_cast<size_t>(g.k));
    for (int64_t t = 0; t < g.tokens; ++t) {
      const float* score = all.score.data() + t * g.experts;
      float* rank = all.rank.data() + t * g.experts;
      for (int64_t e = 0; kFaulty && e < g.experts; ++e) {
        rank[e] -= static_cast<float>(e) * kStep;
      }
      pick_largest(rank, g.experts, g.k, picks.data());
      write_row(g, t, score, rank, picks.data());
    }
  });
}

}  // namespace

constinit const Operator kSglang31768{"moe_gating_topk", PLANTED_LIKE_BUILTIN("moe_gating_topk"), {{"fused", run}}};

}  // namespace fusediff::planted

PLANTED_TARGET("sglang_31768", fusediff::planted::kSglang31768);
