#include "model/values.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

namespace fusediff {
namespace {

constexpr FillKind kRoleRecipes[] = {FillKind::kIndexUniform, FillKind::kSkewed, FillKind::kUnused,
                                     FillKind::kPermutation};

Tensor dense(DType dtype, std::vector<std::int64_t> shape) {
  Tensor tensor;
  tensor.name = std::string(1, 'x');
  tensor.dtype = dtype;
  tensor.stride = dense_strides(shape);
  tensor.shape = std::move(shape);
  return tensor;
}

InputRule rule_of(Role role) {
  InputRule rule;
  rule.name = std::string(1, 'x');
  rule.role = role;
  return rule;
}

InputRule index_rule(std::int64_t low, std::int64_t high) {
  InputRule rule = rule_of(Role::kIndex);
  rule.range = {Expr(low), Expr(high)};
  return rule;
}

InputValue value_of(FillKind kind, double a = 0, double b = 0, std::uint64_t seed = 17) {
  InputValue value;
  value.fill.kind = kind;
  value.fill.a = a;
  value.fill.b = b;
  value.fill.count = 5;
  value.fill.seed = seed;
  return value;
}

Literal whole(std::int64_t number) {
  Literal literal;
  literal.kind = Literal::Kind::kInteger;
  literal.integer = number;
  return literal;
}

Literal real(double number) {
  Literal literal;
  literal.real = number;
  return literal;
}

Fill constant(Literal literal) {
  Fill fill;
  fill.kind = FillKind::kConstant;
  fill.constant = literal;
  return fill;
}

std::vector<double> numbers(const std::vector<std::byte>& bytes, DType dtype) {
  std::vector<double> values(bytes.size() / size_of(dtype));
  widen(dtype, bytes, values);
  return values;
}

std::vector<double> draw(const InputValue& value, const InputRule& rule, const Tensor& tensor) {
  const Result<std::vector<std::byte>> bytes = draw_values(value, rule, tensor, Call{});
  EXPECT_TRUE(bytes.ok()) << (bytes.ok() ? "" : bytes.error().what);
  if (!bytes.ok()) return std::vector<double>(static_cast<std::size_t>(stored_count(tensor)));
  const Status status = check_values(*bytes, rule, tensor, Call{});
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().what);
  return numbers(*bytes, tensor.dtype);
}

std::string draw_error(const InputValue& value, const InputRule& rule, const Tensor& tensor) {
  const Result<std::vector<std::byte>> bytes = draw_values(value, rule, tensor, Call{});
  return bytes.ok() ? "" : bytes.error().what;
}

template <typename T>
std::string check_error(std::vector<T> elements, DType dtype, const InputRule& rule, std::int64_t rows = 1) {
  const auto columns = static_cast<std::int64_t>(elements.size()) / rows;
  const Tensor tensor = dense(dtype, {rows, columns});
  const Status status = check_values(std::as_bytes(std::span(elements)), rule, tensor, Call{});
  return status.ok() ? "" : status.error().what;
}

TEST(Values, EachRoleNamesItsRecipes) {
  const Tensor tensor = dense(DType::kI32, {2, 3});
  EXPECT_EQ(draw_error(value_of(FillKind::kNormal, 0, 1), index_rule(0, 7), tensor),
            "/inputs/x/fill: normal is not for values of this role: legal are uniform, skewed, unused, permutation, "
            "constant, ramp, bits");
  EXPECT_EQ(draw_error(value_of(FillKind::kSkewed), rule_of(Role::kActivation), tensor),
            "/inputs/x/fill: the role recipe skewed is not for values of this role: legal are normal, uniform, grid, "
            "constant, special, finite_special, shifted, negative, ramp, one_hot, bits");
  EXPECT_EQ(draw_error(value_of(FillKind::kNormal, 0, 1), rule_of(Role::kSaved), tensor),
            "/inputs/x/fill: normal is not for values of this role: legal are bits");
  EXPECT_EQ(draw_error(value_of(FillKind::kSpecial), rule_of(Role::kProbability), dense(DType::kF32, {2, 3})),
            "/inputs/x/fill: special is not for values of this role: legal are normal, uniform, grid, constant, "
            "shifted, negative, ramp, one_hot, bits");
}

TEST(Values, EveryRecipeObeysItsRoleInEveryDtypeAndShape) {
  const std::vector<std::vector<std::int64_t>> shapes = {{}, {1}, {64}, {5, 7}, {3, 1}, {2, 3, 4}, {0}, {4, 0}, {0, 4}};
  for (const Role role : {Role::kActivation, Role::kScore, Role::kBias, Role::kCotangent, Role::kProbability,
                          Role::kScale, Role::kMask, Role::kIndex, Role::kCounts, Role::kOffsets}) {
    for (const DType dtype : kDTypes) {
      const bool no_mask = role == Role::kMask && dtype == DType::kF8E4M3FN;
      if (no_mask || (role == Role::kProbability && !is_float(dtype))) continue;
      for (const FillKind kind : legal_fills(role)) {
        if (kind == FillKind::kBits || kind == FillKind::kConstant) continue;
        if (kind == FillKind::kRamp && (role == Role::kCounts || role == Role::kOffsets)) continue;
        for (const auto& shape : shapes) {
          for (std::uint64_t seed = 0; seed < 3; ++seed) {
            SCOPED_TRACE(testing::Message() << name_of(dtype) << " role " << static_cast<int>(role) << " "
                                            << name_of(kind) << " rank " << shape.size() << " seed " << seed);
            draw(value_of(kind, 0, 1, seed), rule_of(role), dense(dtype, shape));
          }
        }
      }
    }
  }
}

TEST(Values, ProbabilitiesSumToOne) {
  const Tensor tensor = dense(DType::kF32, {3, 100});
  InputValue value = value_of(FillKind::kUniform, 0, 1);
  value.patches = {{1, 1, 0, 99, constant(whole(0))}, {2, 2, 0, 98, constant(whole(0))}};
  const std::vector<double> values = draw(value, rule_of(Role::kProbability), tensor);
  for (std::size_t row = 0; row < 3; ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < 100; ++i) sum += values[100 * row + i];
    EXPECT_NEAR(sum, 1, 1e-6);
  }
  EXPECT_NE(values[0], values[1]);
  EXPECT_EQ(values[100], static_cast<double>(0.01f));  // a row of zeros
  EXPECT_EQ(values[200], 0);
  EXPECT_EQ(values[299], 1);
  value.patches = {{1, 1, 0, 0, constant(real(HUGE_VAL))}};
  EXPECT_EQ(draw_error(value, rule_of(Role::kProbability), tensor),
            "/inputs/x: row 1 has weights that are not finite: a row of probabilities must sum to 1");
  value.patches.clear();
  value.set = {{103, real(0.75)}};
  EXPECT_EQ(draw_error(value, rule_of(Role::kProbability), tensor).substr(0, 37),
            "/inputs/x/set/103: row 1 sums to 1.73");
  EXPECT_EQ(draw_error(value_of(FillKind::kNormal, 0, 1), rule_of(Role::kProbability), dense(DType::kI32, {1, 2})),
            "/inputs/x: probabilities need a float dtype, not i32");
}

