// What a person sees of a campaign while it runs, and of its end, as text. Only makes the text; prints nothing.
#pragma once

#include <filesystem>
#include <string>

#include "campaign/supervisor.h"

namespace fusediff {

// "1:05  123456 checks (2050/s)  corpus 345  findings 3 (flip 1, unwritten 2)  skips 12  vacuous 345", one line, no
// newline.
std::string progress_line(const FuzzStatus& status, double checks_per_second);

// The summary on stdout, a screen or less: checks by verdict and operator, why some say little, what was found and
// where.
std::string summary_text(const FuzzResult& result, const std::filesystem::path& out);
// The same as one JSON object, one line.
std::string summary_json(const FuzzResult& result, const std::filesystem::path& out);

}  // namespace fusediff
