// A case as a file that stands by itself: what is too large for its JSON stands beside it, in a file of its own name.
#pragma once

#include <filesystem>

#include "base/status.h"
#include "model/case.h"

namespace fusediff {

// Writes file, in place of what is there, and where the case's bits are large FILE.safetensors beside it. At any moment
// what `file` holds is a whole case whose tensors are there: a case that names FILE.safetensors is followed by one that
// names FILE.2.safetensors, and the reverse. Other files are left alone.
Status write_case_alone(const std::filesystem::path& file, const Case& c);

}  // namespace fusediff
