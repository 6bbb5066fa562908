// The arithmetic of the kernels, one function for the device and for the host: dtypes, exp, the logistic function and
// roots, from IEEE operations only and therefore with equal bits on both (no contraction, no flush to zero). The values
// are those of kit/number.h and builtin/exponential.h, which a test holds. No kernel stands here.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kit/number.h"

// FUSEDIFF_HD: a function for the device and the host. FUSEDIFF_KERNEL: begins the lambda that a stream launches.
#if defined(__CUDACC__)
#define FUSEDIFF_HD __host__ __device__
#define FUSEDIFF_KERNEL [=] __device__
#else
#define FUSEDIFF_HD
#define FUSEDIFF_KERNEL [=]
#endif

namespace fusediff::cuda {

// Threads of a block.
inline constexpr int kThreads = 128;

using kit::BFloat16;
using kit::Compute;
using kit::F8E4M3;
using kit::F8E5M2;
using kit::Half;

template <class To, class From>
FUSEDIFF_HD To bits_as(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &value, sizeof(To));
  return to;
}

// The value of a narrow float, exact.
template <class T>
FUSEDIFF_HD float decode_narrow(T value) {
  constexpr int kShift = 23 - T::kMantissa;
  constexpr uint32_t kMagnitude = static_cast<uint32_t>(T::kSign - 1);
  const uint32_t magnitude = value.bits & kMagnitude;
  const uint32_t sign = static_cast<uint32_t>(value.bits & T::kSign) << (32 - sizeof(T) * 8);
  uint32_t bits = magnitude << kShift;
  if constexpr (T::kBias != 127) {
    if (magnitude > T::kLargest) {
      bits |= 0x7f800000u;
    } else if (magnitude >= 1u << T::kMantissa) {
      bits += static_cast<uint32_t>(127 - T::kBias) << 23;
    } else {  // subnormal: an integer times the smallest step
      const float step = bits_as<float>(static_cast<uint32_t>(127 + 1 - T::kBias - T::kMantissa) << 23);
      bits = bits_as<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude)) * step);
    }
  }
  return bits_as<float>(bits | sign);
}

// `value` (float or double) rounded once, to nearest even.
template <class T, class Source>
FUSEDIFF_HD T encode_narrow(Source value) {
  using Wide = std::conditional_t<sizeof(Source) == 8, uint64_t, uint32_t>;
  constexpr int kMantissa = sizeof(Source) == 8 ? 52 : 23;
  constexpr int kBias = sizeof(Source) == 8 ? 1023 : 127;
  constexpr int kShift = kMantissa - T::kMantissa;
  constexpr Wide kSign = Wide{1} << (sizeof(Source) * 8 - 1);
  constexpr Wide kInfinity = static_cast<Wide>(2 * kBias + 1) << kMantissa;
  constexpr Wide kSmallestNormal = static_cast<Wide>(kBias + 1 - T::kBias) << kMantissa;
  constexpr Wide kLargest = T::kLargest;
  constexpr Wide kBeyond = T::kBeyond;
  constexpr Wide kQuiet = kBeyond | (Wide{1} << (T::kMantissa - 1));
  const Wide all = bits_as<Wide>(value);
  const Wide magnitude = all & (kSign - 1);
  Wide bits;
  if (kBias != T::kBias && magnitude < kSmallestNormal) {
    // An addition whose last place is the smallest step rounds in hardware.
    constexpr Wide kMagic = static_cast<Wide>(kBias + kMantissa + 1 - T::kBias - T::kMantissa) << kMantissa;
    bits = bits_as<Wide>(bits_as<Source>(magnitude) + bits_as<Source>(kMagic)) - kMagic;
  } else {
    const Wide nearest = magnitude + ((Wide{1} << (kShift - 1)) - 1) + ((magnitude >> kShift) & 1);
    bits = (nearest >> kShift) - (static_cast<Wide>(kBias - T::kBias) << T::kMantissa);
    if (magnitude >= kInfinity || bits > kLargest) {
      bits = magnitude > kInfinity ? kQuiet : kBeyond;
    }
  }
  const Wide sign = (all & kSign) >> (sizeof(Source) * 8 - sizeof(T) * 8);
  return T{static_cast<typename T::bits_type>(bits | sign)};
}

