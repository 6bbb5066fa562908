// The library of the three reports together: A in moe_gating_topk, B2 and B4 in mhc_pre_sinkhorn_grad, C in
// moe_permute_grad and moe_unpermute; every other built-in operator is the built-in one.
#include "planted/planted.h"
#include "builtin/operators.h"
#include "planted/changed_call.h"
#include "planted/reports.h"

namespace fusediff::planted {
namespace {

using namespace kit;

size_t mhc_workspace(const Call& call) { return workspace_of_fused(builtin::kMhcPreSinkhornGrad, call); }

void run_mhc(const Call& call) {
  check_report_b4_limits(call);
  run_report_b2(call);
}

}  // namespace

constinit const Operator kMoeGatingTopk{
    "moe_gating_topk", PLANTED_LIKE_BUILTIN("moe_gating_topk"), {{"fused", run_report_a}}};
constinit const Operator kMhcPreSinkhornGrad{
    "mhc_pre_sinkhorn_grad", PLANTED_LIKE_BUILTIN("mhc_pre_sinkhorn_grad"), {{"fused", run_mhc, mhc_workspace}}};
constinit const Operator kMoePermuteGrad{
    "moe_permute_grad", PLANTED_LIKE_BUILTIN("moe_permute_grad"), {{"fused", run_report_c_permute_grad}}};
constinit const Operator kMoeUnpermute{
    "moe_unpermute", PLANTED_LIKE_BUILTIN("moe_unpermute"), {{"fused", run_report_c_unpermute}}};

}  // namespace fusediff::planted

FUSEDIFF_KIT_TARGET("planted" PLANTED_SUFFIX, "1",           //
                    fusediff::builtin::kAdd,                 //
                    fusediff::builtin::kMhcPreSinkhorn,      //
                    fusediff::planted::kMhcPreSinkhornGrad,  //
                    fusediff::planted::kMoeGatingTopk,       //
                    fusediff::builtin::kMoePermute,          //
                    fusediff::planted::kMoePermuteGrad,      //
                    fusediff::planted::kMoeUnpermute,        //
                    fusediff::builtin::kMoeUnpermuteGrad,    //
                    fusediff::builtin::kSigmoid)
