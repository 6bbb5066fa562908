// What a minimised case teaches beyond itself: the nearest sizes that pass, and what its experiment cannot do without.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/case.h"
#include "model/finding.h"
#include "model/schema.h"

namespace fusediff {

struct Asked {
  std::function<std::optional<Verdict>(const Case& c)> check;  // nothing: illegal, or no time
  const Operator& op;                                          // of the smallest case
  std::uint64_t max_bytes;
  std::string signature;  // of its finding
};

// "passes with E = 1, fails with E = 2": the nearest size on either side that passes, and the values of attributes that
// do. Last, in one line, what does not matter: sizes and attributes that were tried with other values and show the
// same, and what `original` had and `smallest` does without.
std::vector<std::string> neighbours(const Case& original, const Case& smallest, const Asked& asked);

// "needs at least 2 threads": what was tried without and passes; what the original had and does not matter.
std::vector<std::string> experiment_needs(const Case& original, const Case& smallest, const Asked& asked);

}  // namespace fusediff
