// The f64 run of a call: what rounding is measured against.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/check.h"
#include "engine/prepare.h"
#include "oracle/bound.h"

namespace fusediff {

struct Truth {
  std::vector<OutputTruth> outputs;  // [call.outputs]; empty values where there is none
  std::string path;                  // "builtin:unfused"; "" when there is no truth
  PathOf by;                         // the same; no target when there is no truth
};

// One path in f64, [inputs] as wide has them. Nothing when it does not offer that.
std::optional<Execution> run_wide(const PathOf& path, const Call& wide, const std::vector<Bytes>& inputs,
                                  Runner& runner);

// Tries reference, then unfused, of the against side, the target side and the fallback, every float tensor f64.
Truth compute_truth(const Prepared& prepared, const Comparison& comparison, const CheckOptions& options,
                    Runner& runner);

}  // namespace fusediff
