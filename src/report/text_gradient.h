// Gradients beside difference quotients, for the text of a finding. Decides nothing.
#pragma once

#include <string>

#include "model/finding.h"

namespace fusediff {

// Each sweep with what the paths, the f64 backward and the difference gave, and how the quotient settles as eps falls;
// "" where there is none. Lines end with newlines.
std::string gradient_text(const Finding& finding);

}  // namespace fusediff
