// Judges whose memory came out: bytes that nobody wrote, and bytes that follow what memory held before the call.
#pragma once

#include <vector>

#include "model/call.h"
#include "model/execution.h"
#include "model/finding.h"

namespace fusediff {

// Quick and one-sided: does any whole element of a wanted output still hold the fill? What is legal may look so too.
bool shows_fill(const Call& call, const Execution& execution);

// Runs of one path on the same inputs and fresh contexts, all of which ended in kOk. Each vector has at least one run;
// several make the verdict safe against a path that does not agree with itself.
struct FillRuns {
  std::vector<const Execution*> same;             // fills as in same[0]
  std::vector<const Execution*> other_output;     // only the output fill differs from same[0]
  std::vector<const Execution*> other_workspace;  // only the workspace fill
  std::vector<const Execution*> other_guard;      // only the guard fill
};

struct FillJudgement {
  std::vector<Evidence> evidence;
  std::vector<ByteRanges> ranges;
};

// unwritten: the byte holds the output fill in every run, whichever that was. dirty and overread: the byte is the same
// in all runs of one fill, and another when the fill of output or workspace, or the guard, is another. An output that
// lies on an input has no fill and is passed over.
FillJudgement judge_fills(const Call& call, const FillRuns& runs, Side side);

}  // namespace fusediff
