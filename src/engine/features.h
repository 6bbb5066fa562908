// Coarse facts of a check, for the fuzzer's feedback. They judge nothing.
#pragma once

#include <vector>

#include "engine/check.h"
#include "model/call.h"
#include "model/execution.h"

namespace fusediff {

Features features_of(const Call& call, const std::vector<std::span<const std::byte>>& inputs, const Execution& target,
                     const Execution& against, const std::vector<bool>& compared);

}  // namespace fusediff
