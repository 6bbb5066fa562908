#include "model/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"

namespace fusediff {
namespace {

constexpr std::array kNarrow = {DType::kF16, DType::kBF16, DType::kF8E4M3FN, DType::kF8E5M2};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The formats once more, from their standards: written down apart from the code under test.
struct Layout {
  int exponent_bits, mantissa_bits, bias;
};
Layout layout_of(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return {5, 10, 15};
    case DType::kBF16:
      return {8, 7, 127};
    case DType::kF8E4M3FN:
      return {4, 3, 7};
    case DType::kF8E5M2:
      return {5, 2, 15};
    default:
      return {8, 23, 127};
  }
}

// By the definition: (-1)^s * 2^(e - bias) * (1 + m / 2^M), or without the one when e is 0.
double value_by_definition(DType dtype, std::uint64_t bits) {
  const Layout format = layout_of(dtype);
  const auto mantissa = static_cast<int>(bits & ((std::uint64_t{1} << format.mantissa_bits) - 1));
  const int ones = (1 << format.exponent_bits) - 1;
  const int exponent = static_cast<int>(bits >> format.mantissa_bits) & ones;
  const double sign = ((bits >> (format.mantissa_bits + format.exponent_bits)) & 1) != 0 ? -1.0 : 1.0;
  if (exponent == ones && dtype != DType::kF8E4M3FN) return mantissa == 0 ? sign * kInfinity : std::nan("");
  if (dtype == DType::kF8E4M3FN && (bits & 0x7F) == 0x7F) return std::nan("");
  const int leading = exponent == 0 ? 0 : 1 << format.mantissa_bits;
  const int power = (exponent == 0 ? 1 : exponent) - format.bias - format.mantissa_bits;
  return sign * std::ldexp(static_cast<double>(leading + mantissa), power);
}

std::uint64_t pattern_count(DType dtype) { return std::uint64_t{1} << (8 * size_of(dtype)); }
std::uint64_t sign_of(DType dtype) { return pattern_count(dtype) / 2; }

TEST(DType, NamesAndSizes) {
  constexpr std::array<std::string_view, 12> kExpected = {"f64", "f32", "f16", "bf16", "f8e4m3fn", "f8e5m2",
                                                          "i64", "i32", "i16", "i8",   "u8",       "bool"};
  constexpr std::array<std::size_t, 12> kSizes = {8, 4, 2, 2, 1, 1, 8, 4, 2, 1, 1, 1};
  for (std::size_t i = 0; i < kDTypes.size(); ++i) {
    EXPECT_EQ(name_of(kDTypes[i]), kExpected[i]);
    EXPECT_EQ(dtype_named(kExpected[i]), kDTypes[i]);
    EXPECT_EQ(size_of(kDTypes[i]), kSizes[i]);
    EXPECT_EQ(is_float(kDTypes[i]), i < 6);
  }
  EXPECT_EQ(dtype_named("float32"), std::nullopt);
  EXPECT_EQ(dtype_named(""), std::nullopt);
}

TEST(DType, FormatConstantsAreThoseOfTheCodes) {
  for (const DType dtype : kNarrow) {
    SCOPED_TRACE(name_of(dtype));
    const FloatFormat& format = float_format(dtype);
    double largest = 0, normal = kInfinity, denormal = kInfinity;
    for (std::uint64_t bits = 1; bits < sign_of(dtype); ++bits) {
      const double value = value_by_definition(dtype, bits);
      if (!std::isfinite(value)) continue;
      largest = std::max(largest, value);
      denormal = std::min(denormal, value);
      if ((bits >> format.mantissa_bits) != 0) normal = std::min(normal, value);
    }
    EXPECT_EQ(format.max_finite, largest);
    EXPECT_EQ(format.min_normal, normal);
    EXPECT_EQ(format.min_denormal, denormal);
    EXPECT_EQ(format.unit_roundoff, std::ldexp(1.0, -format.mantissa_bits - 1));
    EXPECT_EQ(format.has_infinity, dtype != DType::kF8E4M3FN);
  }
  EXPECT_EQ(float_format(DType::kF32).max_finite, std::numeric_limits<float>::max());
  EXPECT_EQ(float_format(DType::kF32).min_denormal, std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(float_format(DType::kF64).max_finite, std::numeric_limits<double>::max());
  EXPECT_EQ(float_format(DType::kF64).min_normal, std::numeric_limits<double>::min());
  EXPECT_EQ(float_format(DType::kF64).min_denormal, std::numeric_limits<double>::denorm_min());
}

TEST(DType, EveryNarrowPatternDecodesByDefinitionAndComesBack) {
  for (const DType dtype : kNarrow) {
    SCOPED_TRACE(name_of(dtype));
    for (std::uint64_t bits = 0; bits < pattern_count(dtype); ++bits) {
      const double expected = value_by_definition(dtype, bits);
      const double value = float_value(dtype, bits);
      ASSERT_EQ(is_nan(dtype, bits), std::isnan(expected)) << bits;
      ASSERT_EQ(is_finite(dtype, bits), std::isfinite(expected)) << bits;
      ASSERT_EQ(is_zero(dtype, bits), expected == 0) << bits;
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(value)) << bits;
      } else {
        ASSERT_EQ(std::bit_cast<std::uint64_t>(value), std::bit_cast<std::uint64_t>(expected)) << bits;
      }
      ASSERT_EQ(round_to_bits(dtype, value), bits);
    }
  }
}

