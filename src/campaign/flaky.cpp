#include "campaign/flaky.h"

#include <algorithm>
#include <cmath>

namespace fusediff {
namespace {

constexpr int kMaxTries = 50;
constexpr double kOften = 0.99;
// An experiment reruns what it saw at most so often before it counts: no check makes fewer calls than this part.
constexpr double kMostReruns = 8;

double rate_of_reruns(const Finding& finding) {
  double rate = 1;
  for (const Rate& side : finding.rates) {
    const int runs = side.runs + side.pinned_runs;
    const int differing = side.differing + side.pinned_differing;
    if (runs > 0 && differing > 0) rate = std::min(rate, static_cast<double>(differing) / runs);
  }
  return rate;
}

// That one check shows it, of which each call shows it at the rate that was seen.
double rate_of_calls(const Finding& finding) {
  if (finding.causes.empty()) return 1;
  const CauseRun& seen = finding.causes.front();
  if (seen.calls <= 0 || seen.differing <= 0) return 1;
  const double calls = static_cast<double>(seen.calls);
  const double each = std::min(1.0, static_cast<double>(seen.differing) / calls);
  return 1 - std::pow(1 - each, std::max(1.0, calls / kMostReruns));
}

}  // namespace

int tries_for(const Finding& finding) {
  const bool itself = finding.cls == FindingClass::kNondeterminism;
  const double rate = itself ? rate_of_reruns(finding) : rate_of_calls(finding);
  if (rate >= kOften) return itself ? 2 : 1;
  return std::clamp(static_cast<int>(std::ceil(std::log(1 - kOften) / std::log(1 - rate))), 2, kMaxTries);
}

}  // namespace fusediff
