// EXPECT: class=unwritten op=mhc_pre_sinkhorn_grad experiment=pair output=grad_bias
// Returns success for an empty batch before the gradients of the parameters are written: grad_x is empty then, the
// other three are not, and a sum over nothing is zero. From cann/ops-transformer 6619.
#include "builtin/operators.h"
#include "planted/changed_call.h"
#include "planted/planted.h"
#include "planted/reports.h"

namespace fusediff::planted {
namespace {

using namespace kit;

size_t workspace(const Call& call) { return workspace_of_fused(builtin::kMhcPreSinkhornGrad, call); }

void run(const Call& call) {
  if (kFaulty && call.input("x").count() == 0) {
    return;
  }
  run_fused(builtin::kMhcPreSinkhornGrad, call);
}

}  // namespace

constinit const Operator kReportB2{
    "mhc_pre_sinkhorn_grad", PLANTED_LIKE_BUILTIN("mhc_pre_sinkhorn_grad"), {{"fused", run, workspace}}};

}  // namespace fusediff::planted

PLANTED_TARGET("report_b2", fusediff::planted::kReportB2);
