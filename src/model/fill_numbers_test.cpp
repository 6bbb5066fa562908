#include "model/fill_numbers.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <array>
#include <bit>
#include <cmath>
#include <set>

#include "model/special_values.h"

namespace fusediff {
namespace {

__extension__ typedef __float128 Quad;  // 113 bits: room for the exact sum of mean and product

std::uint64_t library_hash(std::uint64_t index, std::uint64_t seed) {
  return XXH3_64bits_withSeed(&index, sizeof index, seed);
}

Fill fill_of(FillKind kind, double a, double b, std::uint64_t seed = 17) {
  Fill fill;
  fill.kind = kind;
  fill.a = a;
  fill.b = b;
  fill.seed = seed;
  return fill;
}

std::vector<double> draw(const Fill& fill, DType dtype, const Block& block) {
  const Result<NumberFill> plan = plan_numbers(fill, dtype, block);
  EXPECT_TRUE(plan.ok());
  std::vector<double> values(static_cast<std::size_t>(block.count()));
  draw_numbers(*plan, 0, values);
  return values;
}

std::string plan_error(const Fill& fill) {
  const Result<NumberFill> plan = plan_numbers(fill, DType::kF32, {2, 2});
  return plan.ok() ? "" : plan.error().what;
}

TEST(CounterHash, IsXxh3OfTheLibrary) {
  for (const std::uint64_t seed :
       {std::uint64_t{0}, std::uint64_t{17}, ~std::uint64_t{0}, std::uint64_t{0x123456789ABCDEF0}}) {
    const CounterHash hash(seed);
    for (std::uint64_t i = 0; i < 1000; ++i) {
      ASSERT_EQ(hash.at(i), library_hash(i, seed));
      ASSERT_EQ(hash.at(~i), library_hash(~i, seed));
      ASSERT_EQ(hash.at(i << 40), library_hash(i << 40, seed));
      ASSERT_LT(hash.below(i, 7), 7u);
    }
  }
}

// The recipe once more, from its description, with bytes one by one.
std::int64_t deviate_by_description(std::uint64_t h) {
  std::int64_t bytes = 0;
  for (int i = 0; i < 8; ++i) bytes += static_cast<std::int64_t>((h >> (8 * i)) & 0xFF);
  const std::uint64_t product = h * 0x9E3779B97F4A7C15u;
  const std::int64_t d = 2 * (65536 * bytes + static_cast<std::int64_t>(product >> 48) - 2041 * 32768) + 1;
  return ((product >> 36) & 0xFFF) == 0 ? 4 * d : d;
}

double fine_by_description(std::uint64_t h) {
  const std::uint64_t product = h * 0x9E3779B97F4A7C15u;
  const auto fine = 2 * static_cast<double>((product >> 12) & 0xFFFFFF) + 1 - 0x1p24;
  return ((product >> 36) & 0xFFF) == 0 ? 4 * fine : fine;
}

double step_by_description(double value) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  auto whole = static_cast<std::int64_t>(std::ldexp(mantissa, 24));  // 24 bits, cut
  if (whole % 2 == 0) --whole;
  double step = std::ldexp(static_cast<double>(whole), exponent - 24);
  if (whole < (1 << 23)) step = std::ldexp(0x1.fffffep-1, exponent - 1);  // the power of two's predecessor
  return step;
}

TEST(FillNumbers, NormalIsAsDescribedAndRoundsOnce) {
  for (const auto& [mean, std] : {std::pair{0.0, 1.0}, {0.1, 1.0}, {1.0, 0x1p-12}, {-1000.25, 3.7}, {1e-3, 1e3}}) {
    const Block block{1, 20'000};
    const Fill fill = fill_of(FillKind::kNormal, mean, std);
    const std::vector<double> values = draw(fill, DType::kF32, block);
    const std::vector<double> wide = draw(fill, DType::kF64, block);
    const double step = step_by_description(std * 0x1.38f6d9091c643p-25);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto d = static_cast<double>(deviate_by_description(library_hash(i, 17)));
      const Quad exact = Quad(mean) + Quad(d) * Quad(step);
      const Quad fine = Quad(fine_by_description(library_hash(i, 17))) * Quad(step) * Quad(0x1p-24);
      ASSERT_EQ(wide[i], static_cast<double>(exact + fine)) << i;
      ASSERT_EQ(static_cast<float>(values[i]), static_cast<float>(exact)) << i;
      for (const DType dtype : {DType::kF16, DType::kBF16}) {
        const std::uint64_t bits = round_to_bits(dtype, values[i]);
        if (!is_finite(dtype, bits)) continue;
        const auto off = [&](std::uint64_t candidate) {
          const Quad difference = Quad(float_value(dtype, candidate)) - exact;
          return difference < 0 ? -difference : difference;
        };
        ASSERT_LE(off(bits), off(step_bits(dtype, bits, 1))) << i;
        ASSERT_LE(off(bits), off(step_bits(dtype, bits, -1))) << i;
      }
    }
  }
}

// Chosen so that a plain sum in binary64 lands on the halfway point of two floats and rounds the wrong way: 1 + 2^-24
// is half-way, and what is added to it is far below the last bit of the sum.
TEST(FillNumbers, TheSumIsNeverRoundedTwice) {
  std::size_t differs = 0;
  for (int power = 50; power < 70; ++power) {
    for (const double mean : {1 + 0x1p-24, 1 + 3 * 0x1p-24, -1 - 0x1p-24}) {
      const Fill fill = fill_of(FillKind::kNormal, mean, std::ldexp(1.0, -power));
      const std::vector<double> values = draw(fill, DType::kF32, {1, 500});
      const double step = step_by_description(fill.b * 0x1.38f6d9091c643p-25);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto d = static_cast<double>(deviate_by_description(library_hash(i, 17)));
        const auto once = static_cast<float>(Quad(mean) + Quad(d) * Quad(step));
        ASSERT_EQ(static_cast<float>(values[i]), once);
        differs += static_cast<float>(mean + d * step) != once ? 1 : 0;
      }
    }
  }
  EXPECT_GT(differs, 1000u);  // the plain sum would have failed
}

