// environment.json: where a finding was made. Facts of this machine and build; nothing private: no names of users,
// hosts or folders beyond the targets' files.
#pragma once

#include <string>

#include "campaign/protocol.h"

namespace fusediff {

// fusediff, the compiler, the OS, the CPU and its flags, both targets with name, version and file name.
std::string environment_json(const OpenAnswer& sides);

}  // namespace fusediff
