// repro.py of a bundle: one Python file that makes the recorded runs again through the C header of the target library,
// with ctypes and numpy alone, and exits 1 while the bug is there.
#pragma once

#include <string>

#include "engine/bundle.h"

namespace fusediff {

// The script. REQUIRES: bundle.recording is there.
std::string repro_script(const Bundle& bundle);

}  // namespace fusediff
