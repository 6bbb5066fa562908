// The twelve dtypes as C++ types, and exact conversion between them.
// Half, BFloat16, F8E4M3 and F8E5M2 hold bits only: convert<float>(h) reads one, convert<Half>(v) rounds to one, once,
// to nearest even. NaN stays NaN and keeps its sign. A value beyond the largest finite one becomes infinity; E4M3FN has
// no infinity (OCP 8-bit Floating Point Specification, non-saturating mode): there it becomes NaN, as in torch. All of
// it is branch-free, so that loops over it vectorise. Not here: arithmetic in a narrow type (compute in float and
// round).
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "fusediff_target.h"

namespace fusediff {
namespace kit __attribute__((visibility("hidden"))) {

  // A binary float format of 16 or 8 bits. kLargest: bits of the largest finite value; kBeyond: what overflow gives.
  template <class Bits, int kMantissaBits, int kExponentBias, Bits kLargestFinite, Bits kOverflow, int32_t kDtypeNumber>
  struct NarrowFloat {
    using bits_type = Bits;
    static constexpr int kMantissa = kMantissaBits;
    static constexpr int kBias = kExponentBias;
    static constexpr Bits kLargest = kLargestFinite;
    static constexpr Bits kBeyond = kOverflow;
    static constexpr Bits kSign = static_cast<Bits>(Bits{1} << (sizeof(Bits) * 8 - 1));
    static constexpr int32_t kDtype = kDtypeNumber;

    Bits bits;
  };

  using Half = NarrowFloat<uint16_t, 10, 15, 0x7bff, 0x7c00, FUSEDIFF_F16>;
  using BFloat16 = NarrowFloat<uint16_t, 7, 127, 0x7f7f, 0x7f80, FUSEDIFF_BF16>;
  using F8E4M3 = NarrowFloat<uint8_t, 3, 7, 0x7e, 0x7f, FUSEDIFF_F8E4M3FN>;
  using F8E5M2 = NarrowFloat<uint8_t, 2, 15, 0x7b, 0x7c, FUSEDIFF_F8E5M2>;
  struct Bool {
    uint8_t value;  // 0 or 1
  };

  template <class T>
  concept Narrow = requires {
    T::kMantissa;
  };

  template <class T>
  struct DtypeOf;
  template <Narrow T>
  struct DtypeOf<T> : std::integral_constant<int32_t, T::kDtype> {};
  template <>
  struct DtypeOf<double> : std::integral_constant<int32_t, FUSEDIFF_F64> {};
  template <>
  struct DtypeOf<float> : std::integral_constant<int32_t, FUSEDIFF_F32> {};
  template <>
  struct DtypeOf<int64_t> : std::integral_constant<int32_t, FUSEDIFF_I64> {};
  template <>
  struct DtypeOf<int32_t> : std::integral_constant<int32_t, FUSEDIFF_I32> {};
  template <>
  struct DtypeOf<int16_t> : std::integral_constant<int32_t, FUSEDIFF_I16> {};
  template <>
  struct DtypeOf<int8_t> : std::integral_constant<int32_t, FUSEDIFF_I8> {};
  template <>
  struct DtypeOf<uint8_t> : std::integral_constant<int32_t, FUSEDIFF_U8> {};
  template <>
  struct DtypeOf<Bool> : std::integral_constant<int32_t, FUSEDIFF_BOOL> {};

  // The fusediff_dtype of a C++ type.
  template <class T>
  inline constexpr int32_t kDtypeOf = DtypeOf<std::remove_const_t<T>>::value;

  // The type to compute in: double for double, float for every other float type.
  template <class T>
  using Compute = std::conditional_t<std::is_same_v<std::remove_const_t<T>, double>, double, float>;

  // "f32" for FUSEDIFF_F32; "dtype 99" is not named: "unknown".
  constexpr const char* dtype_name(int32_t dtype) {
    switch (dtype) {
      case FUSEDIFF_F64:
        return "f64";
      case FUSEDIFF_F32:
        return "f32";
      case FUSEDIFF_F16:
        return "f16";
      case FUSEDIFF_BF16:
        return "bf16";
      case FUSEDIFF_F8E4M3FN:
        return "f8e4m3fn";
      case FUSEDIFF_F8E5M2:
        return "f8e5m2";
      case FUSEDIFF_I64:
        return "i64";
      case FUSEDIFF_I32:
        return "i32";
      case FUSEDIFF_I16:
        return "i16";
      case FUSEDIFF_I8:
        return "i8";
      case FUSEDIFF_U8:
        return "u8";
      case FUSEDIFF_BOOL:
        return "bool";
      default:
        return "unknown";
    }
  }

