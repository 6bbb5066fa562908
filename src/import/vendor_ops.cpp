#include "import/vendor_ops.h"

#include <array>

namespace fusediff {
namespace {

using Names = std::string_view;

// CANN aclnnMoeGatingTopK. norm_type: 0 softmax, 1 sigmoid.
constexpr std::array kGatingInputs = {Names("x"), Names("bias")};
constexpr std::array kGatingOutputs = {Names("y"), Names("expert_idx"), Names("norm_out")};
constexpr std::array kNormTypes = {Names("softmax"), Names("sigmoid")};
constexpr std::array kGatingAttrs = {
    VendorAttr{"k", "k", ""},
    VendorAttr{"k_group", "k_group", ""},
    VendorAttr{"group_count", "group_count", ""},
    VendorAttr{"group_select_mode", "group_select_mode", ""},
    VendorAttr{"renorm", "renorm", ""},
    VendorAttr{"norm_type", "norm_type", "", kNormTypes},
    VendorAttr{"out_flag", "out_flag", ""},
    VendorAttr{"routed_scaling_factor", "routed_scaling_factor", ""},
    VendorAttr{"eps", "eps", ""},
};

// CANN aclnnMhcPreSinkhorn. needBackward: the saved outputs are asked for, which the row's list of outputs says too.
constexpr std::array kMhcInputs = {Names("x"), Names("phi"), Names("alpha"), Names("bias")};
constexpr std::array kMhcOutputs = {Names("hin"),     Names("h_post"),         Names("h_res"),
                                    Names("h_pre"),   Names("hc_before_norm"), Names("inv_rms"),
                                    Names("sum_out"), Names("norm_out")};
constexpr std::array kMhcAttrs = {
    VendorAttr{"hcMult", "", "N"},         VendorAttr{"numIters", "num_iters", ""}, VendorAttr{"hcEps", "hc_eps", ""},
    VendorAttr{"normEps", "norm_eps", ""}, VendorAttr{"needBackward", "", ""},
};

constexpr std::array kVendorOps = {
    VendorOp{"aclnnMoeGatingTopK", "moe_gating_topk", kGatingInputs, kGatingOutputs, kGatingAttrs},
    VendorOp{"aclnnMhcPreSinkhorn", "mhc_pre_sinkhorn", kMhcInputs, kMhcOutputs, kMhcAttrs},
};

}  // namespace

std::span<const VendorOp> vendor_ops() { return kVendorOps; }

}  // namespace fusediff
