// For tests: the size of a unit in the last place. Not the oracle's own: a second opinion.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "fusediff_target.h"

namespace fusediff::builtin {

// The spacing of the dtype's numbers around `value`; 1 for integers.
inline double spacing(int32_t dtype, double value) {
  struct Format {
    int mantissa, lowest;
  };
  const Format f = dtype == FUSEDIFF_F32        ? Format{23, -126}
                   : dtype == FUSEDIFF_F16      ? Format{10, -14}
                   : dtype == FUSEDIFF_BF16     ? Format{7, -126}
                   : dtype == FUSEDIFF_F64      ? Format{52, -1022}
                   : dtype == FUSEDIFF_F8E4M3FN ? Format{3, -6}
                   : dtype == FUSEDIFF_F8E5M2   ? Format{2, -14}
                                                : Format{0, 0};
  const int exponent = value == 0 || f.mantissa == 0 ? f.lowest : std::max(std::ilogb(value), f.lowest);
  return std::ldexp(1.0, exponent - f.mantissa);
}

}  // namespace fusediff::builtin
