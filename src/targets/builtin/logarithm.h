// The natural logarithm in float and double, from additions, multiplications, divisions and integer operations only:
// the same bits from every compiler and library.
// Errors, in ULP of the result: log(double) 1, log(float) 0.501 (evaluated in double, rounded once). Defined for every
// input: log of either zero is -inf, of infinity infinity, of a negative number and of NaN NaN.
// Source of the method and of the coefficients: fdlibm, e_log.c (Sun Microsystems, 1993): x = 2^n (1 + f) with 1 + f in
// [sqrt(2)/2, sqrt(2)), s = f / (2 + f), log(1 + f) = f - (f^2/2 - s (f^2/2 + R(s^2))), |error of R| < 2^-58.45.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace fusediff::builtin {

inline double log(double x) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  constexpr double kLn2Upper = 6.93147180369123816490e-01;  // its last 32 bits are zero: n * kLn2Upper is exact
  constexpr double kLn2Rest = 1.90821492927058770002e-10;
  if (!(x > 0 && x <= kLargest)) {
    return x == 0 ? -std::numeric_limits<double>::infinity() : x > 0 ? x : std::numeric_limits<double>::quiet_NaN();
  }
  int64_t n = 0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 0x1p54;
    n = -54;
  }
  // The exponent of x / (sqrt(2) / 2), so that what is left lies around 1.
  constexpr uint64_t kRootOfHalf = 0x3fe6a09e667f3bcd;
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const int64_t exponent = static_cast<int64_t>(bits - kRootOfHalf) >> 52;
  const double f = std::bit_cast<double>(bits - (static_cast<uint64_t>(exponent) << 52)) - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double r = 1.479819860511658591e-01;
  r = r * z + 1.531383769920937332e-01;
  r = r * z + 1.818357216161805012e-01;
  r = r * z + 2.222219843214978396e-01;
  r = r * z + 2.857142874366239149e-01;
  r = r * z + 3.999999999940941908e-01;
  r = r * z + 6.666666666666735130e-01;
  r *= z;
  const double half_square = 0.5 * f * f;
  const double k = static_cast<double>(n + exponent);
  return k * kLn2Upper - ((half_square - (s * (half_square + r) + k * kLn2Rest)) - f);
}

inline float log(float x) { return static_cast<float>(log(static_cast<double>(x))); }

}  // namespace fusediff::builtin
