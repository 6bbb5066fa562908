// Findings that do not show every time: how often to look. Runs nothing.
#pragma once

#include "model/finding.h"

namespace fusediff {

// So many tries that a finding which shows at the rate that was seen appears with 99 percent: 0.01 = (1 - p)^n. The
// rate is that of its reruns alone, for one that differs only beside other calls that of the calls that differed.
int tries_for(const Finding& finding);

}  // namespace fusediff
