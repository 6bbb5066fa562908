// How oracles write a number in a sentence.
#pragma once

#include <cstdint>
#include <string>

#include "model/dtype.h"

namespace fusediff {

// Enough digits to tell the value from its neighbours: 10 decimals for the magnitudes of f32 around 1, as reports print
// it, else the shortest of 9 (17 for f64) significant digits.
std::string number_text(DType dtype, std::uint64_t bits);
// %.6g.
std::string short_number(double value);
// "1 ULP", "12 ULP"; beyond 2^53 "more than 9e15 ULP".
std::string ulp_text(std::uint64_t distance);

}  // namespace fusediff
