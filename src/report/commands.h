// The commands that show something again, as a shell takes them. Runs nothing.
#pragma once

#include <filesystem>
#include <string>

namespace fusediff {

// "fusediff replay BUNDLE", the path quoted where a shell needs it.
std::string replay_command(const std::filesystem::path& bundle);
// "fusediff report FOLDER", likewise.
std::string report_command(const std::filesystem::path& folder);

}  // namespace fusediff
