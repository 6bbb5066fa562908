// The total order that a decide rule states, as integers: a larger key is the better candidate.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/decide.h"

namespace fusediff {

// The key of a candidate that the rule never picks (nan: never).
inline constexpr std::int64_t kNeverPicked = INT64_MIN;

// Keys of one row, [columns], into `keys`. Candidates behind `among` are kNeverPicked.
void rank_keys(const Decision& decision, std::int64_t row, std::vector<std::int64_t>& keys);

std::int64_t candidates(const Decision& decision, std::int64_t row);

}  // namespace fusediff
