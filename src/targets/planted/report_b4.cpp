// EXPECT: class=undeclared_limit op=mhc_pre_sinkhorn_grad experiment=pair
// Takes only 4 streams, 20 iterations and channels in multiples of 128, and the record does not say so. From
// cann/ops-transformer 6619.
#include "builtin/operators.h"
#include "planted/changed_call.h"
#include "planted/planted.h"
#include "planted/reports.h"

namespace fusediff::planted {
namespace {

using namespace kit;

constexpr int64_t kStreams = 4;
constexpr int64_t kIterations = 20;
constexpr int64_t kChannels = 128;

size_t workspace(const Call& call) { return workspace_of_fused(builtin::kMhcPreSinkhornGrad, call); }

void run(const Call& call) {
  check_report_b4_limits(call);
  run_fused(builtin::kMhcPreSinkhornGrad, call);
}

}  // namespace

void check_report_b4_limits(const Call& call) {
  if (!kFaulty) {
    return;
  }
  const Tensor x = call.input("x");
  require(x.rank() == 4, "161002: x must be [B, S, N, C]");
  const int64_t iterations = call.input("sum_out").size(0) / 2;
  require(x.size(2) == kStreams, "161002: N must be 4, not ", x.size(2));
  require(iterations == kIterations, "161002: num_iters must be 20, not ", iterations);
  require(x.size(3) % kChannels == 0, "161002: C must be a multiple of 128, not ", x.size(3));
}

constinit const Operator kReportB4{
    "mhc_pre_sinkhorn_grad", PLANTED_LIKE_BUILTIN("mhc_pre_sinkhorn_grad"), {{"fused", run, workspace}}};

}  // namespace fusediff::planted

PLANTED_TARGET("report_b4", fusediff::planted::kReportB4);
