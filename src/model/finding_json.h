// finding.json: the finding as machines read it. Written with every field; read back to the same struct.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "model/finding.h"

namespace fusediff {

inline constexpr int kFindingVersion = 1;

std::string write_finding(const Finding& finding, int indent = -1);
Result<Finding> parse_finding(std::string_view json);
std::string write_verdict(const Verdict& verdict, int indent = -1);
Result<Verdict> parse_verdict(std::string_view json);

}  // namespace fusediff
