// The commands that show something again, as a shell takes them. Runs nothing.
#pragma once

#include <array>
#include <filesystem>
#include <string>

namespace fusediff {

// "fusediff replay BUNDLE", words quoted where a shell needs it. target, against: as the campaign named them; said
// again only where they are files, which replay does not look for by itself.
std::string replay_command(const std::filesystem::path& bundle, const std::string& target = "",
                           const std::string& against = "");
// "fusediff minimize BUNDLE/original.json" with both sides named: as the campaign named them, else by the targets'
// names.
std::string minimize_command(const std::filesystem::path& bundle, const std::array<std::string, 2>& targets,
                             const std::string& target = "", const std::string& against = "");
// "python3 BUNDLE/repro.py LIBRARY", where the campaign named one by its file; else with words in its place.
std::string repro_command(const std::filesystem::path& bundle, const std::string& target = "");
// "fusediff report FOLDER", likewise.
std::string report_command(const std::filesystem::path& folder);

}  // namespace fusediff
