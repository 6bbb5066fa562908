// The one command that shows a finding again, as a shell takes it. Runs nothing.
#pragma once

#include <filesystem>
#include <string>

namespace fusediff {

// "fusediff replay BUNDLE", the path quoted where a shell needs it.
std::string replay_command(const std::filesystem::path& bundle);

}  // namespace fusediff
