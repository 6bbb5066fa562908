#include "report/commands.h"

#include <algorithm>
#include <cctype>

#include "report/libraries.h"

namespace fusediff {
namespace {

// The file of "NAME_OR_PATH[:path]"; "" where it is a name.
std::string file_of(const std::string& named) {
  const std::size_t colon = named.rfind(':');
  const bool has_path = colon != std::string::npos && named.find('/', colon) == std::string::npos;
  const std::string file = named.substr(0, has_path ? colon : std::string::npos);
  const bool is_file =
      file.find('/') != std::string::npos || file.find(".so") != std::string::npos || file.ends_with(".py");
  return is_file ? file : "";
}

// What a bundle names is looked up by name and never opened as a file, by a line of ours no more than by replay.
std::string named(const std::string& chosen, const std::string& in_bundle, const char* otherwise) {
  if (!chosen.empty()) return shell_word(chosen);
  const bool is_name = !in_bundle.empty() && std::all_of(in_bundle.begin(), in_bundle.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  });
  return is_name ? in_bundle : std::string(otherwise);
}

}  // namespace

Sides sides_of(const Finding& finding, const std::string& environment) {
  return {finding.targets,
          are_two_libraries(finding, environment),
          is_opened_twice(finding, environment),
          settings_of(environment),
          "",
          ""};
}

OtherLibrary other_library(const Finding& finding, const std::string& environment) {
  const bool may = needs_other_library(finding, environment) || is_opened_twice(finding, environment);
  return may ? OtherLibrary::kMayBeNamed : OtherLibrary::kNone;
}

std::string replay_command(const std::filesystem::path& bundle, const Sides& sides) {
  std::string command = "fusediff replay " + shell_word(bundle.string());
  const bool is_target_file = !file_of(sides.target).empty();
  if (is_target_file) command += " --target " + shell_word(sides.target);
  // Beside a --target replay looks up no other side.
  const bool names_other = !file_of(sides.against).empty() || (is_target_file && !sides.against.empty());
  if (names_other) command += " --against " + shell_word(sides.against);
  // Without its --against the other path of one library is opened as the target is.
  const bool one_library = sides.targets[0] == sides.targets[1] && !sides.two_libraries && !sides.opened_twice;
  return command + setting_words(sides.settings, names_other || !one_library);
}

std::string minimize_command(const std::filesystem::path& bundle, const Sides& sides) {
  const std::string target = named(sides.target, sides.targets[0], "TARGET");
  std::string command = "fusediff minimize " + shell_word((bundle / "original.json").string()) + " --target " + target;
  const bool names_other = sides.two_libraries || sides.opened_twice || !sides.against.empty();
  if (names_other) {
    const bool is_told_apart = sides.targets[0] != sides.targets[1] || !sides.two_libraries;
    command += " --against " + named(sides.against, is_told_apart ? sides.targets[1] : "", "AGAINST");
  }
  return command + setting_words(sides.settings, names_other);
}

std::string repro_command(const std::filesystem::path& bundle, OtherLibrary other, const Sides& sides) {
  const std::string target = file_of(sides.target), against = file_of(sides.against);
  std::string command = "python3 " + shell_word((bundle / "repro.py").string()) + " ";
  command += target.empty() ? placeholder(sides.settings[0], "library") : shell_word(target);
  if (other == OtherLibrary::kNone) return command;
  const bool known = !target.empty() && !against.empty();
  return command + " " + (known ? shell_word(against) : "[" + placeholder(sides.settings[1], "other") + "]");
}

std::string placeholder(const SideSettings& side, const std::string& name) {
  return "path/to/" + name + (side.python ? ".py" : ".so");
}

std::string report_command(const std::filesystem::path& folder) {
  return "fusediff report " + shell_word(folder.string());
}

}  // namespace fusediff
