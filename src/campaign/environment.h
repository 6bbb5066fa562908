// environment.json: where a finding was made. Facts of this machine and build, and the user's own words on how each
// side is opened; nothing private beyond those: no names of users, hosts or folders, nothing of the environment.
#pragma once

#include <string>

#include "campaign/protocol.h"

namespace fusediff {

// fusediff, the compiler, the OS and its kernel, the CPUs and their flags, both targets with name, version, file name,
// XXH3-128 of the file, options, whether in a process of its own, and that process's variables, as given.
std::string environment_json(const OpenAnswer& sides);

}  // namespace fusediff
