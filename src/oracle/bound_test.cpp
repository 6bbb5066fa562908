#include "oracle/bound.h"

#include <gtest/gtest.h>

#include <cmath>

#include "oracle/bits.h"
#include "oracle/hand_made.h"

namespace fusediff {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kUlp = 0x1p-23;  // of f32 at 1
constexpr double kHuge = 0x1.fffffep127;

struct Judged {
  std::optional<Difference> difference;
  std::optional<Side> accused;
};

// One row of output y; output: members of its record.
Judged judge(const std::string& output, const std::vector<double>& target, const std::vector<double>& against,
             const OutputTruth& truth, const std::vector<bool>& skip = {}) {
  const HandMade made(R"("dims": {"N": {"range": [0, 8]}, "R": {"range": [1, 4]}}, "inputs": [],
                         "outputs": [{"name": "y", "shape": ["R", "N"], )" +
                          output + "}]",
                      {{"N", static_cast<std::int64_t>(target.size())}, {"R", 1}});
  const Tensor& y = made.call.outputs[0];
  const Bytes a = elements(y.dtype, target), b = elements(y.dtype, against);
  Judged judged{compare_output(made.op().outputs[0], y, a, b, skip), {}};
  EXPECT_TRUE(judged.difference.has_value());
  if (judged.difference) classify(*judged.difference, made.call, 0, a, b, truth, skip, judged.accused);
  return judged;
}

std::string bound(const std::string& of, const std::string& ulp = "2 * N") {
  return R"("dtype": "f32", "bound": {"ulp": ")" + ulp + R"(", "of": ")" + of + R"(", "why": "a test"})";
}
constexpr const char* kF32 = R"("dtype": "f32")";

TEST(Bound, WithinIsRoundingOutsideIsDamageOfThatSide) {
  Judged judged = judge(bound("element"), {1 + 2 * kUlp}, {1}, {{1}, {}});
  EXPECT_EQ(judged.difference->cls, FindingClass::kRounding);
  EXPECT_EQ(judged.accused, std::nullopt);
  EXPECT_EQ(judged.difference->bound, 2);
  EXPECT_NEAR((*judged.difference->error)[0], 2, 1e-9);

  judged = judge(bound("element"), {1 + 3 * kUlp}, {1}, {{1}, {}});
  EXPECT_EQ(judged.difference->cls, FindingClass::kDamage);
  EXPECT_EQ(judged.accused, Side::kTarget);
  judged = judge(bound("element"), {1}, {1 + 3 * kUlp}, {{1}, {}});
  EXPECT_EQ(judged.accused, Side::kAgainst);
  judged = judge(bound("element"), {1 + 3 * kUlp}, {1 - 3 * kUlp}, {{1}, {}});
  EXPECT_EQ(judged.difference->cls, FindingClass::kDamage);
  EXPECT_EQ(judged.accused, std::nullopt);  // both
}

TEST(Bound, WhereTheSidesAgreeNobodyIsAccused) {
  const Judged judged = judge(bound("element"), {1 + 9 * kUlp, 1 + kUlp}, {1 + 9 * kUlp, 1}, {{1, 1}, {}});
  EXPECT_EQ(judged.difference->cls, FindingClass::kRounding);
  EXPECT_NEAR((*judged.difference->error)[0], 1, 1e-9);
}

TEST(Bound, TheScaleSaysAtWhoseUlpAnErrorCounts) {
  // After cancellation an element is tiny, and its row is not.
  const std::vector<double> truth = {0x1p-20, 1}, target = {0x1p-20 + kUlp, 1}, against = {0x1p-20, 1};
  EXPECT_EQ(judge(bound("element"), target, against, {truth, {}}).difference->cls, FindingClass::kDamage);
  EXPECT_EQ(judge(bound("row_max"), target, against, {truth, {}}).difference->cls, FindingClass::kRounding);
  EXPECT_EQ(judge(bound("row_abs_sum"), target, against, {truth, {}}).difference->cls, FindingClass::kRounding);
  EXPECT_EQ(judge(bound("abs_inputs"), target, against, {truth, {1, 1}}).difference->cls, FindingClass::kRounding);
  EXPECT_EQ(judge(bound("abs_inputs"), target, against, {truth, {0x1p-20, 1}}).difference->cls, FindingClass::kDamage);
}

TEST(Bound, RowSumsAddUpAndRowsAreApart) {
  // Four elements of 1: their sum is 4, whose ULP is four times as large.
  const std::vector<double> ones = {1, 1, 1, 1};
  const std::vector<double> off = {1 + 8 * kUlp, 1, 1, 1};
  EXPECT_EQ(judge(bound("row_max", "2"), off, ones, {ones, {}}).difference->cls, FindingClass::kDamage);
  EXPECT_EQ(judge(bound("row_abs_sum", "2"), off, ones, {ones, {}}).difference->cls, FindingClass::kRounding);

  const HandMade made(R"("dims": {"N": {"range": [0, 8]}}, "inputs": [],
                         "outputs": [{"name": "y", "shape": [2, "N"], )" +
                          bound("row_max", "2") + "}]",
                      {{"N", 1}});
  const std::vector<double> truth = {0x1p-20, 1};
  const Bytes a = elements(DType::kF32, {0x1p-20 + kUlp, 1}), b = elements(DType::kF32, truth);
  std::optional<Difference> d = compare_output(made.op().outputs[0], made.call.outputs[0], a, b, {});
  std::optional<Side> accused;
  classify(*d, made.call, 0, a, b, {truth, {}}, {}, accused);
  EXPECT_EQ(d->cls, FindingClass::kDamage);  // the row of 1 lends it nothing
}

TEST(Bound, WithoutMagnitudesABoundOfThemCannotJudge) {
  const Judged judged = judge(bound("abs_inputs"), {1 + 3 * kUlp}, {1}, {{1}, {}});
  EXPECT_EQ(judged.difference->cls, FindingClass::kRounding);  // four times 1 ULP are allowed then
  EXPECT_EQ(judged.difference->bound, std::nullopt);
  EXPECT_NE(judged.difference->judged_by.find("no truth on absolute inputs"), std::string::npos);
}

TEST(Bound, EachDtypeHasItsOwn) {
  const auto of = [](const std::string& dtype) {
    return R"("dtype": ")" + dtype + R"(", "bound": {"ulp": {"f32": "4 * N", "bf16": 1}, "why": "a test"})";
  };
  EXPECT_EQ(judge(of("f32"), {1 + 4 * kUlp}, {1}, {{1}, {}}).difference->bound, 4);
  const Judged narrow = judge(of("bf16"), {1 + 2 * 0x1p-7}, {1}, {{1}, {}});
  EXPECT_EQ(narrow.difference->bound, 1);
  EXPECT_EQ(narrow.difference->cls, FindingClass::kDamage);
  // By the dtype of an input, where that is what is rounded most.
  const HandMade made(R"("dims": {}, "inputs": [{"name": "x", "shape": [2], "dtype": "bf16"}],
                         "outputs": [{"name": "y", "shape": [2], "dtype": "f32",
                                      "bound": {"ulp": {"f32": 2, "bf16": 9}, "by": "x", "why": "a test"}}])",
                      {});
  EXPECT_EQ(stated_bound(made.call, 0, false), 9);
  const Judged none = judge(of("f16"), {1 + 3 * 0x1p-10}, {1}, {{1}, {}});
  EXPECT_EQ(none.difference->bound, std::nullopt);
  EXPECT_NE(none.difference->judged_by.find("no bound stated for f16"), std::string::npos);
}

// x [R, N] row by row, r [R] a number of each row, w [N] shared, none absent; eps an attribute.
struct Products {
  explicit Products(const std::string& output)
      : made(R"("dims": {"R": {"range": [0, 8]}, "N": {"range": [0, 8]}},
                "attrs": [{"name": "eps", "float": [0, 8], "default": 0.5}],
                "inputs": [{"name": "x", "shape": ["R", "N"], "dtype": "f32"},
                           {"name": "r", "shape": ["R"], "dtype": "f32"},
                           {"name": "w", "shape": ["N"], "dtype": "f32"},
                           {"name": "none", "shape": ["R"], "dtype": "f32", "optional": true}],
                "outputs": [{"name": "y", "dtype": "f32", )" +
                 output + "}]",
             {{"R", 2}, {"N", 2}}, {{"eps", 0.25}}) {}
  std::vector<double> scale() const {
    const std::vector<std::vector<double>> inputs = {{1, -2, 3, 4}, {5, kInf}, {6, -7}, {}};
    return products_of(made.call, 0, inputs, std::vector<OutputTruth>{{{8, 9, 10, 11}, {}}});
  }
  HandMade made;
};

std::string row_max_product(const std::string& shape, const std::string& products) {
  return R"("shape": )" + shape + R"(, "bound": {"ulp": 2, "of": {"row_max_product": )" + products +
         R"(}, "why": "a test"})";
}

TEST(Bound, ProductsOfInputsRowByRow) {
  using Scale = std::vector<double>;
  EXPECT_EQ(Products(row_max_product(R"(["R", "N"])", R"(["x"])")).scale(), (Scale{2, 2, 4, 4}));
  // The shared one counts as a whole though R and N have one size; what is not finite does not count.
  EXPECT_EQ(Products(row_max_product(R"(["R", "N"])", R"(["x", "r", "w"])")).scale(), (Scale{70, 70, 0, 0}));
  EXPECT_EQ(Products(row_max_product(R"(["R", "N"])", R"([["x", "x"], ["eps"], []])")).scale(),
            (Scale{5.25, 5.25, 17.25, 17.25}));
  EXPECT_EQ(Products(row_max_product(R"(["R", "N"])", R"([["x", "none"], ["x"]])")).scale(), (Scale{2, 2, 4, 4}));
  EXPECT_EQ(Products(row_max_product(R"(["R", "N"])", R"(["y", "x"])")).scale(), (Scale{18, 18, 44, 44}));
  // One number a row: its own row. A sum over rows: everything, but its own entry of what has no rows.
  EXPECT_EQ(Products(row_max_product(R"(["R"])", R"(["x"])")).scale(), (Scale{2, 4}));
  EXPECT_EQ(Products(row_max_product(R"(["N"])", R"(["x", "w"])")).scale(), (Scale{24, 28}));
}

TEST(Bound, AProductJudgesWhereAllOfARowCancels) {
  const Products p(row_max_product(R"(["R", "N"])", R"(["x"])"));
  const auto judge_row = [&](double error) {
    const Bytes a = elements(DType::kF32, {error, 0, 0, 0}), b = elements(DType::kF32, {0, 0, 0, 0});
    Judged judged{compare_output(p.made.op().outputs[0], p.made.call.outputs[0], a, b, {}), {}};
    classify(*judged.difference, p.made.call, 0, a, b, {{0, 0, 0, 0}, p.scale()}, {}, judged.accused);
    return judged;
  };
  EXPECT_EQ(judge_row(4 * kUlp).difference->cls, FindingClass::kRounding);
  EXPECT_EQ(judge_row(5 * kUlp).difference->cls, FindingClass::kDamage);
  EXPECT_EQ(judge_row(5 * kUlp).accused, Side::kTarget);
}

TEST(Bound, WithoutABoundUnfusedIsTheMeasure) {
  EXPECT_EQ(judge(kF32, {1 + 4 * kUlp}, {1}, {{1}, {}}).difference->cls, FindingClass::kRounding);
  Judged judged = judge(kF32, {1 + 5 * kUlp}, {1}, {{1}, {}});
  EXPECT_EQ(judged.difference->cls, FindingClass::kDamage);
  EXPECT_EQ(judged.accused, Side::kTarget);
  EXPECT_NE(judged.difference->judged_by.find("relative to unfused"), std::string::npos);
  // An unfused side that is off by 10 lends 40, and is itself not accused.
  EXPECT_EQ(judge(kF32, {1 + 41 * kUlp}, {1 + 10 * kUlp}, {{1}, {}}).difference->cls, FindingClass::kDamage);
  EXPECT_EQ(judge(kF32, {1 + 40 * kUlp}, {1 + 10 * kUlp}, {{1}, {}}).difference->cls, FindingClass::kRounding);
  judged = judge(kF32, {1}, {1 + 1000 * kUlp}, {{1}, {}});
  EXPECT_EQ(judged.difference->cls, FindingClass::kRounding);
  EXPECT_EQ(judged.accused, std::nullopt);
}

TEST(Bound, WithoutTruthADifferenceIsDamage) {
  const Judged judged = judge(kF32, {1 + kUlp}, {1}, {});
  EXPECT_EQ(judged.difference->cls, FindingClass::kDamage);
  EXPECT_NE(judged.difference->judged_by.find("no f64 truth"), std::string::npos);
  EXPECT_EQ(judged.difference->error, std::nullopt);
}

TEST(Bound, NanOrInfinityWhereOtherSideAndTruthAreFinite) {
  Judged judged = judge(kF32, {kNan, 1}, {1, 1}, {{1, 1}, {}});
  EXPECT_EQ(judged.difference->cls, FindingClass::kNonFinite);
  EXPECT_EQ(judged.accused, Side::kTarget);
  judged = judge(kF32, {1}, {kInf}, {{1}, {}});
  EXPECT_EQ(judged.difference->cls, FindingClass::kNonFinite);
  EXPECT_EQ(judged.accused, Side::kAgainst);
  // The reverse: finite where the other side and the truth are not.
  judged = judge(kF32, {1}, {kNan}, {{kNan}, {}});
  EXPECT_EQ(judged.difference->cls, FindingClass::kNonFinite);
  EXPECT_EQ(judged.accused, Side::kTarget);
}

TEST(Bound, OverflowOnBothSidesAlikeIsNoPartOfTheDifference) {
  const Judged judged = judge(bound("element"), {kInf, 1 + kUlp}, {kInf, 1}, {{1e300, 1}, {}});
  EXPECT_EQ(judged.difference->cls, FindingClass::kRounding);
  // Nor where the truth does not overflow: it is no matter of this comparison.
  EXPECT_EQ(judge(kF32, {kInf, 1 + kUlp}, {kInf, 1}, {{1, 1}, {}}).difference->cls, FindingClass::kRounding);
}

TEST(Bound, NonFiniteOnBothSidesInDifferentWaysIsNoRounding) {
  EXPECT_EQ(judge(kF32, {kInf}, {-kInf}, {{1}, {}}).difference->cls, FindingClass::kDamage);
  EXPECT_EQ(judge(kF32, {kInf}, {kNan}, {{kInf}, {}}).difference->cls, FindingClass::kDamage);
  const Judged judged = judge(bound("element"), {kInf}, {kNan}, {{kInf}, {}});
  EXPECT_EQ(judged.difference->cls, FindingClass::kDamage);
  EXPECT_EQ(judged.accused, Side::kAgainst);
}

TEST(Bound, TheTruthRoundedToTheDtypeIsRight) {
  // The truth lies beyond f32's largest number and rounds to infinity; so does the target.
  const Judged judged = judge(bound("element", "1"), {kInf, 1}, {kInf, 1 + kUlp}, {{kHuge * 2, 1}, {}});
  EXPECT_EQ(judged.difference->cls, FindingClass::kRounding);
  EXPECT_LE((*judged.difference->error)[1], 1.0 + 1e-9);
}

TEST(Bound, SkippedElementsDoNotCount) {
  const Judged judged = judge(kF32, {1 + kUlp, 99}, {1, 1}, {{1, 1}, {}}, {false, true});
  EXPECT_EQ(judged.difference->cls, FindingClass::kRounding);
}

TEST(Bound, IntegersMustBeEqualUnlessTheSchemaSaysOtherwise) {
  EXPECT_EQ(judge(R"("dtype": "i32")", {7}, {8}, {{7}, {}}).difference->cls, FindingClass::kDamage);
  EXPECT_EQ(judge(R"("dtype": "i8", "agree": {"ulp": 1, "why": "a test"})", {7}, {9}, {{7}, {}}).difference->cls,
            FindingClass::kDamage);
}

TEST(Bound, ABoundedIntegerIsHeldAgainstTheTruth) {
  HandMade made(R"("dims": {"N": {"range": [0, 8]}}, "inputs": [], "outputs": [{"name": "y", "shape": ["N"], )" +
                    bound("element", "1") + "}]",
                {{"N", 1}});
  made.call.outputs[0].dtype = DType::kI8;
  const auto judge_of = [&](double target, double against) {
    const Bytes a = elements(DType::kI8, {target}), b = elements(DType::kI8, {against});
    Judged judged{compare_output(made.op().outputs[0], made.call.outputs[0], a, b, {}), {}};
    classify(*judged.difference, made.call, 0, a, b, {{7.4}, {}}, {}, judged.accused);
    return judged;
  };
  EXPECT_EQ(judge_of(7, 8).difference->cls, FindingClass::kRounding);
  EXPECT_EQ(judge_of(7, 9).difference->cls, FindingClass::kDamage);
  EXPECT_EQ(judge_of(7, 9).accused, Side::kAgainst);
}

TEST(Bound, MilderClassesAreLeftAlone) {
  const Judged judged = judge(kF32, {0.0}, {-0.0}, {{0}, {}});
  EXPECT_EQ(judged.difference->cls, FindingClass::kZeroSign);
}

}  // namespace
}  // namespace fusediff
