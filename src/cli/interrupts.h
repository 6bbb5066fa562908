// Ctrl-C and SIGTERM, for commands that clean up or keep something when they end early. The first is noted, the second
// ends the program.
#pragma once

#include <atomic>

namespace fusediff {

// From now on signals are noted; the flag says so, and can be given to a Child as its `stop`.
const std::atomic<bool>& catch_interrupts();
bool is_interrupted();
// 128 and the signal, as a shell says it: 130 after Ctrl-C.
int interrupted_exit_code();

}  // namespace fusediff
