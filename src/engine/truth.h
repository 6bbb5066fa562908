// The f64 run of a call: what rounding is measured against.
#pragma once

#include <vector>

#include "engine/check.h"
#include "engine/prepare.h"
#include "oracle/bound.h"

namespace fusediff {

struct Truth {
  std::vector<OutputTruth> outputs;  // [call.outputs]; empty values where there is none
  std::string path;                  // "builtin:unfused"; "" when there is no truth
};

// Tries reference, then unfused, of the against side, the target side and the fallback, every float tensor f64.
Truth compute_truth(const Prepared& prepared, const Comparison& comparison, const CheckOptions& options,
                    Runner& runner);

}  // namespace fusediff
