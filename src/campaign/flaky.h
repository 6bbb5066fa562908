// Findings that do not show every time: how often to look. Runs nothing.
#pragma once

#include "model/finding.h"

namespace fusediff {

// So many tries that a finding which shows at the rate its reruns showed appears with 99 percent: 0.01 = (1 - p)^n.
int tries_for(const Finding& finding);

}  // namespace fusediff
