#include "campaign/flaky.h"

#include <algorithm>
#include <cmath>

namespace fusediff {
namespace {

constexpr int kMaxTries = 50;

}  // namespace

int tries_for(const Finding& finding) {
  if (finding.cls != FindingClass::kNondeterminism && finding.cls != FindingClass::kContamination) return 1;
  double rate = 1;
  for (const Rate& side : finding.rates) {
    const int runs = side.runs + side.pinned_runs;
    const int differing = side.differing + side.pinned_differing;
    if (runs > 0 && differing > 0) rate = std::min(rate, static_cast<double>(differing) / runs);
  }
  if (rate >= 0.99) return 2;
  return std::clamp(static_cast<int>(std::ceil(std::log(0.01) / std::log(1 - rate))), 2, kMaxTries);
}

}  // namespace fusediff
