// The commands that show something again, as a shell takes them. Runs nothing.
#pragma once

#include <array>
#include <filesystem>
#include <string>

namespace fusediff {

// "fusediff replay BUNDLE", words quoted where a shell needs it. target, against: as the campaign named them; said
// again only where they are files, which replay does not look for by itself, against also beside such a target.
std::string replay_command(const std::filesystem::path& bundle, const std::string& target = "",
                           const std::string& against = "");
// "fusediff minimize BUNDLE/original.json" with both sides named: as the campaign named them, else by the targets'
// names. Sides of one library need no --against where the campaign had none; of two with one name, neither is named by
// it.
enum class Libraries { kOne, kTwo };
std::string minimize_command(const std::filesystem::path& bundle, const std::array<std::string, 2>& targets,
                             Libraries libraries, const std::string& target = "", const std::string& against = "");
// "python3 BUNDLE/repro.py LIBRARY", where the campaign named one by its file; else with words in its place.
// other: the other side is a library of its own, which may be named behind it.
enum class OtherLibrary { kNone, kMayBeNamed };
std::string repro_command(const std::filesystem::path& bundle, OtherLibrary other, const std::string& target = "",
                          const std::string& against = "");
// "fusediff report FOLDER", likewise.
std::string report_command(const std::filesystem::path& folder);

}  // namespace fusediff
