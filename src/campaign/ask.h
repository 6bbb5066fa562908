// Requests to a child whose answers are needed whole: what the targets are. A child that dies of them means that the
// target cannot be opened, the user's error.
#pragma once

#include "base/status.h"
#include "campaign/child.h"
#include "campaign/protocol.h"

namespace fusediff {

// How long a child may take to answer a check, when one run may take `seconds`: two sides, each perhaps run again at
// the cap, the reruns that explain, and a start.
double answer_seconds(double seconds);

// seconds: the cap of one run.
Result<OpenAnswer> open_in_child(Child& child, double seconds);
Result<ListAnswer> list_in_child(Child& child, double seconds);

}  // namespace fusediff
