#include "model/dtype.h"

#include <bit>
#include <cstring>
#include <limits>

#include "model/dtype_convert.h"

namespace fusediff {

static_assert(std::endian::native == std::endian::little, "elements are read and written in the host's byte order");

namespace {

struct DTypeName {
  DType dtype;
  std::string_view name;
};

constexpr std::array kNames = {
    DTypeName{DType::kF64, "f64"},
    DTypeName{DType::kF32, "f32"},
    DTypeName{DType::kF16, "f16"},
    DTypeName{DType::kBF16, "bf16"},
    DTypeName{DType::kF8E4M3FN, "f8e4m3fn"},
    DTypeName{DType::kF8E5M2, "f8e5m2"},
    DTypeName{DType::kI64, "i64"},
    DTypeName{DType::kI32, "i32"},
    DTypeName{DType::kI16, "i16"},
    DTypeName{DType::kI8, "i8"},
    DTypeName{DType::kU8, "u8"},
    DTypeName{DType::kBool, "bool"},
};

constexpr FloatFormat kF64Format = {11, 52, 1023, true, 0x1.fffffffffffffp+1023, 0x1p-1022, 0x1p-1074, 0x1p-53};
constexpr FloatFormat kF32Format = {8, 23, 127, true, 0x1.fffffep+127, 0x1p-126, 0x1p-149, 0x1p-24};
constexpr FloatFormat kF16Format = {5, 10, 15, true, 65504, 0x1p-14, 0x1p-24, 0x1p-11};
constexpr FloatFormat kBF16Format = {8, 7, 127, true, 0x1.fep+127, 0x1p-126, 0x1p-133, 0x1p-8};
constexpr FloatFormat kF8E4M3FNFormat = {4, 3, 7, false, 448, 0x1p-6, 0x1p-9, 0x1p-4};
constexpr FloatFormat kF8E5M2Format = {5, 2, 15, true, 57344, 0x1p-14, 0x1p-16, 0x1p-3};

std::uint64_t sign_mask(DType dtype) { return std::uint64_t{1} << (8 * size_of(dtype) - 1); }

// The code of the largest magnitude that is not a NaN: infinity, or max_finite where there is none.
std::uint64_t top_code(DType dtype) {
  if (dtype == DType::kF8E4M3FN) return 0x7E;
  const FloatFormat& format = float_format(dtype);
  return ((std::uint64_t{1} << format.exponent_bits) - 1) << format.mantissa_bits;
}

// The place of a float among the values of its format, zero at 0. REQUIRES: not NaN.
std::int64_t ordinal(DType dtype, std::uint64_t bits) {
  const auto magnitude = static_cast<std::int64_t>(bits & (sign_mask(dtype) - 1));
  return (bits & sign_mask(dtype)) != 0 ? -magnitude : magnitude;
}

std::int64_t least_integer(DType dtype) {
  if (dtype == DType::kU8 || dtype == DType::kBool) return 0;
  return std::numeric_limits<std::int64_t>::min() >> (64 - 8 * size_of(dtype));
}

std::int64_t greatest_integer(DType dtype) {
  if (dtype == DType::kBool) return 1;
  if (dtype == DType::kU8) return 255;
  return std::numeric_limits<std::int64_t>::max() >> (64 - 8 * size_of(dtype));
}

std::uint64_t cut_to_size(DType dtype, std::uint64_t bits) {
  const std::size_t size = size_of(dtype);
  return size == 8 ? bits : bits & ((std::uint64_t{1} << (8 * size)) - 1);
}

}  // namespace

std::string_view name_of(DType dtype) {
  for (const DTypeName& entry : kNames) {
    if (entry.dtype == dtype) return entry.name;
  }
  return "unknown";
}

std::optional<DType> dtype_named(std::string_view name) {
  for (const DTypeName& entry : kNames) {
    if (entry.name == name) return entry.dtype;
  }
  return std::nullopt;
}

bool is_float(DType dtype) { return static_cast<std::int32_t>(dtype) < static_cast<std::int32_t>(DType::kI64); }

const FloatFormat& float_format(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return kF32Format;
    case DType::kF16:
      return kF16Format;
    case DType::kBF16:
      return kBF16Format;
    case DType::kF8E4M3FN:
      return kF8E4M3FNFormat;
    case DType::kF8E5M2:
      return kF8E5M2Format;
    default:
      return kF64Format;
  }
}

double float_value(DType dtype, std::uint64_t bits) {
  switch (dtype) {
    case DType::kF32:
      return convert::f32_value(static_cast<std::uint32_t>(bits));
    case DType::kF16:
      return convert::Narrow<convert::F16>::value(bits);
    case DType::kBF16:
      return convert::Narrow<convert::BF16>::value(bits);
    case DType::kF8E4M3FN:
      return convert::Narrow<convert::F8E4M3FN>::value(bits);
    case DType::kF8E5M2:
      return convert::Narrow<convert::F8E5M2>::value(bits);
    default:
      return std::bit_cast<double>(bits);
  }
}

