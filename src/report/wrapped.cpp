#include "report/wrapped.h"

#include <sstream>

namespace fusediff {

std::string wrapped(const std::string& text, std::size_t indent) {
  constexpr std::size_t kColumns = 120;
  std::string lines, line(indent, ' ');
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (line.size() > indent + 2 && line.size() + 1 + word.size() > kColumns) {
      lines += line + "\n";
      line = std::string(indent + 2, ' ') + word;
    } else {
      line += (line.find_first_not_of(' ') == std::string::npos ? "" : " ") + word;
    }
  }
  return lines + line + "\n";
}

}  // namespace fusediff
