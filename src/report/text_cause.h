// The part of a finding's text that says what was run and what it takes: the experiment, and the runs that split the
// cause.
#pragma once

#include <string>

#include "model/case.h"
#include "model/finding.h"

namespace fusediff {

// "threads: 8 of 4 calls each, beside mhc_pre_sinkhorn_grad (B=1 S=2) and add (R=3 C=1)"; "" for a pair.
std::string experiment_text(const Experiment& experiment);

// The conclusion, and a line for each run with calls, how many differed, and whether always alike; "" without any.
std::string cause_lines(const Finding& finding);

// How often the whole experiment showed a contamination, and whether the call alone agrees with itself.
std::string shown_line(const Finding& finding);

}  // namespace fusediff