// Between each two neighbours: the halfway point goes to the even code, one double beside it to the nearer code.
TEST(DType, EveryNarrowHalfwayPointRoundsToEvenAndItsNeighboursToTheNearest) {
  for (const DType dtype : kNarrow) {
    SCOPED_TRACE(name_of(dtype));
    for (std::uint64_t low = 0; low + 1 < sign_of(dtype); ++low) {
      const double below = value_by_definition(dtype, low), above = value_by_definition(dtype, low + 1);
      if (!std::isfinite(above)) break;
      const double half = below / 2 + above / 2;
      const std::uint64_t even = (low & 1) == 0 ? low : low + 1;
      const double under = std::nextafter(half, 0.0), over = std::nextafter(half, kInfinity);
      for (const double sign : {1.0, -1.0}) {
        const std::uint64_t flag = sign < 0 ? sign_of(dtype) : 0;
        ASSERT_EQ(round_to_bits(dtype, sign * half), even | flag) << low;
        ASSERT_EQ(round_to_bits(dtype, sign * under), low | flag) << low;
        ASSERT_EQ(round_to_bits(dtype, sign * over), (low + 1) | flag) << low;
      }
    }
  }
}

// Half a spacing beyond max_finite is where rounding leaves the format; below it max_finite stays.
TEST(DType, OverflowGivesInfinityOrTheNanOfE4m3fn) {
  for (const DType dtype : kNarrow) {
    SCOPED_TRACE(name_of(dtype));
    const double largest = float_format(dtype).max_finite;
    const double limit = largest + ulp_at(dtype, largest) / 2;
    const std::uint64_t code = round_to_bits(dtype, largest);
    const std::uint64_t beyond = code + 1;  // of e4m3fn: the NaN
    // The largest code of e4m3fn is even (448 is 0x7E), so the tie stays; elsewhere it is odd.
    const std::uint64_t at_limit = dtype == DType::kF8E4M3FN ? code : beyond;
    EXPECT_EQ(round_to_bits(dtype, std::nextafter(limit, 0.0)), code);
    EXPECT_EQ(round_to_bits(dtype, limit), at_limit);
    for (const double value :
         {std::nextafter(limit, kInfinity), 2 * largest, 1e300, 0x1.fffffffffffffp1023, kInfinity}) {
      EXPECT_EQ(round_to_bits(dtype, value), beyond) << value;
      EXPECT_EQ(round_to_bits(dtype, -value), beyond | sign_of(dtype)) << value;
    }
  }
  EXPECT_EQ(round_to_bits(DType::kF8E4M3FN, 448.0), 0x7Eu);
  EXPECT_EQ(round_to_bits(DType::kF8E4M3FN, 464.0), 0x7Eu);
  EXPECT_EQ(round_to_bits(DType::kF8E4M3FN, std::nextafter(464.0, 500.0)), 0x7Fu);
  EXPECT_EQ(round_to_bits(DType::kF8E5M2, 61440.0), 0x7Cu);
  EXPECT_EQ(round_to_bits(DType::kF32, 0x1.ffffffp127), 0x7F800000u);
  EXPECT_EQ(round_to_bits(DType::kF32, std::nextafter(0x1.ffffffp127, 0.0)), 0x7F7FFFFFu);
}

