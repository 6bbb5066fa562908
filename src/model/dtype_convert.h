// Branch-free conversions between binary64 and the narrower formats, one element at a time, shaped so that a compiler
// can run them several at a time. Inside of model/dtype.cpp and dtype_bulk.cpp only. Assumes the default rounding mode.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace fusediff::convert {

inline constexpr std::uint64_t kSignBit64 = std::uint64_t{1} << 63;
inline constexpr std::uint64_t kInfinity64 = std::uint64_t{0x7FF} << 52;

struct F16 {
  static constexpr int kWidth = 16, kMantissa = 10, kBias = 15;
  static constexpr bool kInfinity = true;
};
struct BF16 {
  static constexpr int kWidth = 16, kMantissa = 7, kBias = 127;
  static constexpr bool kInfinity = true;
};
struct F8E4M3FN {
  static constexpr int kWidth = 8, kMantissa = 3, kBias = 7;
  static constexpr bool kInfinity = false;
};
struct F8E5M2 {
  static constexpr int kWidth = 8, kMantissa = 2, kBias = 15;
  static constexpr bool kInfinity = true;
};

// The formats of 8 and 16 bits.
template <typename Format>
struct Narrow {
  static constexpr int kCut = 52 - Format::kMantissa;  // mantissa bits of binary64 that the format lacks
  static constexpr std::uint64_t kSign = std::uint64_t{1} << (Format::kWidth - 1);
  static constexpr std::uint64_t kMantissaMask = (std::uint64_t{1} << Format::kMantissa) - 1;
  static constexpr std::uint64_t kExponentOnes = (kSign - 1) & ~kMantissaMask;
  static constexpr std::uint64_t kOverflow = Format::kInfinity ? kExponentOnes : kSign - 1;  // infinity or the NaN
  // Codes above hold NaN.
  static constexpr std::uint64_t kLargest = Format::kInfinity ? kExponentOnes : kSign - 2;
  static constexpr std::uint64_t kMinNormal64 = std::uint64_t{1024 - Format::kBias} << 52;  // as bits of binary64

  static double value(std::uint64_t bits) {
    const std::uint64_t code = bits & (kSign - 1);
    const std::uint64_t shifted = code << kCut;
    // A normal number needs another bias. A denormal is given the exponent of the smallest normal one, and the
    // leading one that this adds is taken away again, exactly.
    const std::uint64_t normal = shifted + (std::uint64_t{1023 - Format::kBias} << 52);
    const double denormal = std::bit_cast<double>(shifted + kMinNormal64) - std::bit_cast<double>(kMinNormal64);
    const std::uint64_t special = kInfinity64 | ((code & kMantissaMask) << kCut);
    const bool is_special = Format::kInfinity ? code >= kExponentOnes : code > kLargest;
    std::uint64_t magnitude = code <= kMantissaMask ? std::bit_cast<std::uint64_t>(denormal) : normal;
    magnitude = is_special ? special : magnitude;
    return std::bit_cast<double>(magnitude | ((bits & kSign) << (64 - Format::kWidth)));
  }

  // Rounds once: adding 2^52 units of the last place of the result leaves, in the low bits of the sum, the magnitude
  // in such units, rounded to nearest even by the addition itself.
  static std::uint64_t bits(double value) {
    const auto bits64 = std::bit_cast<std::uint64_t>(value);
    const std::uint64_t magnitude = bits64 & ~kSignBit64;
    constexpr std::uint64_t kHuge = kMinNormal64 + (kOverflow << kCut);  // far enough beyond the largest to overflow
    const std::uint64_t clamped = magnitude < kHuge ? magnitude : kHuge;
    const std::uint64_t exponent_only = clamped & kInfinity64;
    const std::uint64_t binade = exponent_only > kMinNormal64 ? exponent_only : kMinNormal64;
    const double anchor = std::bit_cast<double>(binade + (std::uint64_t{kCut} << 52));
    const double sum = std::bit_cast<double>(clamped) + anchor;
    const std::uint64_t units = std::bit_cast<std::uint64_t>(sum) - std::bit_cast<std::uint64_t>(anchor);
    std::uint64_t code = ((binade - kMinNormal64) >> kCut) + units;
    code = code > kLargest ? kOverflow : code;
    code = magnitude > kInfinity64 ? nan_code(magnitude) : code;
    return code | ((bits64 & kSignBit64) >> (64 - Format::kWidth));
  }

  static std::uint64_t nan_code(std::uint64_t magnitude) {
    if constexpr (!Format::kInfinity) return kOverflow;
    const std::uint64_t payload = (magnitude >> kCut) & kMantissaMask;
    return kExponentOnes | (payload != 0 ? payload : std::uint64_t{1} << (Format::kMantissa - 1));
  }
};

// The casts of the hardware make NaN quiet; these keep its payload.
inline double f32_value(std::uint32_t bits) {
  const auto widened = std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<float>(bits)));
  const std::uint64_t code = bits & 0x7FFFFFFFu;
  const std::uint64_t nan = kInfinity64 | ((code << 29) & ~kSignBit64) | (std::uint64_t{bits >> 31} << 63);
  return std::bit_cast<double>(code > 0x7F800000u ? nan : widened);
}

inline std::uint32_t f32_bits(double value) {
  const auto bits64 = std::bit_cast<std::uint64_t>(value);
  const auto rounded = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  const auto payload = static_cast<std::uint32_t>(bits64 >> 29) & 0x7FFFFFu;
  const auto sign = static_cast<std::uint32_t>(bits64 >> 63) << 31;
  const std::uint32_t nan = sign | 0x7F800000u | (payload != 0 ? payload : 0x400000u);
  return value != value ? nan : rounded;
}

// To nearest, ties to even; clamped to int64; NaN gives 0.
inline std::int64_t nearest_integer(double value) {
  if (value != value) return 0;
  if (value >= 0x1p63) return std::numeric_limits<std::int64_t>::max();
  if (value < -0x1p63) return std::numeric_limits<std::int64_t>::min();
  if (value >= 0x1p52 || value <= -0x1p52) return static_cast<std::int64_t>(value);  // has no fraction
  return static_cast<std::int64_t>(value < 0 ? (value - 0x1p52) + 0x1p52 : (value + 0x1p52) - 0x1p52);
}

}  // namespace fusediff::convert
