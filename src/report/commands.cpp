#include "report/commands.h"

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

}  // namespace

std::string replay_command(const std::filesystem::path& bundle) {
  return "fusediff replay " + shell_word(bundle.string());
}

std::string report_command(const std::filesystem::path& folder) {
  return "fusediff report " + shell_word(folder.string());
}

}  // namespace fusediff