// Through float these would be rounded twice and land on the even neighbour.
TEST(DType, RoundsOnceFromDouble) {
  EXPECT_EQ(round_to_bits(DType::kF16, 1 + 0x1p-11 + 0x1p-40), 0x3C01u);
  EXPECT_EQ(round_to_bits(DType::kBF16, 1 + 0x1p-8 + 0x1p-40), 0x3F81u);
  EXPECT_EQ(round_to_bits(DType::kF8E4M3FN, 1 + 0x1p-4 + 0x1p-40), 0x39u);
  EXPECT_EQ(round_to_bits(DType::kF8E5M2, 1 + 0x1p-3 + 0x1p-40), 0x3Du);
}

TEST(DType, NanKeepsSignAndLeadingPayload) {
  const auto nan = [](std::uint64_t bits) { return std::bit_cast<double>(bits); };
  EXPECT_EQ(round_to_bits(DType::kF64, nan(0xFFF0000000000001u)), 0xFFF0000000000001u);
  EXPECT_EQ(round_to_bits(DType::kF32, nan(0x7FF8000020000000u)), 0x7FC00001u);
  EXPECT_EQ(round_to_bits(DType::kF32, nan(0xFFF0000020000000u)), 0xFF800001u);
  EXPECT_EQ(round_to_bits(DType::kF32, nan(0xFFF0000000000001u)), 0xFFC00000u);  // would be an infinity
  EXPECT_EQ(round_to_bits(DType::kF16, nan(0x7FF0000000000001u)), 0x7E00u);
  EXPECT_EQ(round_to_bits(DType::kBF16, nan(0xFFF2000000000000u)), 0xFF90u);
  EXPECT_EQ(round_to_bits(DType::kF8E5M2, nan(0x7FF4000000000000u)), 0x7Du);
  EXPECT_EQ(round_to_bits(DType::kF8E4M3FN, nan(0xFFF4000000000000u)), 0xFFu);
}

TEST(DType, F32AgreesWithTheCastAndKeepsNan) {
  Rng rng(1);
  for (int i = 0; i < 1'000'000; ++i) {
    const auto bits = static_cast<std::uint32_t>(rng.next());
    const double value = float_value(DType::kF32, bits);
    if (!is_nan(DType::kF32, bits)) {
      ASSERT_EQ(value, value_by_definition(DType::kF32, bits));
    }
    ASSERT_EQ(round_to_bits(DType::kF32, value), bits);
    const double wide = std::bit_cast<double>(rng.next());
    if (std::isnan(wide)) continue;
    ASSERT_EQ(round_to_bits(DType::kF32, wide), std::bit_cast<std::uint32_t>(static_cast<float>(wide)));
  }
}

TEST(DType, OrderedCodesAreOneStepApart) {
  for (const DType dtype : kNarrow) {
    SCOPED_TRACE(name_of(dtype));
    const std::uint64_t top = round_to_bits(dtype, float_format(dtype).has_infinity ? kInfinity : 448.0);
    for (std::uint64_t code = 0; code < top; ++code) {
      ASSERT_EQ(ulp_distance(dtype, code, code + 1), 1u);
      ASSERT_EQ(step_bits(dtype, code, 1), code + 1);
      ASSERT_EQ(step_bits(dtype, code + 1, -1), code);
      const std::uint64_t mirrored = code | sign_of(dtype);
      ASSERT_EQ(step_bits(dtype, mirrored, -1), mirrored + 1);
      ASSERT_EQ(step_bits(dtype, mirrored + 1, 1), code == 0 ? 0 : mirrored);
      ASSERT_EQ(ulp_distance(dtype, code, mirrored), 2 * code);
      const double gap = float_value(dtype, code + 1) - float_value(dtype, code);
      if (std::isfinite(gap)) {
        ASSERT_EQ(ulp_at(dtype, float_value(dtype, code)), gap);
        ASSERT_EQ(ulp_at(dtype, -float_value(dtype, code)), gap);
      }
    }
    EXPECT_EQ(step_bits(dtype, top, 1), top);
    EXPECT_EQ(step_bits(dtype, 3, std::numeric_limits<std::int64_t>::max()), top);
    EXPECT_EQ(step_bits(dtype, 3, std::numeric_limits<std::int64_t>::min()), top | sign_of(dtype));
    const std::uint64_t nan = sign_of(dtype) - 1;
    EXPECT_EQ(step_bits(dtype, nan, -5), nan);
    EXPECT_EQ(ulp_distance(dtype, nan, nan | sign_of(dtype)), 0u);
    EXPECT_EQ(ulp_distance(dtype, nan, 0), std::numeric_limits<std::uint64_t>::max());
    EXPECT_EQ(ulp_distance(dtype, top, nan), std::numeric_limits<std::uint64_t>::max());
    const double largest = float_format(dtype).max_finite;
    EXPECT_EQ(ulp_at(dtype, 1e300), ulp_at(dtype, largest));
    EXPECT_EQ(ulp_at(dtype, kInfinity), ulp_at(dtype, largest));
    EXPECT_EQ(ulp_at(dtype, 1e-300), float_format(dtype).min_denormal);
  }
}