std::uint64_t round_to_bits(DType dtype, double value) {
  switch (dtype) {
    case DType::kF64:
      return std::bit_cast<std::uint64_t>(value);
    case DType::kF32:
      return convert::f32_bits(value);
    case DType::kF16:
      return convert::Narrow<convert::F16>::bits(value);
    case DType::kBF16:
      return convert::Narrow<convert::BF16>::bits(value);
    case DType::kF8E4M3FN:
      return convert::Narrow<convert::F8E4M3FN>::bits(value);
    case DType::kF8E5M2:
      return convert::Narrow<convert::F8E5M2>::bits(value);
    default:
      break;
  }
  const std::int64_t nearest = convert::nearest_integer(value);
  if (dtype == DType::kBool) return nearest != 0 ? 1 : 0;
  const std::int64_t low = least_integer(dtype), high = greatest_integer(dtype);
  return cut_to_size(dtype, static_cast<std::uint64_t>(nearest < low ? low : nearest > high ? high : nearest));
}

std::int64_t integer_value(DType dtype, std::uint64_t bits) {
  if (dtype == DType::kU8 || dtype == DType::kBool) return static_cast<std::int64_t>(bits & 0xFF);
  const int unused = static_cast<int>(64 - 8 * size_of(dtype));
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

IntegerRange integer_range(DType dtype) { return {least_integer(dtype), greatest_integer(dtype)}; }

bool is_nan(DType dtype, std::uint64_t bits) {
  return is_float(dtype) && (bits & (sign_mask(dtype) - 1)) > top_code(dtype);
}

bool is_finite(DType dtype, std::uint64_t bits) {
  if (!is_float(dtype)) return true;
  const std::uint64_t limit = top_code(dtype) + (float_format(dtype).has_infinity ? 0 : 1);
  return (bits & (sign_mask(dtype) - 1)) < limit;
}

bool is_zero(DType dtype, std::uint64_t bits) {
  return is_float(dtype) ? (bits & (sign_mask(dtype) - 1)) == 0 : bits == 0;
}

std::uint64_t ulp_distance(DType dtype, std::uint64_t a, std::uint64_t b) {
  std::int64_t left = 0, right = 0;
  if (is_float(dtype)) {
    const bool a_nan = is_nan(dtype, a), b_nan = is_nan(dtype, b);
    if (a_nan || b_nan) return a_nan && b_nan ? 0 : std::numeric_limits<std::uint64_t>::max();
    left = ordinal(dtype, a);
    right = ordinal(dtype, b);
  } else {
    left = integer_value(dtype, a);
    right = integer_value(dtype, b);
  }
  const auto low = static_cast<std::uint64_t>(left < right ? left : right);
  const auto high = static_cast<std::uint64_t>(left < right ? right : left);
  return high - low;
}

double ulp_at(DType dtype, double value) {
  const FloatFormat& format = float_format(dtype);
  const std::uint64_t magnitude = std::bit_cast<std::uint64_t>(value) & ~(std::uint64_t{1} << 63);
  // Both ends are biased exponents of binary64, whose own denormals (field 0) are spaced like its field 1.
  const int least = 1024 - format.bias;
  const int greatest = 1023 + (1 << format.exponent_bits) - 2 - format.bias + (format.has_infinity ? 0 : 1);
  const int field = static_cast<int>(magnitude >> 52);
  const int exponent = field < least ? least : field > greatest ? greatest : field;
  const int spacing = exponent - format.mantissa_bits;  // biased as well
  if (spacing > 0) return std::bit_cast<double>(static_cast<std::uint64_t>(spacing) << 52);
  return std::bit_cast<double>(std::uint64_t{1} << (51 + spacing));
}

std::uint64_t step_bits(DType dtype, std::uint64_t bits, std::int64_t n) {
  if (n == 0 || is_nan(dtype, bits)) return bits;
  const bool floating = is_float(dtype);
  const std::int64_t high = floating ? static_cast<std::int64_t>(top_code(dtype)) : greatest_integer(dtype);
  const std::int64_t low = floating ? -high : least_integer(dtype);
  const std::int64_t from = floating ? ordinal(dtype, bits) : integer_value(dtype, bits);
  std::int64_t to = 0;
  if (__builtin_add_overflow(from, n, &to)) to = n < 0 ? low : high;
  to = to < low ? low : to > high ? high : to;
  if (!floating) return cut_to_size(dtype, static_cast<std::uint64_t>(to));
  return to < 0 ? static_cast<std::uint64_t>(-to) | sign_mask(dtype) : static_cast<std::uint64_t>(to);
}

}  // namespace fusediff
