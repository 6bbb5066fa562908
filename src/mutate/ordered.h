// Elements as integers in the order of their values, so that "n ULP apart" is a subtraction. Both zeros are 0.
#pragma once

#include <cstdint>

#include "model/dtype.h"

namespace fusediff {

// REQUIRES: not a NaN.
inline std::int64_t ordered_key(DType dtype, std::uint64_t bits) {
  if (!is_float(dtype)) return integer_value(dtype, bits);
  const std::uint64_t sign = std::uint64_t{1} << (size_of(dtype) * 8 - 1);
  const auto magnitude = static_cast<std::int64_t>(bits & (sign - 1));
  return (bits & sign) != 0 ? -magnitude : magnitude;
}

// The element with this key; +0 for 0. REQUIRES: a key of this dtype.
inline std::uint64_t bits_of_key(DType dtype, std::int64_t key) {
  const auto width = static_cast<int>(size_of(dtype) * 8);
  const std::uint64_t sign = std::uint64_t{1} << (width - 1);
  if (!is_float(dtype)) return static_cast<std::uint64_t>(key) & (sign | (sign - 1));
  return key < 0 ? sign | static_cast<std::uint64_t>(-key) : static_cast<std::uint64_t>(key);
}

// The key of the largest finite value of a float dtype.
inline std::int64_t largest_key(DType dtype) {
  return ordered_key(dtype, round_to_bits(dtype, float_format(dtype).max_finite));
}

}  // namespace fusediff
