#include "report/commands.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace fusediff {
namespace {

std::string shell_word(const std::string& path) {
  constexpr std::string_view kPlain = "/._-+=:,@%";
  bool plain = !path.empty();
  std::string quoted = "'";
  for (const char c : path) {
    plain = plain && (std::isalnum(static_cast<unsigned char>(c)) != 0 || kPlain.find(c) != std::string_view::npos);
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return plain ? path : quoted + "'";
}

bool is_library(const std::string& name) {
  return name.find(".so") != std::string::npos && name.find(':') == std::string::npos;
}

}  // namespace

std::string replay_command(const std::filesystem::path& bundle, const std::string& target, const std::string& against) {
  std::string command = "fusediff replay " + shell_word(bundle.string());
  const auto is_file = [](const std::string& name) {
    return name.find('/') != std::string::npos || name.find(".so") != std::string::npos;
  };
  if (is_file(target)) command += " --target " + shell_word(target);
  // Beside a --target replay looks up no other side.
  if (is_file(against) || (is_file(target) && !against.empty())) command += " --against " + shell_word(against);
  return command;
}

std::string minimize_command(const std::filesystem::path& bundle, const std::array<std::string, 2>& targets,
                             Libraries libraries, const std::string& target, const std::string& against) {
  // What a bundle names is looked up by name and never opened as a file, by this line no more than by replay.
  const auto named = [](const std::string& chosen, const std::string& in_bundle, const char* otherwise) {
    if (!chosen.empty()) return shell_word(chosen);
    const bool is_name = !in_bundle.empty() && std::all_of(in_bundle.begin(), in_bundle.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '_';
    });
    return is_name ? in_bundle : std::string(otherwise);
  };
  const std::string command = "fusediff minimize " + shell_word((bundle / "original.json").string()) + " --target " +
                              named(target, targets[0], "TARGET");
  if (libraries == Libraries::kOne && against.empty()) return command;
  const bool is_told_apart = targets[0] != targets[1];
  return command + " --against " + named(against, is_told_apart ? targets[1] : "", "AGAINST");
}

std::string repro_command(const std::filesystem::path& bundle, OtherLibrary other, const std::string& target,
                          const std::string& against) {
  const std::string command = "python3 " + shell_word((bundle / "repro.py").string()) + " ";
  if (!is_library(target)) {
    return command + "path/to/library.so" + (other == OtherLibrary::kMayBeNamed ? " [path/to/other.so]" : "");
  }
  if (other == OtherLibrary::kNone) return command + shell_word(target);
  return command + shell_word(target) + " " + (is_library(against) ? shell_word(against) : "[path/to/other.so]");
}

std::string report_command(const std::filesystem::path& folder) {
  return "fusediff report " + shell_word(folder.string());
}

}  // namespace fusediff