// What a softmax in f32, rounded to each dtype, gives must be taken; a row that is off by more than its dtype explains
// must not.
TEST(Values, CapturedProbabilitiesHaveTheirSlack) {
  for (const DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
    const std::int64_t n = 512;
    std::vector<float> exponentials(static_cast<std::size_t>(n));
    float sum = 0;
    for (std::size_t i = 0; i < exponentials.size(); ++i) {
      exponentials[i] = std::exp(std::sin(static_cast<float>(i) * 1.7f) * 4);
      sum += exponentials[i];
    }
    std::vector<double> values(exponentials.size()), off(exponentials.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = exponentials[i] / sum;
      off[i] = values[i] * 1.05;
    }
    const Tensor tensor = dense(dtype, {1, n});
    std::vector<std::byte> bytes(stored_bytes(tensor));
    round_all(dtype, values, bytes);
    EXPECT_TRUE(check_values(bytes, rule_of(Role::kProbability), tensor, Call{}).ok()) << name_of(dtype);
    round_all(dtype, off, bytes);
    EXPECT_FALSE(check_values(bytes, rule_of(Role::kProbability), tensor, Call{}).ok()) << name_of(dtype);
  }
  EXPECT_EQ(check_error<float>({0.5f, -0.5f}, DType::kF32, rule_of(Role::kProbability)),
            "/inputs/x: stored element 1: -0.5 is no probability: legal is 0 to 1");
}

