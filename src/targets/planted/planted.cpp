// The library of the three reports together: A in moe_gating_topk, B2 and B4 in mhc_pre_sinkhorn_grad, C in
// moe_permute_grad and moe_unpermute; every other built-in operator is the built-in one.
#include "planted/planted.h"
#include "builtin/operators.h"
#include "planted/changed_call.h"
#include "planted/reports.h"

namespace fusediff::planted {
namespace {

using namespace kit;

size_t workspace(const Call& call) { return workspace_of_fused(builtin::kMhcPreSinkhornGrad, call); }

void run(const Call& call) {
  check_report_b4_limits(call);
  run_fused(kReportB2, call);
}

}  // namespace

constinit const Operator kMhcPreSinkhornGrad{
    "mhc_pre_sinkhorn_grad", PLANTED_LIKE_BUILTIN("mhc_pre_sinkhorn_grad"), {{"fused", run, workspace}}};

}  // namespace fusediff::planted

FUSEDIFF_KIT_TARGET("planted" PLANTED_SUFFIX, "1",           //
                    fusediff::builtin::kAdd,                 //
                    fusediff::builtin::kMhcPreSinkhorn,      //
                    fusediff::planted::kMhcPreSinkhornGrad,  //
                    fusediff::planted::kReportA,             //
                    fusediff::builtin::kMoePermute,          //
                    fusediff::planted::kReportCPermuteGrad,  //
                    fusediff::planted::kReportCUnpermute,    //
                    fusediff::builtin::kMoeUnpermuteGrad,    //
                    fusediff::builtin::kSigmoid)
