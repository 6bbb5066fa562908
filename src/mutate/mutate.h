// Makes cases: from nothing, by small changes, from two. Only legal ones leave: each result is repaired with the
// schema. Nothing here runs a target; what a tie needs to know of one is asked through a Probe.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "model/call.h"
#include "model/case.h"
#include "model/schema.h"

namespace fusediff {

// What both sides rank by, for one `decide` rule of an operator.
struct Ranking {
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;     // of `by`: rows flattened, candidates last
  std::vector<std::uint64_t> unfused;  // [elements] bits of `by` on the against side
  std::vector<std::uint64_t> fused;    // [elements] on the target side; empty when it could not be had
  std::vector<std::int64_t> picks;     // [rows * slots] of the against side
  std::int64_t slots = 0;              // picks a row
};

// Runs the case and reports the ranking of op.decide[rule]; nothing when the run failed. Costs a run of each path.
using Probe = std::function<std::optional<Ranking>(const Case& c, std::size_t rule, bool both_sides)>;

// [ExperimentKind] How often each is drawn, of those that the operator's record can answer. Most of what goes wrong
// shows in a pair, which costs the least.
inline constexpr std::array<int, kExperimentKindCount> kExperimentWeights = {16, 1, 3, 4, 2, 2};

struct MutateContext {
  const Operator& op;
  Rng& rng;
  std::uint64_t max_bytes;                          // of all tensors of the case and of the calls in its experiment
  const Probe& probe;                               // may be empty: mutators that need it then do nothing
  std::span<const Operator* const> operators = {};  // that calls in an experiment may be of, beside op
  std::array<int, kExperimentKindCount> experiment_weights = kExperimentWeights;  // 0: never drawn
};

// One way to change a case. Takes a legal one; returns false when it found nothing to change. The caller repairs.
struct Mutator {
  std::string_view name;
  int weight;  // how often it is drawn, against the others
  bool (*apply)(Case& c, MutateContext& context);
};
// The table: one line a mutator.
std::span<const Mutator> mutators();

// A legal case of the operator from nothing but the schema; nothing when the schema's `where` could not be met within
// the byte limit (the loader has refused schemas that can never be met).
std::optional<Case> random_case(MutateContext& context);

// Makes the case legal again with as little change as possible: clamps, fills in and drops what the schema asks, then
// meets `where`, layouts, value rules and the byte limit; then the calls of its experiment likewise, which becomes
// `pair` where the record cannot answer it. False when it could not.
bool repair(Case& c, MutateContext& context);

// Applies one to a few mutators, weighted, then repairs. False when nothing changed or repair failed.
bool mutate(Case& c, MutateContext& context);

// Takes a case and lends it parts of another of the same operator; of another operator: a copy of either. Where an
// experiment makes further calls, the other may become one.
bool crossover(Case& c, const Case& other, MutateContext& context);

// Breaks a `where` of a legal case, for runs that call what the schema forbids; sizes stay sizes and values what the
// roles ask; the experiment becomes `pair`. False, and the case as it was, when a few draws broke none.
bool break_where(Case& c, MutateContext& context);

}  // namespace fusediff
