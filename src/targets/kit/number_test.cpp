#include "kit/number.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace fusediff::kit {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Value of a pattern by the definition of the format, in plain arithmetic. IEEE-like formats: the top exponent is
// infinity or NaN. E4M3FN: only all ones is NaN.
template <class T>
double defined_value(uint32_t bits) {
  const int width = static_cast<int>(sizeof(T)) * 8;
  const int exponent_bits = width - 1 - T::kMantissa;
  const uint32_t mantissa = bits & ((1u << T::kMantissa) - 1);
  const int exponent = static_cast<int>(bits >> T::kMantissa) & ((1 << exponent_bits) - 1);
  const double sign = (bits >> (width - 1)) != 0 ? -1.0 : 1.0;
  const bool top = exponent == (1 << exponent_bits) - 1;
  const bool fn = T::kDtype == FUSEDIFF_F8E4M3FN;
  if (top && fn && mantissa == (1u << T::kMantissa) - 1) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (top && !fn) {
    return mantissa == 0 ? sign * kInf : std::numeric_limits<double>::quiet_NaN();
  }
  const double step = std::ldexp(1.0, 1 - T::kBias - T::kMantissa);
  if (exponent == 0) {
    return sign * mantissa * step;
  }
  return sign * std::ldexp((1u << T::kMantissa) + mantissa, exponent - T::kBias - T::kMantissa);
}

template <class T>
class NumberTest : public testing::Test {};
using Formats = testing::Types<Half, BFloat16, F8E4M3, F8E5M2>;
TYPED_TEST_SUITE(NumberTest, Formats);

template <class T>
uint32_t patterns() {
  return 1u << (sizeof(T) * 8);
}

TYPED_TEST(NumberTest, EveryPatternHasItsValueAndComesBack) {
  for (uint32_t bits = 0; bits < patterns<TypeParam>(); ++bits) {
    const TypeParam value{static_cast<typename TypeParam::bits_type>(bits)};
    const double expected = defined_value<TypeParam>(bits);
    const float got = decode(value);
    const bool negative = (bits & TypeParam::kSign) != 0;
    ASSERT_EQ(std::signbit(got), negative) << bits;
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(got)) << bits;
      ASSERT_TRUE(std::isnan(decode(encode<TypeParam>(got)))) << bits;
      ASSERT_EQ(std::signbit(decode(encode<TypeParam>(got))), negative) << bits;
      continue;
    }
    ASSERT_EQ(static_cast<double>(got), expected) << bits;
    if (std::isinf(expected) || std::abs(expected) <= defined_value<TypeParam>(TypeParam::kLargest)) {
      ASSERT_EQ(encode<TypeParam>(got).bits, bits);
      ASSERT_EQ(encode<TypeParam>(expected).bits, bits);
    }
  }
}

// What `value` must round to, between the neighbours of bits `low` and `low + 1`.
template <class T, class Source>
void expect_rounds_to(Source value, uint32_t bits) {
  const uint32_t sign = T::kSign;
  ASSERT_EQ(encode<T>(value).bits, bits) << value;
  ASSERT_EQ(encode<T>(-value).bits, bits | sign) << -value;
}

TYPED_TEST(NumberTest, RoundsToNearestEvenAroundEveryHalfwayPoint) {
  for (uint32_t low = 0; low <= TypeParam::kLargest; ++low) {
    const double below = defined_value<TypeParam>(low);
    // Past the largest the next step is as wide as the one before.
    const bool last = low == TypeParam::kLargest;
    const double above = last ? 2 * below - defined_value<TypeParam>(low - 1) : defined_value<TypeParam>(low + 1);
    const uint32_t up = last ? uint32_t{TypeParam::kBeyond} : low + 1;
    const double middle = below + (above - below) / 2;
    const uint32_t at_middle = low % 2 == 0 ? low : up;
    expect_rounds_to<TypeParam>(middle, at_middle);
    expect_rounds_to<TypeParam>(std::nextafter(middle, 0.0), low);
    expect_rounds_to<TypeParam>(std::nextafter(middle, kInf), up);
    const float narrow = static_cast<float>(middle);
    if (static_cast<double>(narrow) == middle) {
      expect_rounds_to<TypeParam>(narrow, at_middle);
      expect_rounds_to<TypeParam>(std::nextafter(narrow, 0.0f), low);
      expect_rounds_to<TypeParam>(std::nextafter(narrow, std::numeric_limits<float>::infinity()), up);
    }
  }
}

TYPED_TEST(NumberTest, OverflowsToInfinityOrInE4m3fnToNan) {
  const auto beyond = TypeParam::kBeyond;
  for (const double value : {1e39, 1e300, std::numeric_limits<double>::max(), kInf}) {
    expect_rounds_to<TypeParam>(value, beyond);
    expect_rounds_to<TypeParam>(static_cast<float>(value), beyond);
  }
  EXPECT_EQ(std::isnan(decode(TypeParam{beyond})), (std::is_same_v<TypeParam, F8E4M3>));
}

TYPED_TEST(NumberTest, TinyValuesRoundToZeroWithTheirSign) {
  for (const double value : {0.0, 5e-324, 1e-310, 1e-60}) {
    expect_rounds_to<TypeParam>(value, 0);
  }
  expect_rounds_to<TypeParam>(std::numeric_limits<float>::denorm_min(), 0);
}

TEST(ConvertTest, GoesThroughEveryKind) {
  EXPECT_EQ(convert<Half>(int32_t{3}).bits, 0x4200);
  EXPECT_EQ(convert<float>(BFloat16{0x3f80}), 1.0f);
  EXPECT_EQ(convert<BFloat16>(Half{0x3c00}).bits, 0x3f80);
  EXPECT_EQ(convert<int64_t>(Half{0x4200}), 3);
  EXPECT_EQ(convert<Bool>(2.0f).value, 1);
  EXPECT_EQ(convert<double>(Bool{1}), 1.0);
  // Straight from double: through float this would land on the tie and round down.
  EXPECT_EQ(convert<Half>(1.0 + 0x1p-11 + 0x1p-40).bits, 0x3c01);
}

}  // namespace
}  // namespace fusediff::kit
