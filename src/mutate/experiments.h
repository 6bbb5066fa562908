// Experiments as part of a case: which an operator's record can answer, what calls may stand in one, and what one may
// cost. What is done with them is the engine's.
#pragma once

#include <cstdint>
#include <optional>

#include "mutate/mutate.h"

namespace fusediff {

// The operator of that name: the context's own, or one that calls may be of; nullptr: neither.
const Operator* operator_of(const MutateContext& context, std::string_view name);
// For a call within an experiment: of another operator, within so many bytes, always `pair`, without a probe.
MutateContext for_call(const MutateContext& context, const Operator& op, std::uint64_t max_bytes);

// Does the record say what is asked for, so that there can be an answer? The case is a legal one.
bool answers(const Operator& op, ExperimentKind kind);
bool answers(const Operator& op, const Case& c, RelationKind relation);
bool takes_calls(ExperimentKind kind);
// Of one experiment that is made here; a case that is read may have more.
std::size_t most_drawn_calls(ExperimentKind kind);

// Puts another experiment into the case, as the context's weights have it; `dense` comes with a layout that is not. A
// legal case stays legal. False when it is the one that stood there.
bool draw_experiment(Case& c, MutateContext& context);
// A call to make beside the case: equal to it, of its shape with other values, of other sizes, or another case of this
// or another operator, each often. Nothing when what was drawn does not fit beside the others.
std::optional<Case> draw_call(const Case& c, MutateContext& context);

// Bytes of all tensors of a case, its calls apart; the highest number where it is not legal.
std::uint64_t bytes_of_call(const Case& c, const Operator& op);
// Of the case and of all its calls.
std::uint64_t bytes_of_all(const Case& c, const MutateContext& context);

// Makes the experiment of a case that is legal otherwise legal, and affordable: calls repaired or dropped, all within
// the byte limit; rows that are there; runs so many that together they touch a bounded number of bytes. What the record
// cannot answer becomes `pair`.
void repair_experiment(Case& c, MutateContext& context);

}  // namespace fusediff