TEST(Values, ScalesArePositive) {
  const Tensor tensor = dense(DType::kF16, {1, 4});
  EXPECT_EQ(draw(value_of(FillKind::kRamp, -3, 0), rule_of(Role::kScale), tensor), (std::vector<double>{3, 2, 1, 1}));
  EXPECT_EQ(draw(value_of(FillKind::kRamp, -1e9, 1e9), rule_of(Role::kScale), tensor)[0], 65504);
  EXPECT_EQ(draw(value_of(FillKind::kRamp, -3, 0), rule_of(Role::kScale), dense(DType::kI8, {1, 4})),
            (std::vector<double>{3, 2, 1, 1}));
  InputValue value;
  value.fill = constant(whole(0));
  EXPECT_EQ(draw_error(value, rule_of(Role::kScale), tensor),
            "/inputs/x/fill: 0 is no scale: legal is a positive finite number");
}

TEST(Values, MasksStandInRuns) {
  const std::vector<double> bits =
      draw(value_of(FillKind::kIndexUniform), rule_of(Role::kMask), dense(DType::kBool, {20, 200}));
  std::size_t kept = 0, changes = 0;
  for (std::size_t i = 1; i < bits.size(); ++i) {
    kept += bits[i] == 1 ? 1 : 0;
    changes += bits[i] != bits[i - 1] ? 1 : 0;
  }
  EXPECT_GT(kept, 1000u);
  EXPECT_LT(kept, 3000u);
  EXPECT_GT(changes, 40u);
  EXPECT_LT(changes, 1000u);
  const std::vector<double> same =
      draw(value_of(FillKind::kIndexUniform), rule_of(Role::kMask), dense(DType::kBF16, {20, 200}));
  for (std::size_t i = 0; i < bits.size(); ++i) ASSERT_EQ(same[i], bits[i] == 1 ? 0 : -HUGE_VAL);
  for (const auto& [kind, rows_kept] :
       std::map<FillKind, int>{{FillKind::kSkewed, 1}, {FillKind::kOneHot, 1}, {FillKind::kPermutation, 4}}) {
    const std::vector<double> mask = draw(value_of(kind), rule_of(Role::kMask), dense(DType::kI32, {9, 7}));
    std::set<std::size_t> columns;
    for (std::size_t row = 0; row < 9; ++row) {
      int ones = 0;
      for (std::size_t column = 0; column < 7; ++column) {
        if (mask[7 * row + column] == 0) continue;
        ++ones;
        columns.insert(column);
      }
      EXPECT_EQ(ones, rows_kept) << name_of(kind);
    }
    EXPECT_EQ(columns.size() == 1, kind == FillKind::kSkewed);
  }
  EXPECT_EQ(draw_error(value_of(FillKind::kSkewed), rule_of(Role::kMask), dense(DType::kF8E4M3FN, {2, 2})),
            "/inputs/x/fill: a mask needs -inf, which f8e4m3fn has not: legal are bits and constant");
  EXPECT_EQ(check_error<float>({0, -0.0f, -HUGE_VALF, 1}, DType::kF32, rule_of(Role::kMask)),
            "/inputs/x: stored element 3: 1 is no mask value: legal are 0 and -inf");
}

TEST(Values, IndexRecipesDoWhatTheirNamesSay) {
  InputRule rule = index_rule(2, 9);
  const Tensor tensor = dense(DType::kI32, {50, 4});
  const std::vector<double> uniform = draw(value_of(FillKind::kIndexUniform), rule, tensor);
  EXPECT_EQ(std::set<double>(uniform.begin(), uniform.end()).size(), 8u);
  const std::vector<double> skewed = draw(value_of(FillKind::kSkewed), rule, tensor);
  EXPECT_EQ(std::set<double>(skewed.begin(), skewed.end()).size(), 1u);
  std::set<std::set<double>> used;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<double> unused = draw(value_of(FillKind::kUnused, 0, 0, seed), rule, tensor);
    used.emplace(unused.begin(), unused.end());
    EXPECT_EQ(std::set<double>(unused.begin(), unused.end()).size(), 4u);
  }
  EXPECT_GT(used.size(), 3u);
  const std::vector<double> permuted = draw(value_of(FillKind::kPermutation), rule, tensor);
  for (std::size_t i = 0; i < permuted.size(); i += 8) {
    EXPECT_EQ(std::set<double>(permuted.begin() + static_cast<std::ptrdiff_t>(i),
                               permuted.begin() + static_cast<std::ptrdiff_t>(i) + 8)
                  .size(),
              8u);
  }
  EXPECT_EQ(draw_error(value_of(FillKind::kIndexUniform), index_rule(0, -1), tensor),
            "/inputs/x/fill: the range 0..-1 holds no value");
}

