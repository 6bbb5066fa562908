// environment.json: where a finding was made. Facts of this machine and build; nothing private: no names of users,
// hosts or folders beyond the targets' files.
#pragma once

#include <string>

#include "campaign/protocol.h"

namespace fusediff {

// fusediff, the compiler, the OS and its kernel, the CPUs and their flags, both targets with name, version, file name
// and XXH3-128 of the file.
std::string environment_json(const OpenAnswer& sides);

}  // namespace fusediff
