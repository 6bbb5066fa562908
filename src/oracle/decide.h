// Judges discrete choices: does each side's pick follow from its own ranking, and why do two sides pick differently?
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "model/call.h"
#include "model/execution.h"
#include "model/finding.h"

namespace fusediff {

// The tensors of one decide rule on one side. Empty spans: not to be had (an unwanted output). Not to be copied:
// by_bytes may lie in `full`.
struct Decision {
  Decision() = default;
  Decision(Decision&&) = default;
  Decision& operator=(Decision&&) = default;
  const DecideRule* rule = nullptr;
  const Tensor* by = nullptr;
  const Tensor* pick = nullptr;
  const Tensor* values = nullptr;
  const Tensor* among = nullptr;
  std::span<const std::byte> by_bytes, pick_bytes, value_bytes, among_bytes;
  std::int64_t count = 0;  // slots that must be filled when there are candidates enough
  bool largest = true;
  std::vector<std::byte> full;  // `by` written out where it repeats one element (stride 0)
};

Decision decision_of(const Call& call, std::size_t rule, std::span<const std::span<const std::byte>> inputs,
                     const Execution& execution);

// A pick that does not follow from the side's own ranking, and `values` that are not the ranks picked: wrong_pick,
// zero_sign.
std::vector<Evidence> judge_own_picks(const Call& call, const Decision& decision, Side side);

struct PickJudgement {
  std::optional<Evidence> evidence;
  std::optional<Flip> flip;
  // [elements of pick] true where the difference is free choice among equals (tie: any).
  std::vector<bool> free;
  std::vector<bool> free_rows;  // [rows] true where the picks differ only so: what follows from them differs by right
  std::vector<bool> rows;       // [rows] true where the picks differ and are not free
};

// REQUIRES: the same rule of the same call on both sides.
PickJudgement compare_picks(const Call& call, const Decision& target, const Decision& against);

// log2 of the smallest distance in ULP, over the rows, between the last rank picked and the best one left out; 255 when
// no row leaves one out. For feedback.
std::uint8_t smallest_gap(const Decision& decision);

}  // namespace fusediff
