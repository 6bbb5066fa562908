#include "report/replay_command.h"

#include <cctype>
#include <string_view>

namespace fusediff {

std::string replay_command(const std::filesystem::path& bundle) {
  constexpr std::string_view kPlain = "/._-+=:,@%";
  const std::string path = bundle.string();
  bool plain = !path.empty();
  std::string quoted = "'";
  for (const char c : path) {
    plain = plain && (std::isalnum(static_cast<unsigned char>(c)) != 0 || kPlain.find(c) != std::string_view::npos);
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return "fusediff replay " + (plain ? path : quoted + "'");
}

}  // namespace fusediff