TEST(FillNumbers, NormalHasItsMomentsAndFarOutliers) {
  const std::vector<double> values = draw(fill_of(FillKind::kNormal, 0, 1), DType::kF64, {1, 1 << 20});
  double sum = 0, squares = 0, fourth = 0, largest = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
    fourth += value * value * value * value;
    largest = std::max(largest, std::fabs(value));
  }
  const auto n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0, 0.004);
  EXPECT_NEAR(squares / n, 1, 0.01);
  EXPECT_NEAR(fourth / n, 3, 0.15);
  EXPECT_GT(largest, 6);
  EXPECT_LT(largest, 19.5);
}

TEST(FillNumbers, UniformStaysInsideAndUsesEveryBit) {
  for (const auto& [low, high] : {std::pair{0.0, 1.0}, {-0.1, 0.1}, {-3.0, 1e9}, {5.0, 5.0}, {1.0, 1 + 0x1p-40}}) {
    const std::vector<double> values = draw(fill_of(FillKind::kUniform, low, high), DType::kF64, {4, 5000});
    double smallest = values[0], largest = values[0];
    for (const double value : values) {
      ASSERT_GE(value, low);
      if (high - low > 0x1p-30) {  // else the last rounding may reach it
        ASSERT_LT(value, high);
      }
      ASSERT_LE(value, high);
      smallest = std::min(smallest, value);
      largest = std::max(largest, value);
    }
    EXPECT_LE(smallest - low, (high - low) / 1000);
    EXPECT_LE(high - largest, (high - low) / 1000);
  }
  for (const FillKind kind : {FillKind::kUniform, FillKind::kNormal}) {
    int odd64 = 0, odd32 = 0;
    for (const double value : draw(fill_of(kind, 0, 1), DType::kF64, {1, 10'000})) {
      odd64 += static_cast<int>(std::bit_cast<std::uint64_t>(value) & 1);
      odd32 += static_cast<int>(round_to_bits(DType::kF32, value) & 1);
    }
    EXPECT_NEAR(odd64, 5000, 300);
    EXPECT_NEAR(odd32, 5000, 300);
  }
}

TEST(FillNumbers, DrawingInPiecesIsDrawingAtOnce) {
  const Block block{7, 133};
  for (int kind = 0; kind <= static_cast<int>(FillKind::kOneHot); ++kind) {
    Fill fill = fill_of(static_cast<FillKind>(kind), 1, 2);
    fill.count = 5;
    if (fill.kind == FillKind::kConstant) continue;
    const std::vector<double> whole = draw(fill, DType::kBF16, block);
    std::vector<double> pieces(whole.size());
    const Result<NumberFill> plan = plan_numbers(fill, DType::kBF16, block);
    for (std::size_t at = 0; at < pieces.size();) {
      const std::size_t size = std::min<std::size_t>(1 + at % 97, pieces.size() - at);
      draw_numbers(*plan, static_cast<std::int64_t>(at), std::span(pieces).subspan(at, size));
      at += size;
    }
    for (std::size_t i = 0; i < whole.size(); ++i) {
      ASSERT_EQ(std::bit_cast<std::uint64_t>(whole[i]), std::bit_cast<std::uint64_t>(pieces[i])) << kind << " " << i;
    }
  }
}

TEST(FillNumbers, GridRampOneHotNegativeShifted) {
  Fill grid = fill_of(FillKind::kGrid, -1, 1);
  grid.count = 5;
  const std::vector<double> gridded = draw(grid, DType::kF32, {10, 10});
  EXPECT_EQ(std::set<double>(gridded.begin(), gridded.end()), (std::set<double>{-1, -0.5, 0, 0.5, 1}));
  grid.count = 1;
  EXPECT_EQ(draw(grid, DType::kF32, {1, 2}), (std::vector<double>{-1, -1}));
  EXPECT_EQ(draw(fill_of(FillKind::kRamp, 3, 0), DType::kF32, {2, 2}), (std::vector<double>{3, 2, 1, 0}));
  EXPECT_EQ(draw(fill_of(FillKind::kRamp, 3, 0), DType::kF32, {1, 1}), (std::vector<double>{3}));
  const std::vector<double> hot = draw(fill_of(FillKind::kOneHot, 0, 0), DType::kF32, {50, 3});
  std::array<int, 3> columns = {};
  for (std::size_t row = 0; row < 50; ++row) {
    double sum = 0;
    for (std::size_t column = 0; column < 3; ++column) {
      sum += hot[3 * row + column];
      columns[column] += hot[3 * row + column] == 1 ? 1 : 0;
    }
    EXPECT_EQ(sum, 1);
  }
  for (const int hits : columns) EXPECT_GT(hits, 5);
  const std::vector<double> plain = draw(fill_of(FillKind::kNormal, 0, 2), DType::kF32, {4, 4});
  const std::vector<double> negative = draw(fill_of(FillKind::kNegative, 0, 2), DType::kF32, {4, 4});
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(negative[i], -std::fabs(plain[i]));
  for (const double value : draw(fill_of(FillKind::kShifted, 3, 2), DType::kF32, {10, 10})) {
    EXPECT_NEAR(value, 1000, 0.2);
    EXPECT_NE(value, 1000);
  }
}

TEST(FillNumbers, SpecialValuesAreWhatTheyPromise) {
  for (const DType dtype : kDTypes) {
    SCOPED_TRACE(name_of(dtype));
    std::set<std::uint64_t> seen;
    bool nan = false, infinity = false, minus_zero = false, largest = false, denormal = false;
    for (const double value : special_values(dtype, false)) {
      const std::uint64_t bits = round_to_bits(dtype, value);
      EXPECT_TRUE(seen.insert(bits).second) << value;
      if (!is_float(dtype)) continue;
      EXPECT_EQ(std::bit_cast<std::uint64_t>(float_value(dtype, bits)), std::bit_cast<std::uint64_t>(value));
      nan |= is_nan(dtype, bits);
      infinity |= std::isinf(value);
      minus_zero |= value == 0 && std::signbit(value);
      largest |= value == float_format(dtype).max_finite;
      denormal |= value == float_format(dtype).min_denormal;
    }
    if (is_float(dtype)) {
      EXPECT_TRUE(nan && minus_zero && largest && denormal);
      EXPECT_EQ(infinity, float_format(dtype).has_infinity);
    } else {
      EXPECT_TRUE(seen.contains(round_to_bits(dtype, static_cast<double>(integer_range(dtype).high))));
    }
    for (const double value : special_values(dtype, true)) {
      EXPECT_TRUE(is_finite(dtype, round_to_bits(dtype, value))) << value;
    }
  }
  // The last number whose exp is finite in f32, and the first whose is not.
  const std::vector<double> list = special_values(DType::kF32, true);
  EXPECT_NE(std::find(list.begin(), list.end(), 0x1.62e42ep+6), list.end());
  EXPECT_NE(std::find(list.begin(), list.end(), 0x1.62e430p+6), list.end());
}

TEST(FillNumbers, BadParametersSayWhatIsLegal) {
  const double nan = std::nan(""), infinity = HUGE_VAL;
  EXPECT_EQ(plan_error(fill_of(FillKind::kNormal, nan, 1)),
            "mean nan: legal is a finite number of magnitude at most 1e288");
  EXPECT_EQ(plan_error(fill_of(FillKind::kNormal, 0, -1)), "std -1: legal is a number from 0 to 1e288");
  EXPECT_EQ(plan_error(fill_of(FillKind::kNormal, 0, infinity)), "std inf: legal is a number from 0 to 1e288");
  EXPECT_EQ(plan_error(fill_of(FillKind::kUniform, 1, 0)), "uniform from 1 to 0: the low end comes first");
  EXPECT_EQ(plan_error(fill_of(FillKind::kUniform, -infinity, 0)),
            "the low end -inf: legal is a finite number of magnitude at most 1e288");
  EXPECT_EQ(plan_error(fill_of(FillKind::kGrid, 0, 1)), "count 0: legal is 1 to 16777216");
  EXPECT_EQ(plan_error(fill_of(FillKind::kShifted, 0.5, 1)), "mean 10^0.5: legal is a whole exponent from -300 to 280");
  EXPECT_EQ(plan_error(fill_of(FillKind::kShifted, 0, 301)),
            "spread 10^-301: legal is a whole exponent from -280 to 300");
  EXPECT_EQ(plan_error(fill_of(FillKind::kRamp, 0, 1e300)),
            "the high end 1e+300: legal is a finite number of magnitude at most 1e288");
  EXPECT_EQ(plan_error(fill_of(FillKind::kNormal, -1e288, 1e288)), "");
  for (const double value : draw(fill_of(FillKind::kNormal, -1e288, 1e288), DType::kF64, {1, 9999})) {
    ASSERT_TRUE(std::isfinite(value));
  }
}

Literal real(double value) {
  Literal literal;
  literal.real = value;
  return literal;
}
Literal integer(std::int64_t value) {
  Literal literal;
  literal.kind = Literal::Kind::kInteger;
  literal.integer = value;
  return literal;
}
Literal raw(std::uint64_t bits) {
  Literal literal;
  literal.kind = Literal::Kind::kBits;
  literal.bits = bits;
  return literal;
}
std::string literal_error(const Literal& literal, DType dtype) {
  const Result<std::uint64_t> bits = literal_bits(literal, dtype);
  return bits.ok() ? "" : bits.error().what;
}

TEST(Literal, IsOneElementOrAnError) {
  EXPECT_EQ(*literal_bits(real(0x1.2c5f9ap+1), DType::kF32), 0x40162FCDu);
  EXPECT_EQ(*literal_bits(real(-HUGE_VAL), DType::kBF16), 0xFF80u);
  EXPECT_EQ(*literal_bits(real(7), DType::kI8), 7u);
  EXPECT_EQ(*literal_bits(integer(-1), DType::kI16), 0xFFFFu);
  EXPECT_EQ(*literal_bits(integer(-1), DType::kI64), ~std::uint64_t{0});
  EXPECT_EQ(*literal_bits(raw(0x7FC00001), DType::kF32), 0x7FC00001u);
  EXPECT_EQ(literal_error(real(2.5), DType::kI8), "2.5 is no i8: legal is a whole number from -128 to 127");
  EXPECT_EQ(literal_error(real(1e30), DType::kI64),
            "1e+30 is no i64: legal is a whole number from -9223372036854775808 to 9223372036854775807");
  EXPECT_EQ(literal_error(real(std::nan("")), DType::kU8), "nan is no u8: legal is a whole number from 0 to 255");
  EXPECT_EQ(literal_error(integer(2), DType::kBool), "2 is no bool: legal is a whole number from 0 to 1");
  EXPECT_EQ(literal_error(raw(0x10000), DType::kF16), "bits:0x10000 does not fit f16: legal are 16 bits");
  EXPECT_EQ(literal_error(raw(2), DType::kBool), "bits:0x2 is no bool: legal is a whole number from 0 to 1");
}

// 2^53 + 2^29 + 1 would be rounded to a halfway point of floats first, and then down.
TEST(Literal, AnIntegerRoundsOnce) {
  const std::int64_t value = (std::int64_t{1} << 53) + (std::int64_t{1} << 29) + 1;
  EXPECT_EQ(*literal_bits(integer(value), DType::kF32), std::bit_cast<std::uint32_t>(static_cast<float>(value)));
  EXPECT_EQ(*literal_bits(integer(-value), DType::kF32), std::bit_cast<std::uint32_t>(static_cast<float>(-value)));
  EXPECT_NE(static_cast<float>(value), static_cast<float>(static_cast<double>(value)));
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(*literal_bits(integer(least), DType::kF32), 0xDF000000u);
}

}  // namespace
}  // namespace fusediff
