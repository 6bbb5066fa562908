// EXPECT: class=gradient op=mhc_pre_sinkhorn_grad experiment=gradient
// Drift: what fits on the chip is summed over tokens in f32; from 1024 elements of x on the running sums are handed
// from token to token through memory in 16 bits, and each hand-over rounds. The gradients of the parameters are off by
// two hundredths of their own size and small ones change sign. The forward is right. From cann/ops-transformer 6619.
#include "planted/mhc_tokens.h"

#include "builtin/operators.h"
#include "planted/changed_call.h"

namespace fusediff::planted {
namespace {

using namespace kit;

constexpr int64_t kOnChip = 1024;  // elements of x: tokens times N * C

size_t workspace(const Call& call) { return workspace_of_fused(builtin::kMhcPreSinkhornGrad, call); }

float handed_on(float sum) { return kFaulty ? convert<float>(convert<BFloat16>(sum)) : sum; }

void add(std::vector<float>& sums, const std::vector<float>& part) {
  for (size_t i = 0; i < sums.size(); ++i) {
    sums[i] = handed_on(sums[i] + part[i]);
  }
}

void run(const Call& call) {
  const builtin::MhcSizes s = mhc_sizes(call);
  if (s.tokens() * s.width() < kOnChip) {
    return run_fused(builtin::kMhcPreSinkhornGrad, call);
  }
  ParameterGrads sums(s), part(s);
  TokenCalls calls(call);
  for (int64_t t = 0; t < s.tokens(); ++t) {
    calls.run(t, part);
    add(sums.bias, part.bias);
    add(sums.alpha, part.alpha);
    add(sums.phi, part.phi);
  }
  store_parameters(call, s, sums);
}

}  // namespace

constinit const Operator kReportB1{
    "mhc_pre_sinkhorn_grad", PLANTED_LIKE_BUILTIN("mhc_pre_sinkhorn_grad"), {{"fused", run, workspace}}};
constinit const Operator kReportB1Forward{"mhc_pre_sinkhorn",
                                          PLANTED_LIKE_BUILTIN("mhc_pre_sinkhorn"),
                                          {{"fused", builtin::run_mhc_fused, builtin::mhc_fused_workspace}}};

}  // namespace fusediff::planted

PLANTED_TARGET("report_b1", fusediff::planted::kReportB1Forward, fusediff::planted::kReportB1);
