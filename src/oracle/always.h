// Judges the `always` rules: what the schema promises of every correct output of one run.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "model/call.h"
#include "model/execution.h"
#include "model/finding.h"

namespace fusediff {

// inputs: [call.inputs] stored elements. NaN breaks no range (non_finite looks at it), and rules that assume finite
// inputs are passed over where an input is not finite.
std::vector<Evidence> judge_always(const Call& call, std::span<const std::span<const std::byte>> inputs,
                                   const Execution& execution, Side side);

}  // namespace fusediff
