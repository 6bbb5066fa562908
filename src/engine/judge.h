// Lays the executions of both sides beside each other and lets every oracle look. Runs nothing.
#pragma once

#include <span>
#include <vector>

#include "engine/truth.h"
#include "model/call.h"
#include "model/execution.h"
#include "model/finding.h"

namespace fusediff {

struct Judgement {
  std::vector<Evidence> evidence;
  std::vector<Difference> differences;
  std::vector<ByteRanges> byte_ranges;
  std::vector<Flip> flips;
};

// What a side did alone. call: in its own spelling.
void judge_memory_and_ending(const Call& call, const Execution& execution, Side side, bool outside,
                             Judgement& judgement);

// always, and its own picks. call: in the target side's spelling. REQUIRES: it ended in kOk.
void judge_own_outputs(const Call& call, std::span<const std::span<const std::byte>> inputs, const Execution& execution,
                       Side side, Judgement& judgement);

// How the outputs of the sides differ. REQUIRES: both ended in kOk. compared: [outputs] false where one side does not
// give the output. Without truth (nullptr) numeric differences stay `damage`.
void judge_outputs(const Call& call, std::span<const std::span<const std::byte>> inputs, const Execution& target,
                   const Execution& against, const std::vector<bool>& compared, const Truth* truth,
                   Judgement& judgement);

// Sorts evidence: by class, then stage, then schema order; nan_bits that the schema does not make part of the contract
// are dropped. The lowest stage whose difference is more than nan_bits is to blame.
void rank_evidence(const Call& call, Judgement& judgement);
std::optional<int> stage_to_blame(const Judgement& judgement);

}  // namespace fusediff
