// The child's side: opens the targets and answers requests until the other end closes. Runs in a process of its own,
// which a target may end at any time.
#pragma once

#include "base/status.h"
#include "campaign/protocol.h"
#include "campaign/setup.h"

namespace fusediff {

// Reads requests from descriptor `in`, writes answers to `out`, one line each. Targets are opened by the first request
// that needs them; where they cannot be, each is answered with that error. Throws std::bad_alloc when memory runs out.
Status serve(const Setup& setup, int in, int out);

}  // namespace fusediff