  // The value of a narrow float, exact.
  template <Narrow T>
  inline float decode(T value) {
    constexpr int kShift = 23 - T::kMantissa;
    const uint32_t magnitude = value.bits & static_cast<uint32_t>(T::kSign - 1);
    const uint32_t sign = static_cast<uint32_t>(value.bits & T::kSign) << (32 - sizeof(T) * 8);
    uint32_t bits = magnitude << kShift;
    if constexpr (T::kBias != 127) {
      // Normal: another exponent bias. Subnormal: an integer times the smallest step, exact in float.
      constexpr float kStep = std::bit_cast<float>(static_cast<uint32_t>(127 + 1 - T::kBias - T::kMantissa) << 23);
      const uint32_t normal = bits + (static_cast<uint32_t>(127 - T::kBias) << 23);
      const uint32_t subnormal = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude)) * kStep);
      const uint32_t finite = magnitude < (1u << T::kMantissa) ? subnormal : normal;
      bits = magnitude > T::kLargest ? (bits | 0x7f800000u) : finite;
    }
    return std::bit_cast<float>(bits | sign);
  }

  // `value` (float or double) rounded once, to nearest even.
  template <Narrow T, class Source>
  inline T encode(Source value) {
    using Wide = std::conditional_t<sizeof(Source) == 8, uint64_t, uint32_t>;
    constexpr int kMantissa = sizeof(Source) == 8 ? 52 : 23;
    constexpr int kBias = sizeof(Source) == 8 ? 1023 : 127;
    constexpr int kShift = kMantissa - T::kMantissa;
    constexpr Wide kSign = Wide{1} << (sizeof(Source) * 8 - 1);
    constexpr Wide kInfinity = static_cast<Wide>(2 * kBias + 1) << kMantissa;

    const Wide all = std::bit_cast<Wide>(value);
    const Wide magnitude = all & (kSign - 1);
    const Wide nearest = magnitude + ((Wide{1} << (kShift - 1)) - 1) + ((magnitude >> kShift) & 1);
    Wide bits = (nearest >> kShift) - (static_cast<Wide>(kBias - T::kBias) << T::kMantissa);
    if constexpr (kBias != T::kBias) {
      // Below the smallest normal: an addition whose last place is the smallest step rounds in hardware.
      constexpr Wide kMagic = static_cast<Wide>(kBias + kMantissa + 1 - T::kBias - T::kMantissa) << kMantissa;
      constexpr Wide kSmallestNormal = static_cast<Wide>(kBias + 1 - T::kBias) << kMantissa;
      const Source shifted = std::bit_cast<Source>(magnitude) + std::bit_cast<Source>(kMagic);
      bits = magnitude < kSmallestNormal ? std::bit_cast<Wide>(shifted) - kMagic : bits;
    }
    bits = magnitude >= kInfinity || bits > T::kLargest ? Wide{T::kBeyond} : bits;
    constexpr Wide kQuiet = Wide{T::kBeyond} | (Wide{1} << (T::kMantissa - 1));
    bits = magnitude > kInfinity ? kQuiet : bits;
    const Wide sign = (all & kSign) >> (sizeof(Source) * 8 - sizeof(T) * 8);
    return T{static_cast<typename T::bits_type>(bits | sign)};
  }

  // `value` as a To: exact where To holds it, else rounded once. Integers convert as static_cast does.
  template <class To, class From>
  inline To convert(From value) {
    if constexpr (std::is_same_v<To, From>) {
      return value;
    } else if constexpr (std::is_same_v<From, Bool>) {
      return convert<To>(static_cast<int32_t>(value.value));
    } else if constexpr (Narrow<From>) {
      return convert<To>(decode(value));
    } else if constexpr (std::is_same_v<To, Bool>) {
      return Bool{static_cast<uint8_t>(value != 0)};
    } else if constexpr (Narrow<To>) {
      if constexpr (std::is_floating_point_v<From>) {
        return encode<To>(value);
      } else {
        return encode<To>(static_cast<double>(value));
      }
    } else {
      return static_cast<To>(value);
    }
  }

}  // namespace )
}  // namespace fusediff
