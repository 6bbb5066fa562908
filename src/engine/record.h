// Writes down the runs that a case is about: every call as its side spells it, the bytes of every input, and what came
// back when the runs were made once more. Makes the runs, judges nothing, and keeps no file.
#pragma once

#include "base/status.h"
#include "engine/experiment.h"
#include "model/recording.h"

namespace fusediff {

// run: false: no path of the case itself is run, for one that ends the process; outputs are empty then, and a relation
// has every way in which its path could be run. (Saved inputs are still computed by the path that computes them.)
// An error is that the case cannot be asked here: what check() calls a skip or vacuous, with its reason.
Result<Recording> record(const Subject& subject, bool run);

}  // namespace fusediff
