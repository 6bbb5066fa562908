// Do the two sides of a finding lie in one shared library? Opens no file.
#pragma once

#include <array>
#include <string>

#include "model/finding.h"

namespace fusediff {

// environment: of the bundle (Bundle::environment). By the hashes of the two files that it names, else by their file
// names, else by the names of the targets: two builds of one library have one name. A finding about one path alone is
// of one library.
bool are_two_libraries(const Finding& finding, const std::string& environment);

// [Side] "my_ops (my_ops.so)": the target's name and, where the environment says it, its file without folders.
std::array<std::string, 2> library_words(const Finding& finding, const std::string& environment);

// The other side is a library that only its user has: neither the target's own nor the one that comes with fusediff.
bool needs_other_library(const Finding& finding, const std::string& environment);

// One library that was opened in two ways: with other options, or with other variables in its process.
bool is_opened_twice(const Finding& finding, const std::string& environment);

}  // namespace fusediff
