// The one spelling of a case. Decoding never guesses: unknown keys, wrong types and wrong names are errors with the
// JSON pointer and what would be legal. Whether values, sizes and layouts are legal for an operator is bind()'s
// question.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/status.h"
#include "model/case.h"

namespace fusediff {

inline constexpr int kCaseVersion = 1;
inline constexpr std::size_t kMaxCaseBytes = 1 << 20;
inline constexpr int kMaxCaseNesting = 32;

// folder: where "file.safetensors#name" is looked for; such names are refused when it is empty.
Result<Case> parse_case(std::string_view json, const std::filesystem::path& folder = {});
// Keys in a fixed order, floats as shortest text that reads back to the same bits (hex floats in "set"); one line when
// indent is -1. parse_case(write_case(c)) == c.
std::string write_case(const Case& c, int indent = -1);

}  // namespace fusediff
