// How each side of a bundle was opened, as its environment.json says. Opens nothing and sets nothing.
#pragma once

#include <array>
#include <string>
#include <vector>

namespace fusediff {

struct SideSettings {
  std::string options;                 // for open()
  bool isolated = false;               // it ran in a process of its own
  std::vector<std::string> variables;  // "NAME=VALUE", of that process, as its user gave them
  bool python = false;                 // its file is a Python file: always isolated

  bool operator==(const SideSettings&) const = default;
  // Nothing but --isolate says that it is.
  bool needs_isolate() const { return isolated && !python && variables.empty(); }
};
using Settings = std::array<SideSettings, 2>;  // [Side]

// environment: of the bundle (Bundle::environment). What is not there, or damaged, is as if nobody had given it.
Settings settings_of(const std::string& environment);

// " --isolate --target-option x --target-env A=1", quoted for a shell, each with a space before it. against: the other
// side's words too.
std::string setting_words(const Settings& settings, bool against);

// Text as one word of a shell's line.
std::string shell_word(const std::string& text);

}  // namespace fusediff
