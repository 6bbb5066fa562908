// Text in lines that fit a terminal.
#pragma once

#include <string>

namespace fusediff {

// Lines of at most 120 columns, the first indented, the later ones by two more, broken at spaces; ends with a line end.
std::string wrapped(const std::string& text, std::size_t indent);

}  // namespace fusediff
