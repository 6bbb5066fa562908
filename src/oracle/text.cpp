#include "oracle/text.h"

#include <cmath>
#include <cstdio>

namespace fusediff {

std::string number_text(DType dtype, std::uint64_t bits) {
  if (!is_float(dtype)) return std::to_string(integer_value(dtype, bits));
  const double value = float_value(dtype, bits);
  char text[64];
  const bool plain = dtype != DType::kF64 && (value == 0 || (std::abs(value) >= 1e-3 && std::abs(value) < 1e6));
  std::snprintf(text, sizeof text, plain ? "%.10f" : dtype == DType::kF64 ? "%.17g" : "%.9g", value);
  return text;
}

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string ulp_text(std::uint64_t distance) {
  if (distance > (std::uint64_t{1} << 53)) return "more than 9e15 ULP";
  return std::to_string(distance) + " ULP";
}

}  // namespace fusediff
