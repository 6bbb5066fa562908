// Judges how a run ended: statuses, guard pages, signals, exceptions, time and memory caps. Not what it wrote.
#pragma once

#include <optional>

#include "model/execution.h"
#include "model/finding.h"

namespace fusediff {

// outside: the call breaks `where` and must be REJECTED. UNSUPPORTED is never a finding; nor is REJECTED outside, OK
// inside.
std::optional<Evidence> judge_ending(const Execution& execution, Side side, bool outside);

}  // namespace fusediff