TEST(DType, StepsOfWideFloatsAreThoseOfNextafter) {
  Rng rng(2);
  for (int i = 0; i < 200'000; ++i) {
    const auto single = std::bit_cast<float>(static_cast<std::uint32_t>(rng.next()));
    const auto wide = std::bit_cast<double>(rng.next());
    if (std::isfinite(single) && single != 0) {
      const auto bits = std::bit_cast<std::uint32_t>(single);
      const float up = std::nextafter(single, std::numeric_limits<float>::infinity());
      ASSERT_EQ(float_value(DType::kF32, step_bits(DType::kF32, bits, 1)), up);
      ASSERT_EQ(ulp_distance(DType::kF32, bits, std::bit_cast<std::uint32_t>(up)), 1u);
      const float magnitude = std::fabs(single);
      const double gap =
          static_cast<double>(std::nextafter(magnitude, std::numeric_limits<float>::infinity())) - magnitude;
      if (!std::isfinite(gap)) continue;
      ASSERT_EQ(ulp_at(DType::kF32, single), gap);
    }
    if (std::isfinite(wide) && wide != 0) {
      const auto bits = std::bit_cast<std::uint64_t>(wide);
      const double up = std::nextafter(wide, kInfinity);
      ASSERT_EQ(float_value(DType::kF64, step_bits(DType::kF64, bits, 1)), up);
      const double magnitude = std::fabs(wide);
      const double gap = std::nextafter(magnitude, kInfinity) - magnitude;
      if (!std::isfinite(gap)) continue;
      ASSERT_EQ(ulp_at(DType::kF64, wide), gap);
    }
  }
  EXPECT_EQ(ulp_at(DType::kF64, 0.0), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(ulp_at(DType::kF64, 0x1p-1000), 0x1p-1052);
  EXPECT_EQ(ulp_distance(DType::kF64, 0x7FF0000000000000u, 0xFFF0000000000000u), 0xFFE0000000000000u);
}

// Of one number apart, from every code of the small formats: distance, order and steps say the same.
TEST(DType, DistanceOfAllPairsOfF8IsTheNumberOfSteps) {
  for (const DType dtype : {DType::kF8E4M3FN, DType::kF8E5M2}) {
    for (std::uint64_t a = 0; a < 256; ++a) {
      for (std::uint64_t b = 0; b < 256; ++b) {
        if (is_nan(dtype, a) || is_nan(dtype, b)) continue;
        const auto distance = static_cast<std::int64_t>(ulp_distance(dtype, a, b));
        ASSERT_EQ(distance, static_cast<std::int64_t>(ulp_distance(dtype, b, a)));
        const bool up = float_value(dtype, a) < float_value(dtype, b);
        const std::uint64_t reached = step_bits(dtype, a, up ? distance : -distance);
        ASSERT_EQ(float_value(dtype, reached), float_value(dtype, b)) << a << " " << b;
      }
    }
  }
}

TEST(DType, Integers) {
  EXPECT_EQ(integer_value(DType::kI8, 0x80), -128);
  EXPECT_EQ(integer_value(DType::kU8, 0x80), 128);
  EXPECT_EQ(integer_value(DType::kI16, 0xFFFF), -1);
  EXPECT_EQ(integer_value(DType::kI32, 0x80000000u), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(integer_value(DType::kI64, ~std::uint64_t{0}), -1);
  EXPECT_EQ(ulp_distance(DType::kI8, 0x80, 0x7F), 255u);
  EXPECT_EQ(ulp_distance(DType::kI64, std::uint64_t{1} << 63, (std::uint64_t{1} << 63) - 1), ~std::uint64_t{0});
  EXPECT_EQ(step_bits(DType::kI8, 0x7F, 1), 0x7Fu);
  EXPECT_EQ(step_bits(DType::kI8, 0, -1), 0xFFu);
  EXPECT_EQ(step_bits(DType::kU8, 3, -9), 0u);
  EXPECT_TRUE(is_finite(DType::kI32, 0x7F800000u));
  EXPECT_FALSE(is_nan(DType::kI32, 0x7FC00000u));
  EXPECT_TRUE(is_zero(DType::kI32, 0));
  EXPECT_FALSE(is_zero(DType::kI8, 0x80));
  EXPECT_EQ(round_to_bits(DType::kI8, 2.5), 2u);
  EXPECT_EQ(round_to_bits(DType::kI8, -3.5), 0xFCu);
  EXPECT_EQ(round_to_bits(DType::kI8, 1e9), 0x7Fu);
  EXPECT_EQ(round_to_bits(DType::kI16, -1e9), 0x8000u);
  EXPECT_EQ(round_to_bits(DType::kU8, -1.0), 0u);
  EXPECT_EQ(round_to_bits(DType::kI64, 1e30), (std::uint64_t{1} << 63) - 1);
  EXPECT_EQ(round_to_bits(DType::kI64, -1e30), std::uint64_t{1} << 63);
  EXPECT_EQ(round_to_bits(DType::kI32, std::nan("")), 0u);
  EXPECT_EQ(round_to_bits(DType::kBool, 0.5), 0u);
  EXPECT_EQ(round_to_bits(DType::kBool, -7.0), 1u);
  EXPECT_EQ(integer_range(DType::kI16).low, -32768);
  EXPECT_EQ(integer_range(DType::kBool).high, 1);
}

TEST(DType, LoadAndStoreAreLittleEndian) {
  const std::array<std::byte, 3> bytes = {std::byte{0x01}, std::byte{0x80}, std::byte{0xFF}};
  EXPECT_EQ(load_bits(DType::kF16, bytes.data()), 0x8001u);
  EXPECT_EQ(load_bits(DType::kI8, bytes.data() + 1), 0x80u);
  std::array<std::byte, 4> out = {};
  store_bits(DType::kBF16, 0x3F81, out.data() + 1);
  EXPECT_EQ(out, (std::array{std::byte{0}, std::byte{0x81}, std::byte{0x3F}, std::byte{0}}));
}

// Odd lengths as well, so that the vector body and its tail are both met.
TEST(DType, WholeArraysAreTheSingleElements) {
  Rng rng(3);
  for (const DType dtype : kDTypes) {
    SCOPED_TRACE(name_of(dtype));
    const std::size_t count = size_of(dtype) <= 2 ? 65536 + 37 : 30'011;
    std::vector<std::byte> bytes(count * size_of(dtype));
    for (std::size_t i = 0; i < count; ++i) {
      store_bits(dtype, size_of(dtype) <= 2 ? i : rng.next(), bytes.data() + i * size_of(dtype));
    }
    std::vector<double> values(count);
    widen(dtype, bytes, values);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t bits = load_bits(dtype, bytes.data() + i * size_of(dtype));
      const double expected =
          is_float(dtype) ? float_value(dtype, bits) : static_cast<double>(integer_value(dtype, bits));
      ASSERT_EQ(std::bit_cast<std::uint64_t>(values[i]), std::bit_cast<std::uint64_t>(expected)) << bits;
    }
    for (std::size_t i = 0; i < count; ++i) {  // any double, and doubles of the dtype's own magnitude
      if (i % 2 == 0) values[i] = std::bit_cast<double>(rng.next());
      if (i % 4 == 1) values[i] *= 1 + 0x1p-20 * static_cast<double>(rng.below(1 << 20));
    }
    round_all(dtype, values, bytes);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(load_bits(dtype, bytes.data() + i * size_of(dtype)), round_to_bits(dtype, values[i])) << values[i];
    }
    widen(dtype, {}, {});
    round_all(dtype, {}, {});
  }
}

}  // namespace
}  // namespace fusediff
