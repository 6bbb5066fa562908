// How messages and reports write numbers. The same text on every machine, in the C locale.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "model/dtype.h"

namespace fusediff {

// An element: ten decimals for magnitudes around 1, as reports print f32, else as many digits as tell neighbours apart.
std::string decimal(DType dtype, std::uint64_t bits);
// "0x3f800000": all digits of the dtype.
std::string hex(DType dtype, std::uint64_t bits);
// "1 ULP"; "NaN against a number" for the distance that ulp_distance() gives these.
std::string ulp_words(std::uint64_t distance);
std::string short_decimal(double value);  // %.6g
std::string fixed10(double value);        // %.10f
std::string scientific(double value);     // %+.10e

}  // namespace fusediff
