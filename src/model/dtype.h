// The twelve element types: names, sizes, exact conversion and ULP distance. No tensor and no recipe here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace fusediff {

// The numbers of fusediff_target.h: they are stored in bundles.
enum class DType : std::int32_t {
  kF64 = 1,
  kF32 = 2,
  kF16 = 3,
  kBF16 = 4,
  kF8E4M3FN = 5,
  kF8E5M2 = 6,
  kI64 = 16,
  kI32 = 17,
  kI16 = 18,
  kI8 = 19,
  kU8 = 20,
  kBool = 21,
};

inline constexpr std::array kDTypes = {DType::kF64,      DType::kF32,    DType::kF16, DType::kBF16,
                                       DType::kF8E4M3FN, DType::kF8E5M2, DType::kI64, DType::kI32,
                                       DType::kI16,      DType::kI8,     DType::kU8,  DType::kBool};

// "f64", "f32", "f16", "bf16", "f8e4m3fn", "f8e5m2", "i64", "i32", "i16", "i8", "u8", "bool".
std::string_view name_of(DType dtype);
std::optional<DType> dtype_named(std::string_view name);
// Bytes of an element: 1, 2, 4 or 8.
constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kI64:
      return 8;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
    case DType::kI16:
      return 2;
    default:
      return 1;
  }
}
bool is_float(DType dtype);

// A binary floating-point format, 1 sign bit in front.
struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;  // stored ones
  int bias;
  bool has_infinity;  // false for f8e4m3fn, whose all-ones exponent holds numbers and one NaN
  double max_finite;
  double min_normal;
  double min_denormal;
  double unit_roundoff;  // half the spacing at 1
};
// REQUIRES: is_float(dtype).
const FloatFormat& float_format(DType dtype);

// The raw little-endian bits of one element, zero-extended.
inline std::uint64_t load_bits(DType dtype, const std::byte* element) {
  std::uint64_t bits = 0;
  switch (size_of(dtype)) {  // a copy of known size is one move
    case 8:
      std::memcpy(&bits, element, 8);
      break;
    case 4:
      std::memcpy(&bits, element, 4);
      break;
    case 2:
      std::memcpy(&bits, element, 2);
      break;
    default:
      std::memcpy(&bits, element, 1);
  }
  return bits;
}
inline void store_bits(DType dtype, std::uint64_t bits, std::byte* element) {
  std::memcpy(element, &bits, size_of(dtype));
}

// The value of float bits, exact in double (NaN of any payload gives a NaN). REQUIRES: is_float(dtype).
double float_value(DType dtype, std::uint64_t bits);
// Rounds once, to nearest even. NaN stays NaN with its sign, its payload cut to the leading bits but never emptied (the
// quiet bit is set instead; f8e4m3fn has one NaN of each sign). Overflow: infinity where the format has one; f8e4m3fn
// overflows to NaN (OCP 8-bit Floating Point Specification 1.0, the non-saturating mode). Integers: to nearest even,
// clamped to the dtype, NaN gives 0; bool: 1 unless the nearest integer is 0.
std::uint64_t round_to_bits(DType dtype, double value);
// The value of an integer or bool element. REQUIRES: !is_float(dtype).
std::int64_t integer_value(DType dtype, std::uint64_t bits);
// The least and the greatest value of an integer or bool dtype. REQUIRES: !is_float(dtype).
struct IntegerRange {
  std::int64_t low;
  std::int64_t high;
};
IntegerRange integer_range(DType dtype);

bool is_nan(DType dtype, std::uint64_t bits);
bool is_finite(DType dtype, std::uint64_t bits);  // integers are finite
bool is_zero(DType dtype, std::uint64_t bits);

// How many representable values apart two elements are: 0 for equal values (both zeros are one value), for two NaNs 0,
// for a NaN against a number UINT64_MAX; an infinity is one step beyond the largest finite value. Integers: the
// difference.
std::uint64_t ulp_distance(DType dtype, std::uint64_t a, std::uint64_t b);
// The spacing of representable values around the magnitude of value (at a power of two the spacing above it): the
// denormal spacing near zero, the largest spacing beyond max_finite. REQUIRES: is_float(dtype), value not NaN.
double ulp_at(DType dtype, double value);
// The neighbour n values up (n > 0) or down; stops at the infinities (at max_finite where there are none)
// and at the ends of an integer dtype. Both zeros are one value; a step onto zero gives +0. NaN stays.
std::uint64_t step_bits(DType dtype, std::uint64_t bits, std::int64_t n);

// Whole arrays, as the single-element functions, but fast. REQUIRES: as many elements in bytes as in values.
void widen(DType dtype, std::span<const std::byte> bytes,
           std::span<double> values);  // integers beyond 2^53 are rounded
void round_all(DType dtype, std::span<const double> values, std::span<std::byte> bytes);

}  // namespace fusediff
