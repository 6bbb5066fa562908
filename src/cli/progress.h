// What a person sees of a campaign while it runs, and of its end, as text. Only makes the text; prints nothing.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "campaign/supervisor.h"

namespace fusediff {

// "1:05  123456 checks (2050/s)  corpus 345  findings 3 (flip 1, unwritten 2)  skips 12  vacuous 345", one line, no
// newline.
std::string progress_line(const FuzzStatus& status, double checks_per_second);

// One line for each operator of which more than half of the checks were skipped, with the usual reason.
std::vector<std::string> warnings(const FuzzStatus& status);
// Checks there were, and not one ran both paths.
bool compared_nothing(const FuzzStatus& status);

// The summary on stdout, a screen or less: checks by verdict and operator, why some say little, what was found and
// where.
std::string summary_text(const FuzzResult& result, const std::filesystem::path& out);
// The same as one JSON object, one line.
std::string summary_json(const FuzzResult& result, const std::filesystem::path& out);

}  // namespace fusediff
