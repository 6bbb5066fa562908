// What is done with a case: which runs are made of it. Which runs those are, and who judges them, is the engine's.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace fusediff {

struct Case;

enum class ExperimentKind {
  kPair,      // both paths once on the same bytes
  kRepeat,    // one path again and again on one context
  kThreads,   // one context, many threads
  kRelation,  // one path twice, in two ways that must give the same
  kGradient,  // the backward against the derivative of the forward
  kHistory,   // after earlier calls on the context, against alone
};
inline constexpr int kExperimentKindCount = static_cast<int>(ExperimentKind::kHistory) + 1;

enum class RelationKind {
  kRowAlone,      // a row by itself against the row in its batch
  kRowsPermuted,  // rows in another order
  kBatchSplit,    // the batch in two calls
  kDense,         // every tensor dense against the case's own strides and offsets
  kMoved,         // all tensors at each element step within 64 bytes
  kInplace,       // an output on each input that `inplace` allows, in turn
  kSameValue,     // the same value in every position of a row
  kOneCpu,        // the thread, and what it starts, kept on one CPU
};
inline constexpr int kRelationKindCount = static_cast<int>(RelationKind::kOneCpu) + 1;

// Limits that a case is held to when it is read.
inline constexpr std::int64_t kMostThreads = 64;
inline constexpr std::int64_t kMostRounds = 1000;
inline constexpr std::int64_t kMostRepeats = 1000;
inline constexpr std::size_t kMostCalls = 64;

// Fields that a kind does not use are as here.
struct Experiment {
  ExperimentKind kind = ExperimentKind::kPair;
  std::int64_t count = 0;   // repeat: runs of the case, from 2; threads: how many, from 2
  std::int64_t rounds = 0;  // threads: calls that each makes
  std::uint64_t seed = 0;   // threads: order and pauses; rows_permuted; gradient: directions
  RelationKind relation = RelationKind::kRowAlone;
  std::int64_t row = 0;  // row_alone: which; batch_split: the first of the second part; 0 is legal where there are none
  std::vector<Case> calls;  // threads: the mates; repeat: made between; history: made before. Pair each.

  bool operator==(const Experiment&) const;
};

std::string_view name_of(ExperimentKind kind);
std::optional<ExperimentKind> experiment_named(std::string_view name);
std::string_view name_of(RelationKind kind);
std::optional<RelationKind> relation_named(std::string_view name);

}  // namespace fusediff