// draw() checks distinctness and order; ranges just wide enough, wider than the dense shuffle, and rows that do not
// divide the range.
TEST(Values, DistinctAndSortedRows) {
  for (const std::int64_t high : {6, 7, 8, 100, 1'000'000'000}) {
    for (const bool sorted : {false, true}) {
      InputRule rule = index_rule(0, high);
      rule.distinct = true;
      rule.sorted = sorted;
      for (const FillKind kind : kRoleRecipes) draw(value_of(kind), rule, dense(DType::kI32, {6, 7}));
    }
  }
  InputRule rule = index_rule(0, 5);
  rule.distinct = true;
  EXPECT_EQ(draw_error(value_of(FillKind::kIndexUniform), rule, dense(DType::kI32, {6, 7})),
            "/inputs/x/fill: no 7 distinct values in a row from the range 0..5");
  const std::vector<double> skewed = draw(value_of(FillKind::kSkewed), rule, dense(DType::kI32, {6, 3}));
  for (std::size_t i = 3; i < skewed.size(); ++i) EXPECT_EQ(skewed[i], skewed[i - 3]);
}

TEST(Values, SentinelsComeOccasionally) {
  InputRule rule = index_rule(0, 63);
  rule.also = {-100};
  rule.distinct = true;
  int with = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    int sentinels = 0;
    for (const double value : draw(value_of(FillKind::kIndexUniform, 0, 0, seed), rule, dense(DType::kI64, {64, 16}))) {
      sentinels += value == -100 ? 1 : 0;
    }
    EXPECT_LT(sentinels, 130);
    with += sentinels > 0 ? 1 : 0;
  }
  EXPECT_GT(with, 4);
  EXPECT_LT(with, 16);
}

TEST(Values, CountsSumPerRow) {
  InputRule rule = rule_of(Role::kCounts);
  rule.sum = Expr(100);
  const Tensor tensor = dense(DType::kI32, {10, 8});
  std::set<double> sizes;
  for (const double count : draw(value_of(FillKind::kIndexUniform), rule, tensor)) sizes.insert(count);
  EXPECT_GT(*sizes.rbegin(), 30);
  EXPECT_LE(*sizes.begin(), 1);
  for (const double count : draw(value_of(FillKind::kPermutation), rule, tensor)) {
    EXPECT_TRUE(count == 12 || count == 13);
  }
  int empty = 0;
  for (const double count : draw(value_of(FillKind::kUnused), rule, tensor)) empty += count == 0 ? 1 : 0;
  EXPECT_GT(empty, 20);
  const std::vector<double> skewed = draw(value_of(FillKind::kSkewed), rule, tensor);
  EXPECT_EQ(*std::max_element(skewed.begin(), skewed.begin() + 8), 100);
  rule.range = {Expr(3), Expr(14)};
  for (const FillKind kind : kRoleRecipes) draw(value_of(kind), rule, tensor);  // checked: clamped, and still the sum
  rule.range = {Expr(0), Expr(12)};
  EXPECT_EQ(draw_error(value_of(FillKind::kSkewed), rule, tensor), "/inputs/x/fill: no 8 counts of 0..12 sum to 100");
  rule.range.reset();
  EXPECT_EQ(check_error<std::int32_t>({50, 51}, DType::kI32, rule),
            "/inputs/x: stored element 0: counts sum to 101: legal is 100");
  EXPECT_EQ(check_error<std::int32_t>({101, -1}, DType::kI32, rule).substr(0, 42),
            "/inputs/x: stored element 1: -1 is outside");
}

