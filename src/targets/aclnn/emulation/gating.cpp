// aclnnMoeGatingTopK by the built-in fused path; the faulty edition has the sigmoid of report A.
#include "planted/gating.h"
#include "aclnn/emulation/builtin_call.h"
#include "planted/reports.h"

using namespace fusediff::emulated;
using namespace fusediff;

namespace {

struct Attributes {
  int64_t k, kept, groups, mode, renorm, norm_type;
  bool out_flag;
  double scale, eps;
};

Plan gate(const Tensor& x, const Tensor* bias, const Attributes& a, const Tensor& y, const Tensor& picks,
          const Tensor& score) {
  kit::require(x.shape.size() == 2, "x must be [tokens, experts]");
  kit::require(a.norm_type == 1 || a.renorm == 1, "softmax without renorm is not emulated");
  auto call = std::make_shared<BuiltinCall>(planted::kReportA);
  call->input("x", x);
  call->input("bias", bias == nullptr ? absent(x.type, {x.shape[1]}) : *bias, bias != nullptr);
  call->output("norm_out", score, a.out_flag);
  call->output("rank", absent(aclnn::kFloat, x.shape), false);
  call->output("expert_idx", picks);
  call->output("y", y);
  call->integer("k", a.k);
  call->integer("k_group", a.kept);
  call->integer("group_count", a.groups);
  call->integer("group_select_mode", a.mode);
  call->integer("renorm", 1);
  call->text("norm_type", a.norm_type == 1 ? "sigmoid" : "softmax");
  call->integer("out_flag", a.out_flag ? 1 : 0);
  call->real("routed_scaling_factor", a.scale);
  call->real("eps", a.eps);
  planted::with_gating(call->call(nullptr), [](const auto&) {});  // which checks it
  return {[call](void* workspace, Context&) { call->run(workspace); }, call->workspace_bytes()};
}

}  // namespace

ACL_ENTRY int aclnnMoeGatingTopKGetWorkspaceSize(const aclTensor* x, const aclTensor* bias, int64_t k, int64_t kept,
                                                 int64_t groups, int64_t mode, int64_t renorm, int64_t norm_type,
                                                 bool out_flag, double scale, double eps, const aclTensor* y,
                                                 const aclTensor* picks, const aclTensor* score, uint64_t* bytes,
                                                 aclOpExecutor** executor) {
  return plan(
      "aclnnMoeGatingTopK", bytes, executor, {x, y, picks, score},
      [&] {
        return gate(*x, bias, {k, kept, groups, mode, renorm, norm_type, out_flag, scale, eps}, *y, *picks, *score);
      },
      aclnn::kInnerTiling);
}
ACLNN_SECOND_STAGE(aclnnMoeGatingTopK)
