// Says when two equal executions prove little.
#pragma once

#include <string>

#include "model/call.h"
#include "model/execution.h"

namespace fusediff {

// Fewer than one element in this many that is neither zero nor NaN: "nearly all zeros or NaN".
inline constexpr std::int64_t kTellingShare = 64;

// Why equality proves little here, or "" when it proves something.
std::string judge_vacuous(const Call& call, const Execution& execution);

}  // namespace fusediff
