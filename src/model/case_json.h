// The one spelling of a case. Decoding never guesses: unknown keys, wrong types and wrong names are errors with the
// JSON pointer and what would be legal. Whether values, sizes and layouts are legal for an operator is bind()'s
// question.
//
// A fill is an object with one recipe and, where it draws, its "seed" (any 64-bit integer from 0 on):
//   {"normal": {"mean": 0, "std": 1}}   {"uniform": [low, high]}   {"grid": {"range": [low, high], "count": 5}}
//   {"constant": literal}   {"special": {}}   {"finite_special": {}}   {"shifted": {"mean_power": 3, "spread_power":
//   4}}
//   {"negative": {"mean": 0, "std": 1}}   {"ramp": [first, last]}   {"one_hot": {}}   {"bits": "AACAPw=="}
//   {"bits": "file.safetensors#name"}; of roles: {"uniform": {}}   {"skewed": {}}   {"unused": {}}   {"permutation":
//   {}}
// shifted has mean 10^mean_power and spread 10^-spread_power. A literal is a number (an integer stays one), a hex float
// "0x1.8p+1", "inf", "-inf", "nan", "-nan", or "bits:0x7fc00001".
// "unwanted" lists optional outputs that are not asked for.
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
