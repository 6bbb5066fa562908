// Judges what a run did to memory around its tensors and to its inputs.
#pragma once

#include <vector>

#include "model/call.h"
#include "model/execution.h"
#include "model/finding.h"

namespace fusediff {

// One Evidence a tensor whose guard bytes, gap or content changed: overrun, input_changed.
std::vector<Evidence> judge_memory(const Call& call, const Execution& execution, Side side);

}  // namespace fusediff
