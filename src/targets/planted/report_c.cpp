// EXPECT: class=rounding op=moe_unpermute experiment=pair stage=out output=out
// EXPECT: class=rounding op=moe_permute_grad experiment=pair stage=grad_tokens output=grad_tokens
// Sums over picks are kept in the storage dtype whatever `compute` says: one rounding for each pick where the unfused
// path has one in all. From NVIDIA/TransformerEngine 1336.
#include "builtin/operators.h"
#include "planted/changed_call.h"
#include "planted/planted.h"
#include "planted/reports.h"

namespace fusediff::planted {
namespace {

using namespace kit;

void run_in_storage(const Operator& op, const Call& call) {
  ChangedCall changed(call);
  if (kFaulty) {
    changed.text("compute", "storage");
  }
  changed.run(op.paths[0].run);
}

void run_permute_grad(const Call& call) { run_in_storage(builtin::kMoePermuteGrad, call); }
void run_unpermute(const Call& call) { run_in_storage(builtin::kMoeUnpermute, call); }

}  // namespace

constinit const Operator kReportCPermuteGrad{
    "moe_permute_grad", PLANTED_LIKE_BUILTIN("moe_permute_grad"), {{"fused", run_permute_grad}}};
constinit const Operator kReportCUnpermute{
    "moe_unpermute", PLANTED_LIKE_BUILTIN("moe_unpermute"), {{"fused", run_unpermute}}};

}  // namespace fusediff::planted

PLANTED_TARGET("report_c", fusediff::planted::kReportCPermuteGrad, fusediff::planted::kReportCUnpermute);