TEST(Values, OffsetsRiseToTheirSum) {
  InputRule rule = rule_of(Role::kOffsets);
  rule.sum = Expr(40);
  for (const FillKind kind : kRoleRecipes) {
    const std::vector<double> offsets = draw(value_of(kind), rule, dense(DType::kI64, {9}));
    EXPECT_EQ(offsets.front(), 0);
    EXPECT_EQ(offsets.back(), 40);
  }
  EXPECT_EQ(draw_error(value_of(FillKind::kSkewed), rule, dense(DType::kI64, {1})),
            "/inputs/x/fill: no offsets of 0 groups, at most 4611686018427387904, end at 40");
  EXPECT_EQ(check_error<std::int8_t>({0, 3, 2, 40}, DType::kI8, rule),
            "/inputs/x: stored element 2: 2 comes after 3: offsets never fall");
  EXPECT_EQ(check_error<std::int8_t>({1, 3, 4, 40}, DType::kI8, rule),
            "/inputs/x: stored element 0: offsets begin with 1: legal is 0");
  EXPECT_EQ(check_error<std::int8_t>({0, 3, 4, 41}, DType::kI8, rule),
            "/inputs/x: stored element 3: offsets end with 41: legal is 40");
}

TEST(Values, PatchesCoverTheirBlockOnly) {
  const Tensor tensor = dense(DType::kF32, {4, 5});
  const InputValue plain = value_of(FillKind::kNormal, 0, 1);
  InputValue patched = plain;
  Fill ramp = value_of(FillKind::kRamp, 1, 6).fill;
  patched.patches = {{1, 2, 2, 4, ramp}, {2, 2, 4, 4, constant(real(-HUGE_VAL))}};
  const std::vector<double> before = draw(plain, rule_of(Role::kScore), tensor);
  std::vector<double> expected = before;
  for (std::size_t i = 0; i < 3; ++i) {
    expected[7 + i] = static_cast<double>(1 + i);
    expected[12 + i] = static_cast<double>(4 + i);
  }
  expected[14] = -HUGE_VAL;
  EXPECT_EQ(draw(patched, rule_of(Role::kScore), tensor), expected);
  patched.patches = {{0, 4, 0, 0, ramp}};
  EXPECT_EQ(draw_error(patched, rule_of(Role::kScore), tensor),
            "/inputs/x/patches/0/rows: [0, 4]: legal is 0 to 3, low first");
  patched.patches = {{0, 0, 0, 0, ramp}, {0, 0, 3, 2, ramp}};
  EXPECT_EQ(draw_error(patched, rule_of(Role::kScore), tensor),
            "/inputs/x/patches/1/columns: [3, 2]: legal is 0 to 4, low first");
  EXPECT_EQ(draw_error(patched, rule_of(Role::kScore), dense(DType::kF32, {0, 5})),
            "/inputs/x/patches/0/rows: [0, 0]: there are none");
  InputValue counts = value_of(FillKind::kSkewed);
  counts.patches = {{0, 0, 0, 0, value_of(FillKind::kSkewed).fill}};
  EXPECT_EQ(
      draw_error(counts, rule_of(Role::kCounts), dense(DType::kI32, {4})),
      "/inputs/x/patches/0/fill: the role recipe skewed is not for values of this role: legal are constant, ramp, "
      "bits");
}

TEST(Values, BitsMustFit) {
  const Tensor tensor = dense(DType::kF16, {2, 2});
  InputValue value;
  value.fill.kind = FillKind::kBits;
  EXPECT_EQ(draw_error(value, rule_of(Role::kScore), tensor), "/inputs/x/fill: bits of 0 bytes: legal is 8");
  std::vector<std::byte> bytes(8, std::byte{0x3C});
  value.fill.bits = std::make_shared<const std::vector<std::byte>>(bytes);
  EXPECT_EQ(*draw_values(value, rule_of(Role::kSaved), tensor, Call{}), bytes);
  EXPECT_EQ(draw_error(value, rule_of(Role::kScore), dense(DType::kBool, {8})),
            "/inputs/x/fill: 60 is no bool: legal are the bytes 0 and 1");
}

