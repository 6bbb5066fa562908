// A judgement as the finding that a person receives. Runs nothing, judges nothing.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "engine/check.h"
#include "engine/judge.h"
#include "model/call.h"
#include "model/case.h"
#include "model/execution.h"
#include "model/finding.h"

namespace fusediff {

std::string name_of_side(const PathOf& side);  // "builtin:fused"

// The comparison of one path with itself.
Comparison with_itself(const Comparison& comparison, Side side);

// Everything that the judgement says of the case; rates, causes, influence, notes and hashes are the caller's.
// REQUIRES: judgement.evidence is ranked and not empty.
Finding finding_of(const Case& c, const Call& call, const Comparison& comparison, const Judgement& judgement);

// The finding as a first look alone would name it, with how far apart the sides are in powers of two, and which of them
// are finite: without the truth, rounding, damage and infinities look alike, and the first to be explained must not
// speak for the others. REQUIRES: judgement.evidence is not empty.
std::string suspicion_of(const Case& c, const Call& call, const Comparison& comparison, Judgement judgement);

// Hashes of the inputs, equal on both sides, and of the outputs of each. gives: [side][outputs]; empty: every one.
void add_hashes(const Call& call, std::span<const std::span<const std::byte>> inputs,
                const std::array<const Execution*, 2>& executions, const std::array<std::vector<bool>, 2>& gives,
                Finding& finding);
// What each side's target said of its run, as notes: the name of its implementation, what it printed.
void add_words(const std::array<const Execution*, 2>& executions, Finding& finding);

}  // namespace fusediff
