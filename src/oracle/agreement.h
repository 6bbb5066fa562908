// Judges whether one path agrees with itself over reruns.
#pragma once

#include <optional>
#include <vector>

#include "model/call.h"
#include "model/execution.h"
#include "model/finding.h"

namespace fusediff {

// No difference is left after `agree`; payload and sign of NaN count only where the rule says so.
bool agrees(const OutputRule& rule, const Tensor& tensor, const std::vector<std::byte>& a,
            const std::vector<std::byte>& b);

// The first wanted output, by stage and then schema order, whose bytes differ beyond what the schema allows between
// reruns (bits where the path is deterministic, else `agree`); nothing when none does. An ending other than the first
// run's counts too: the index is then the number of outputs.
std::optional<std::size_t> differs_from_itself(const Call& call, const Execution& first, const Execution& again,
                                               bool deterministic);

}  // namespace fusediff
