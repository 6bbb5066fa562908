#include "model/number_text.h"

#include <cmath>
#include <cstdio>

namespace fusediff {
namespace {

std::string format(const char* how, double value) {
  char text[400];  // %.10f of the largest double has 320 characters
  std::snprintf(text, sizeof text, how, value);
  return text;
}

}  // namespace

std::string decimal(DType dtype, std::uint64_t bits) {
  if (!is_float(dtype)) return std::to_string(integer_value(dtype, bits));
  const double value = float_value(dtype, bits);
  if (dtype == DType::kF64) return format("%.17g", value);
  const double magnitude = std::abs(value);
  return format(value == 0 || (magnitude >= 1e-3 && magnitude < 1e6) ? "%.10f" : "%.9g", value);
}

std::string hex(DType dtype, std::uint64_t bits) {
  char text[20];
  std::snprintf(text, sizeof text, "0x%0*llx", static_cast<int>(size_of(dtype) * 2),
                static_cast<unsigned long long>(bits));
  return text;
}

std::string ulp_words(std::uint64_t distance) {
  return distance == UINT64_MAX ? "NaN against a number" : std::to_string(distance) + " ULP";
}

std::string short_decimal(double value) { return format("%.6g", value); }
std::string fixed10(double value) { return format("%.10f", value); }
std::string scientific(double value) { return format("%+.10e", value); }

}  // namespace fusediff
