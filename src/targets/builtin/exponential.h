// exp and the logistic function in float and double, from additions, multiplications, divisions and integer operations
// only: the same bits from every compiler, library and vector width, alone or in a loop (no branches, so loops over
// them vectorise).
// Errors, in ULP of the result: exp(float), sigmoid(float) 0.501 (evaluated in double, rounded once); exp(double) 0.9,
// sigmoid(double) 2.5. Defined for every input: exp(-inf) is 0, overflow is infinity, results below the smallest normal
// are rounded to subnormals, NaN gives NaN. Source of the reduction: Cody and Waite, Software Manual for the Elementary
// Functions (1980), chapter 6. The mode must be round to nearest, subnormals not flushed.
#pragma once

#include <bit>
#include <cstdint>

namespace fusediff::builtin {

// Adding it to |v| < 2^51 rounds v to an integer, which then stands in the low bits.
inline constexpr double kRoundToInteger = 0x1.8p52;
inline constexpr double kLog2E = 0x1.71547652b82fep0;
// ln 2 = kLn2High + kLn2Low; n * kLn2High is exact for |n| < 2^20.
inline constexpr double kLn2High = 0x1.62e42feep-1;
inline constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

inline double power_of_two(uint64_t exponent) {
  return std::bit_cast<double>((exponent << 52) + (uint64_t{1023} << 52));
}

// exp(x) for x in [-110, 90] with a relative error below 2^-36; NaN for NaN.
inline double exp_short(double x) {
  const double shifted = x * kLog2E + kRoundToInteger;
  const double n = shifted - kRoundToInteger;
  const double r = (x - n * kLn2High) - n * kLn2Low;
  // Taylor series; |r| <= ln(2)/2, so the first term left out, r^10/10!, is below 2^-36.
  double p = 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  return p * power_of_two(std::bit_cast<uint64_t>(shifted));
}

inline double clamped(double x, double low, double high) {
  const double above = x < low ? low : x;
  return above > high ? high : above;
}

inline float exp(float x) { return static_cast<float>(exp_short(clamped(static_cast<double>(x), -110.0, 90.0))); }

inline double exp(double value) {
  const double x = clamped(value, -746.0, 710.0);
  const double shifted = x * kLog2E + kRoundToInteger;
  const double n = shifted - kRoundToInteger;
  const double high = x - n * kLn2High;
  const double low = n * kLn2Low;
  const double r = high - low;
  const double rest = (high - r) - low;
  // Taylor series; the first term left out, r^14/14!, is below 2^-57.
  double p = 1.0 / 6227020800;
  p = p * r + 1.0 / 479001600;
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  const double near_one = 1.0 + (r + (r * r * p + rest));
  // Two steps, so that neither power of two leaves the range of normal numbers.
  const uint64_t exponent = std::bit_cast<uint64_t>(shifted) - std::bit_cast<uint64_t>(kRoundToInteger);
  const uint64_t half = static_cast<uint64_t>(static_cast<int64_t>(exponent) >> 1);
  return near_one * power_of_two(half) * power_of_two(exponent - half);
}

// 1 / (1 + exp(-x)), written so that nothing overflows and small results keep their digits.
inline float sigmoid(float value) {
  const double x = static_cast<double>(value);
  const double e = exp_short(clamped(x < 0 ? x : -x, -110.0, 90.0));
  return static_cast<float>((x < 0 ? e : 1.0) / (1.0 + e));
}

inline double sigmoid(double x) {
  const double e = exp(x < 0 ? x : -x);
  return (x < 0 ? e : 1.0) / (1.0 + e);
}

}  // namespace fusediff::builtin
