#include "oracle/bits.h"

#include <gtest/gtest.h>

#include <cmath>

#include "oracle/hand_made.h"

namespace fusediff {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// output: members of the record of output y [N], its dtype among them.
std::optional<Difference> compare(const std::string& output, const std::vector<std::uint64_t>& a,
                                  const std::vector<std::uint64_t>& b, const std::vector<bool>& skip = {},
                                  const std::map<std::string, DType>& dtypes = {}) {
  const HandMade made(R"("dims": {"N": {"range": [0, 8]}}, "inputs": [],
                         "outputs": [{"name": "y", "shape": ["N"], "stage": 2, )" +
                          output + "}]",
                      {{"N", static_cast<std::int64_t>(a.size())}}, {}, dtypes);
  const Tensor& y = made.call.outputs[0];
  return compare_output(made.op().outputs[0], y, raw_elements(y.dtype, a), raw_elements(y.dtype, b), skip);
}

constexpr const char* kF32 = R"("dtype": "f32")";
constexpr std::uint64_t kOne = 0x3F800000;
constexpr std::uint64_t kQuietNan = 0x7FC00000;

TEST(Bits, EqualBytesAreEqualNanIncluded) {
  EXPECT_FALSE(compare(kF32, {kOne, kQuietNan}, {kOne, kQuietNan}));
  EXPECT_FALSE(compare(kF32, {}, {}));
}

TEST(Bits, OneUlpIsADifferenceWithItsPlace) {
  const std::optional<Difference> d = compare(kF32, {kOne, kOne, kOne + 3}, {kOne, kOne + 1, kOne});
  ASSERT_TRUE(d);
  EXPECT_EQ(d->cls, FindingClass::kDamage);
  EXPECT_EQ(d->differing, 2);
  EXPECT_EQ(d->elements, 3);
  EXPECT_EQ(d->first, 1);
  EXPECT_EQ(d->first_bits[1], kOne + 1);
  EXPECT_EQ(d->worst, 2);
  EXPECT_EQ(d->max_ulp, 3u);
  EXPECT_EQ(d->stage, 2);
  EXPECT_DOUBLE_EQ(d->largest, 3 * std::ldexp(1, -23));
}

TEST(Bits, AgreementHoldsForItsDtypeOnly) {
  const std::string rule =
      R"("dtype": ["f32", "bf16", "f16"], "agree": {"ulp": {"f32": 2, "bf16": 1}, "why": "a test"})";
  const auto differ = [&](DType dtype, std::uint64_t a, std::uint64_t b) {
    return compare(rule, {a}, {b}, {}, {{"y", dtype}}).has_value();
  };
  EXPECT_FALSE(differ(DType::kF32, kOne, kOne + 2));
  EXPECT_TRUE(differ(DType::kF32, kOne, kOne + 3));
  EXPECT_FALSE(differ(DType::kF32, 0, 0x80000000));  // both zeros are within any ULP
  EXPECT_FALSE(differ(DType::kBF16, 0x3F80, 0x3F81));
  EXPECT_TRUE(differ(DType::kBF16, 0x3F80, 0x3F82));
  EXPECT_TRUE(differ(DType::kF16, 0x3C00, 0x3C01));
  EXPECT_FALSE(compare(R"("dtype": "i32", "agree": {"ulp": 1, "why": "a test"})", {7}, {8}));
  EXPECT_TRUE(compare(R"("dtype": "i32", "agree": {"ulp": 1, "why": "a test"})", {7}, {9}));
}

TEST(Bits, AgreementNeverCoversInfinityOrNan) {
  const std::string rule = R"("dtype": "f32", "agree": {"ulp": 4, "why": "a test"})";
  EXPECT_TRUE(compare(rule, {0x7F7FFFFF}, {0x7F800000}));
  EXPECT_TRUE(compare(rule, {kOne}, {kQuietNan}));
}

TEST(Bits, ZeroSignIsItsOwnClass) {
  const std::optional<Difference> d = compare(kF32, {0, kOne}, {0x80000000, kOne});
  ASSERT_TRUE(d);
  EXPECT_EQ(d->cls, FindingClass::kZeroSign);
  EXPECT_EQ(d->max_ulp, 0u);
  EXPECT_FALSE(compare(R"("dtype": "i32")", {0}, {0}));
}

TEST(Bits, NanPayloadIsItsOwnClass) {
  std::optional<Difference> d = compare(kF32, {kQuietNan, kOne}, {kQuietNan + 1, kOne});
  ASSERT_TRUE(d);
  EXPECT_EQ(d->cls, FindingClass::kNanBits);
  d = compare(kF32, {kQuietNan, kOne}, {kQuietNan | 0x80000000, kOne});
  EXPECT_EQ(d->cls, FindingClass::kNanBits);
}

TEST(Bits, InAMixTheWorstNamesTheClassAndPayloadsCountOnlyWhereTheyMatter) {
  const std::vector<std::uint64_t> a = {kQuietNan, 0, kOne, kQuietNan},
                                   b = {kQuietNan + 1, 0x80000000, kOne + 1, kQuietNan + 2};
  std::optional<Difference> d = compare(kF32, a, b);
  ASSERT_TRUE(d);
  EXPECT_EQ(d->cls, FindingClass::kDamage);
  EXPECT_EQ(d->differing, 2);  // the zero and the number
  EXPECT_EQ(d->first, 1);
  EXPECT_EQ(d->worst, 2);
  d = compare(R"("dtype": "f32", "nan": "bits")", a, b);
  ASSERT_TRUE(d);
  EXPECT_EQ(d->differing, 4);
  EXPECT_EQ(d->first, 0);
  d = compare(kF32, {kQuietNan, 0}, {kQuietNan + 1, 0x80000000});
  EXPECT_EQ(d->cls, FindingClass::kZeroSign);
  EXPECT_EQ(d->differing, 1);
}

TEST(Bits, SkippedElementsAreExplainedElsewhere) {
  EXPECT_FALSE(compare(kF32, {kOne, kOne}, {kOne, kOne + 9}, {false, true}));
  EXPECT_TRUE(compare(kF32, {kOne, kOne}, {kOne, kOne + 9}, {true, false}));
}

TEST(Bits, LargestDistanceKnowsNoAgreement) {
  const auto f32 = [](const std::vector<double>& values) { return elements(DType::kF32, values); };
  EXPECT_EQ(largest_distance(DType::kF32, f32({1, 2}), f32({1, 2})), 0u);
  EXPECT_EQ(largest_distance(DType::kF32, f32({1, 2}), f32({1 + std::ldexp(1, -22), 2})), 2u);
  EXPECT_EQ(largest_distance(DType::kF32, f32({kNan}), f32({1})), UINT64_MAX);
  EXPECT_EQ(largest_distance(DType::kF32, f32({kInf}), f32({std::numeric_limits<float>::max()})), 1u);
}

}  // namespace
}  // namespace fusediff
