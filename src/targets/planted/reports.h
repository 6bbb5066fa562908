// The faulty fused paths of the three reports, each in the file of its name; the library `planted` has them together.
#pragma once

#include "kit/target.h"

namespace fusediff::planted {

extern const kit::Operator kReportA;             // moe_gating_topk
extern const kit::Operator kReportB2;            // mhc_pre_sinkhorn_grad
extern const kit::Operator kReportB4;            // mhc_pre_sinkhorn_grad
extern const kit::Operator kReportCPermuteGrad;  // moe_permute_grad
extern const kit::Operator kReportCUnpermute;    // moe_unpermute

// REJECTED outside the limits of report B4.
void check_report_b4_limits(const kit::Call& call);

}  // namespace fusediff::planted
