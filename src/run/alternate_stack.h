// A stack for signal handlers, so that one runs even when the thread's own stack is used up.
#pragma once

namespace fusediff {

// Gives the calling thread an alternate signal stack of its own until it ends, unless it has one that is large enough.
// After the first call on a thread it does nothing and makes no system call.
void ensure_alternate_stack();

}  // namespace fusediff
