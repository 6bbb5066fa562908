// EXPECT: class=flip op=moe_gating_topk experiment=pair stage=norm_out output=expert_idx
// One step is now and then one ULP low: sigmoids of scores above 2 in magnitude, where the curve is flat, take the
// reciprocal from an estimate of 13 bits and one Newton step, which never ends above the quotient. A pick flips only
// where this breaks a tie that exists after the bias. From cann/ops-transformer 6944.
#include "planted/reports.h"

#include <bit>
#include <cmath>

#include "builtin/exponential.h"
#include "planted/gating.h"

namespace fusediff::planted {
namespace {

using namespace kit;

constexpr float kFlat = 2.0f;

// 1 / d to 13 bits, cut off, as a vector unit estimates it.
float estimate(double d) {
  constexpr uint32_t kKept = 0xffffffffu << (24 - 13);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(static_cast<float>(1.0 / d)) & kKept);
}

float sigmoid_one_low(float x) {
  if (!kFaulty || !(std::fabs(x) > kFlat)) {
    return builtin::sigmoid(x);
  }
  const double e = builtin::exp_short(builtin::clamped(-std::fabs(static_cast<double>(x)), -110.0, 90.0));
  const double d = 1.0 + e;
  const double first = static_cast<double>(estimate(d));
  const double reciprocal = first * (2.0 - d * first);
  return static_cast<float>(x < 0 ? e * reciprocal : reciprocal);
}

template <class T>
void gate_row(const builtin::Gating<T>& g, int64_t t, float* score, float* rank, int32_t* picks) {
  load(g.x.at(t), score);
  for (int64_t e = 0; e < g.experts; ++e) {
    score[e] = sigmoid_one_low(score[e]);
    rank[e] = g.bias ? score[e] + convert<float>(g.bias(e)) : score[e];
  }
  pick_largest(rank, g.experts, g.k, picks);
  write_row(g, t, score, rank, picks);
}

void run(const Call& call) {
  with_gating(call, [&](const auto& g) {
    if (g.softmax || g.kept_groups < g.groups) {
      return builtin::run_gating_fused(call);
    }
    std::vector<float> score(static_cast<size_t>(g.experts));
    std::vector<float> rank(score.size());
    std::vector<int32_t> picks(static_cast<size_t>(g.k));
    for (int64_t t = 0; t < g.tokens; ++t) {
      gate_row(g, t, score.data(), rank.data(), picks.data());
    }
  });
}

}  // namespace

constinit const Operator kReportA{"moe_gating_topk", PLANTED_LIKE_BUILTIN("moe_gating_topk"), {{"fused", run}}};

}  // namespace fusediff::planted

PLANTED_TARGET("report_a", fusediff::planted::kReportA);
