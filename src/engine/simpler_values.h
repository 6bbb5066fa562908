// Elements of a written-out case made simpler, one step at a time. Whether the finding survives is not asked here.
#pragma once

#include <cstddef>
#include <optional>

#include "model/case.h"
#include "model/tensor.h"

namespace fusediff {

inline constexpr int kValueLevels = 7;  // 0, 1, then 1, 3, 6, 10 and 16 bits of mantissa

// The case with elements [first, first + count) of one input at the level; those that are as simple already stay.
// Nothing when none changes. REQUIRES: the input is written out (engine/explicit_case.h), level in [0, kValueLevels).
std::optional<Case> with_simpler_values(const Case& c, const Tensor& tensor, std::size_t first, std::size_t count,
                                        int level);

}  // namespace fusediff
