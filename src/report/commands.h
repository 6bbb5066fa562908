// The commands that show something again, as a shell takes them. Runs nothing.
#pragma once

#include <array>
#include <filesystem>
#include <string>

#include "model/finding.h"
#include "report/settings.h"

namespace fusediff {

// What a bundle says of its two sides, and what the campaign named them, "" where it named none.
struct Sides {
  std::array<std::string, 2> targets;  // names, of the finding
  bool two_libraries = false;          // report/libraries.h says it, and the next one
  bool opened_twice = false;
  Settings settings;
  std::string target;   // "NAME_OR_PATH[:path]"
  std::string against;  // likewise
};

Sides sides_of(const Finding& finding, const std::string& environment);  // as far as a bundle says it

// "fusediff replay BUNDLE" with the settings of the sides. What the campaign named is said again only where it is a
// file, which replay does not look for by itself, the other side also beside such a target.
std::string replay_command(const std::filesystem::path& bundle, const Sides& sides);
// "fusediff minimize BUNDLE/original.json" with both sides named: as the campaign named them, else by the targets'
// names. Sides of one library need no --against where the campaign had none; of two with one name, neither is named by
// it.
std::string minimize_command(const std::filesystem::path& bundle, const Sides& sides);
// "python3 BUNDLE/repro.py LIBRARY", where the campaign named one by its file; else with words in its place. The script
// knows the settings. other: the other side may be named behind it.
enum class OtherLibrary { kNone, kMayBeNamed };
OtherLibrary other_library(const Finding& finding, const std::string& environment);
std::string repro_command(const std::filesystem::path& bundle, OtherLibrary other, const Sides& sides);
// "path/to/library.so", or a Python file.
std::string placeholder(const SideSettings& side, const std::string& name);
// "fusediff report FOLDER", likewise.
std::string report_command(const std::filesystem::path& folder);

}  // namespace fusediff
