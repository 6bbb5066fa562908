// Proof of power: campaigns from an empty corpus over the planted faults, each of which says in its first line what has
// to be found, and over their clean twins and the near misses, where nothing may be. Prints nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "campaign/supervisor.h"
#include "model/finding.h"

namespace fusediff {

// One EXPECT line: class, op, and where stated experiment, stage, output, relation, cause. Without a class: a near
// miss.
using Expectation = std::map<std::string, std::string>;

// A target and all that has to be found in it; nothing: it must stay clean.
struct Planted {
  std::string target;
  std::vector<Expectation> expected;
};

// planted.expect beside the targets, twins added behind the faults. Errors are the user's: not built, not whole.
Result<std::vector<Planted>> read_planted(const std::filesystem::path& folder);

// The class, operator, experiment and so on that a line names, and what it leaves out is free. A stage is the name of
// an output to blame, a cause words of the conclusion with _ for spaces; a relation also what moved in it.
bool is_expected(const Finding& finding, const Expectation& expectation);

struct SelftestRow {
  std::string target;
  std::uint64_t seed = 0;
  std::string expected;  // "flip in moe_gating_topk, stage norm_out", or "nothing"
  bool good = false;
  double seconds = 0;  // until the last expected finding was minimised, bundled and replayed
  std::uint64_t checks = 0;
  std::string smallest;              // dims of the minimised case, of the last
  std::vector<std::string> missing;  // what was not found, or what was and must not
};

// One row. campaign: everything but target, seed, time and out. seconds: for a fault at most, for a clean target
// exactly.
Result<SelftestRow> prove(const Planted& planted, FuzzOptions campaign, std::uint64_t seed, double seconds,
                          const std::atomic<bool>& interrupted);

}  // namespace fusediff
