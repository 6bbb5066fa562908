// Judges whether one path agrees with itself over reruns.
#pragma once

#include <optional>

#include "model/call.h"
#include "model/execution.h"
#include "model/finding.h"

namespace fusediff {

// The first wanted output, by stage and then schema order, whose bytes differ beyond what the schema allows between
// reruns (bits where the path is deterministic, else `agree`); nothing when none does. An ending other than the first
// run's counts too: the index is then the number of outputs.
std::optional<std::size_t> differs_from_itself(const Call& call, const Execution& first, const Execution& again,
                                               bool deterministic);

}  // namespace fusediff