// `value` as a To: exact where To holds it, else rounded once.
template <class To, class From>
FUSEDIFF_HD To as_dtype(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (kit::Narrow<From>) {
    return as_dtype<To>(decode_narrow(value));
  } else if constexpr (kit::Narrow<To>) {
    return encode_narrow<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

// Reads an element in the type to compute in.
template <class T>
FUSEDIFF_HD Compute<T> widen(T value) {
  return as_dtype<Compute<T>>(value);
}

inline FUSEDIFF_HD double power_of_two(uint64_t exponent) {
  return bits_as<double>((exponent << 52) + (uint64_t{1023} << 52));
}

// exp(x) for x in [-110, 90] with a relative error below 2^-36 (Cody and Waite 1980, chapter 6; a Taylor series).
inline FUSEDIFF_HD double exp_short(double x) {
  const double shifted = x * 0x1.71547652b82fep0 + 0x1.8p52;
  const double n = shifted - 0x1.8p52;
  const double r = (x - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
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
  return p * power_of_two(bits_as<uint64_t>(shifted));
}

inline FUSEDIFF_HD double clamped(double x, double low, double high) {
  const double above = x < low ? low : x;
  return above > high ? high : above;
}

inline FUSEDIFF_HD float exponential(float x) {
  return static_cast<float>(exp_short(clamped(static_cast<double>(x), -110.0, 90.0)));
}

inline FUSEDIFF_HD double exponential(double value) {
  const double x = clamped(value, -746.0, 710.0);
  const double shifted = x * 0x1.71547652b82fep0 + 0x1.8p52;
  const double n = shifted - 0x1.8p52;
  const double high = x - n * 0x1.62e42feep-1;
  const double low = n * 0x1.a39ef35793c76p-33;
  const double r = high - low;
  const double rest = (high - r) - low;
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
  const uint64_t exponent = bits_as<uint64_t>(shifted) - bits_as<uint64_t>(0x1.8p52);
  const uint64_t half = static_cast<uint64_t>(static_cast<int64_t>(exponent) >> 1);
  return near_one * power_of_two(half) * power_of_two(exponent - half);
}

// 1 / (1 + exp(-x)), written so that nothing overflows and small results keep their digits.
inline FUSEDIFF_HD float sigmoid(float value) {
  const double x = static_cast<double>(value);
  const double e = exp_short(clamped(x < 0 ? x : -x, -110.0, 90.0));
  return static_cast<float>((x < 0 ? e : 1.0) / (1.0 + e));
}

inline FUSEDIFF_HD double sigmoid(double x) {
  const double e = exponential(x < 0 ? x : -x);
  return (x < 0 ? e : 1.0) / (1.0 + e);
}

template <class A>
FUSEDIFF_HD A inverse_root(A value) {
  return A(1) / std::sqrt(value);
}

template <class A>
FUSEDIFF_HD A minus_infinity() {
  return static_cast<A>(-HUGE_VAL);
}

// An integer that orders as the value does: NaN least, both zeros 0.
inline FUSEDIFF_HD int64_t order_key(double value) {
  constexpr int64_t kMost = 0x7fffffffffffffff;
  const int64_t bits = bits_as<int64_t>(value);
  const int64_t magnitude = bits & kMost;
  return value != value ? -kMost - 1 : bits < 0 ? -magnitude : magnitude;
}
inline FUSEDIFF_HD int64_t order_key(float value) { return order_key(static_cast<double>(value)); }

// Sums along a row go in 16 lanes (builtin/lanes.h): lane l adds elements l, l + 16, ... to +0, then this fold.
inline constexpr int64_t kLanes = 16;

template <class A>
FUSEDIFF_HD A fold_lanes(const A* partial) {
  A lanes[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) {
    lanes[i] = partial[i];
  }
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t i = 0; i < width; ++i) {
      lanes[i] += lanes[i + width];
    }
  }
  return lanes[0];
}

}  // namespace fusediff::cuda
