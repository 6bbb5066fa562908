// Why a path leaves nothing to judge: its target does not open, or does not offer this call. Judges nothing.
#pragma once

#include <optional>
#include <string>

#include "engine/check.h"
#include "model/execution.h"

namespace fusediff {

// The record does not name the operator or the path: a skip.
std::optional<Verdict> not_in_record(const PathOf& path, const std::string& op);
// open() came back with a status: a harness error.
std::optional<Verdict> will_not_open(const PathOf& path, const Execution& execution);
// UNSUPPORTED: a skip. What was seen of another run still stands.
std::optional<Verdict> unsupported(const PathOf& path, const Execution& execution);

}  // namespace fusediff
