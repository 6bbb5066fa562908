// What it means for a case that the process which ran it ended. Judges endings of processes only; what a run inside a
// living process did is the engine's.
#pragma once

#include <optional>
#include <string>

#include "campaign/child.h"
#include "campaign/protocol.h"
#include "model/case.h"
#include "model/finding.h"

namespace fusediff {

// The finding that an outcome other than kReply and kStopped stands for: hang, memory or crash.
Finding finding_of_death(const Case& c, const OpenAnswer& sides, const Outcome& outcome, double seconds);

// A request to check the case, sent to a child. The finding, if there is one, by verdict or by death; nothing for any
// other verdict, and when the child was stopped. An error is of the case or of the set-up. folder: of the files that
// the case names.
struct Seen {
  std::optional<Finding> finding;
  bool process_ended = false;  // by the case: the child is gone
  bool stopped = false;
};
Result<Seen> check_in_child(Child& child, const Case& c, const OpenAnswer& sides, double seconds,
                            const std::filesystem::path& folder = {});

}  // namespace fusediff
