// One run of each path on a case's own call, and what came back. Judges nothing, repeats nothing, and does not look at
// the case's experiment.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "engine/check.h"
#include "engine/experiment.h"
#include "model/execution.h"

namespace fusediff {

struct RanOutput {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;  // logical elements
  std::uint64_t agreed = 0;      // ULP that the schema's `agree` allows
  bool nan_bits = false;         // payload and sign of NaN count
};

struct RanSide {
  std::string status;  // "ok", "unsupported", "rejected", "failed", "signal", ...: name_of(Ending)
  std::string message;
  bool deterministic = true;       // as its record says of the path
  std::vector<RanOutput> outputs;  // those the case wants, in the order of the target side's record; only with "ok"
};

struct RanCase {
  Hash128 inputs;                               // of all inputs as both sides receive them
  std::array<std::optional<RanSide>, 2> sides;  // [Side]: absent where not wanted
};

std::string_view name_of(Ending ending);

// wanted: [Side].
RanCase run_sides(const Subject& subject, const std::array<bool, 2>& wanted);

}  // namespace fusediff