TEST(Values, OverridesNameLogicalElements) {
  Tensor tensor = dense(DType::kF32, {2, 3, 4});
  InputValue value;
  value.fill = constant(whole(0));
  value.set = {{0, real(0x1.2c5f9ap+1)}, {23, whole(7)}};
  std::vector<double> expected(24, 0);
  expected[0] = 0x1.2c5f9ap+1;
  expected[23] = 7;
  EXPECT_EQ(draw(value, rule_of(Role::kScore), tensor), expected);
  tensor.stride = {4, 0, 1};  // eight stored elements
  value.set = {{15, whole(7)}};
  EXPECT_EQ(draw(value, rule_of(Role::kScore), tensor), (std::vector<double>{0, 0, 0, 0, 0, 0, 0, 7}));
  value.set = {{4, whole(7)}};
  EXPECT_EQ(draw_error(value, rule_of(Role::kScore), tensor),
            "/inputs/x/set/4: dimension 1 has stride 0 and one element for all its 3 places: legal there is index 0, "
            "not 1");
  value.set = {{24, whole(7)}};
  EXPECT_EQ(draw_error(value, rule_of(Role::kScore), tensor),
            "/inputs/x/set/24: there is no such element: legal is 0 to 23");
  value.set = {{-1, whole(7)}};
  EXPECT_EQ(draw_error(value, rule_of(Role::kScore), tensor),
            "/inputs/x/set/-1: there is no such element: legal is 0 to 23");
  value.set = {{0, real(0.5)}};
  EXPECT_EQ(draw_error(value, rule_of(Role::kScore), dense(DType::kI8, {1})),
            "/inputs/x/set/0: 0.5 is no i8: legal is a whole number from -128 to 127");
}

TEST(Values, WhatBreaksTheRoleIsNamed) {
  InputRule rule = index_rule(0, 7);
  const Tensor tensor = dense(DType::kI32, {2, 3});
  InputValue value = value_of(FillKind::kPermutation);
  value.set = {{5, whole(9)}};
  EXPECT_EQ(draw_error(value, rule, tensor), "/inputs/x/set/5: 9 is outside 0..7");
  rule.also = {-100};
  EXPECT_EQ(draw_error(value, rule, tensor), "/inputs/x/set/5: 9 is outside 0..7 and not -100");
  value.set = {{5, whole(-100)}};
  EXPECT_EQ(draw_error(value, rule, tensor), "");
  value.set.clear();
  value.patches = {{1, 1, 0, 1, constant(whole(3))}};
  EXPECT_EQ(draw_error(value, rule, tensor), "");
  rule.distinct = true;
  EXPECT_EQ(draw_error(value, rule, tensor),
            "/inputs/x/patches/0: 3 stands twice in a row, at columns 0 and 1: legal are distinct values");
  value.patches.clear();
  value.fill = constant(whole(3));
  EXPECT_EQ(draw_error(value, rule, tensor),
            "/inputs/x/fill: 3 stands twice in a row, at columns 0 and 1: legal are distinct values");
  rule = index_rule(0, 7);
  rule.sorted = true;
  EXPECT_EQ(check_error<std::int32_t>({1, 2, 2, 1}, DType::kI32, rule),
            "/inputs/x: stored element 3: 1 comes after 2: legal is ascending in a row");
  EXPECT_EQ(check_error<std::int32_t>({1, 2, 2, 1}, DType::kI32, rule, 4), "");
  const Tensor short_one = dense(DType::kI32, {3});
  EXPECT_EQ(check_values({}, rule, short_one, Call{}).error().what, "/inputs/x: 0 bytes: legal is 12");
}

TEST(Values, RangesComeFromTheSchema) {
  Operator op;
  DimRule dim;
  dim.name = "E";
  op.dims = {dim};
  Call call;
  call.op = &op;
  call.dims = {4};
  InputRule rule = rule_of(Role::kIndex);
  rule.range = {Expr(0), *Expr::parse("E - 1")};
  const Tensor tensor = dense(DType::kI32, {100});
  for (const double value : numbers(*draw_values(value_of(FillKind::kIndexUniform), rule, tensor, call), DType::kI32)) {
    ASSERT_LT(value, 4);
  }
  rule.range = {Expr(0), *Expr::parse("E / (E - 4)")};
  const Result<std::vector<std::byte>> failed = draw_values(value_of(FillKind::kIndexUniform), rule, tensor, call);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().what.substr(0, 10), "/inputs/x:");
}

}  // namespace
}  // namespace fusediff
