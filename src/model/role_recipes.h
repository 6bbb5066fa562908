// The recipes of the roles index, counts, offsets and mask (uniform, skewed, unused, permutation) as whole numbers.
// Ordinary numbers: model/fill_numbers.h. h(i) below is CounterHash(seed).at(i), "one of n by x" is x * n >> 64.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "model/fill_numbers.h"

namespace fusediff {

// What the schema asks of a tensor's values, its expressions evaluated.
struct RoleLimits {
  std::int64_t low = 0;  // inclusive; kIndex, kCounts
  std::int64_t high = 0;
  bool distinct = false;
  bool sorted = false;
  std::vector<std::int64_t> also;
  std::optional<std::int64_t> sum;
};

// REQUIRES, of all: fill.kind is kIndexUniform, kSkewed, kUnused or kPermutation. Errors say why no legal value exists.
Result<std::vector<std::int64_t>> draw_index(const Fill& fill, const RoleLimits& limits, const Block& block);
// Each row for itself: counts of `columns` groups; offsets of columns - 1 groups.
Result<std::vector<std::int64_t>> draw_counts(const Fill& fill, const RoleLimits& limits, const Block& block);
Result<std::vector<std::int64_t>> draw_offsets(const Fill& fill, const RoleLimits& limits, const Block& block);
// 1: kept, 0: masked.
std::vector<std::int64_t> draw_mask(const Fill& fill, const Block& block);

}  // namespace fusediff
