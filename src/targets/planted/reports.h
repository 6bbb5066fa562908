// The faulty fused paths of the three reports, each in the file of its name; the library `planted` has them together.
#pragma once

#include "kit/call.h"

namespace fusediff::planted {

void run_report_a(const kit::Call& call);            // moe_gating_topk
void run_report_b2(const kit::Call& call);           // mhc_pre_sinkhorn_grad
void check_report_b4_limits(const kit::Call& call);  // mhc_pre_sinkhorn_grad: REJECTED outside them
void run_report_c_permute_grad(const kit::Call& call);
void run_report_c_unpermute(const kit::Call& call);

}  // namespace fusediff::planted
