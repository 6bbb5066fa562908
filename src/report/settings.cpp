#include "report/settings.h"

#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>

namespace fusediff {
namespace {

using Json = nlohmann::json;

SideSettings side_settings(const Json& side) {
  SideSettings settings;
  const auto text = [&](const char* key) {
    const auto at = side.find(key);
    return at != side.end() && at->is_string() ? at->get<std::string>() : "";
  };
  settings.options = text("options");
  settings.python = text("file").ends_with(".py");
  if (const auto at = side.find("isolated"); at != side.end() && at->is_boolean()) settings.isolated = at->get<bool>();
  const auto variables = side.find("variables");
  if (variables == side.end() || !variables->is_array()) return settings;
  for (const Json& line : *variables) {
    if (line.is_string()) settings.variables.push_back(line.get<std::string>());
  }
  return settings;
}

// A value that begins as an option does stands behind an equals sign.
std::string option_words(const char* option, const std::string& value) {
  const bool apart = !value.starts_with('-');
  return std::string(" ") + option + (apart ? " " : "=") + shell_word(value);
}

}  // namespace

Settings settings_of(const std::string& environment) {
  const Json json = Json::parse(environment, nullptr, false);
  Settings settings;
  const std::array<const char*, 2> sides = {"target", "against"};
  for (std::size_t s = 0; s < sides.size(); ++s) {
    if (json.is_object() && json.contains(sides[s]) && json[sides[s]].is_object())
      settings[s] = side_settings(json[sides[s]]);
  }
  return settings;
}

std::string setting_words(const Settings& settings, bool against) {
  std::string words;
  if (settings[0].needs_isolate() || (against && settings[1].needs_isolate())) words += " --isolate";
  const auto add = [&](const char* option, const char* variable, const SideSettings& side) {
    if (!side.options.empty()) words += option_words(option, side.options);
    for (const std::string& line : side.variables) words += option_words(variable, line);
  };
  add("--target-option", "--target-env", settings[0]);
  if (against) add("--against-option", "--against-env", settings[1]);
  return words;
}

std::string shell_word(const std::string& text) {
  constexpr std::string_view kPlain = "/._-+=:,@%";
  bool plain = !text.empty();
  std::string quoted = "'";
  for (const char c : text) {
    plain = plain && (std::isalnum(static_cast<unsigned char>(c)) != 0 || kPlain.find(c) != std::string_view::npos);
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return plain ? text : quoted + "'";
}

}  // namespace fusediff
