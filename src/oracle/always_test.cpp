#include "oracle/always.h"

#include <gtest/gtest.h>

#include "oracle/hand_made.h"

namespace fusediff {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// Input x [T, N] and w [N]; output y [T, N] of one row unless the test says otherwise.
struct Promise {
  std::string rule;
  std::string dtype = "f32";
  std::int64_t rows = 1;
  std::string more = "";  // further members of the record, each with a comma in front
};

std::string broken(const Promise& promise, const std::vector<double>& y, std::vector<double> x = {},
                   std::vector<double> w = {}, std::int64_t strict = 1) {
  const std::size_t columns = y.size() / static_cast<std::size_t>(promise.rows);
  HandMade made(R"("dims": {"T": {"range": [0, 8]}, "N": {"range": [0, 8]}},
                   "attrs": [{"name": "strict", "bool": true, "default": true}],
                   "inputs": [{"name": "x", "shape": ["T", "N"], "dtype": "f32"},
                              {"name": "w", "shape": ["N"], "dtype": "f32"}],
                   "outputs": [{"name": "y", "shape": ["T", "N"], "stage": 4, "dtype": ")" +
                    promise.dtype + R"(", "always": [)" + promise.rule + "]}]" + promise.more,
                {{"T", promise.rows}, {"N", static_cast<std::int64_t>(columns)}}, {{"strict", strict}});
  x.resize(y.size(), 1);
  w.resize(columns, 1);
  made.inputs["x"] = elements(DType::kF32, x);
  made.inputs["w"] = elements(DType::kF32, w);
  const std::vector<Evidence> seen = judge_always(
      made.call, made.views(), made.gave({{"y", elements(*dtype_named(promise.dtype), y)}}), Side::kAgainst);
  if (seen.empty()) return "";
  EXPECT_EQ(seen[0].cls, FindingClass::kInvariant);
  EXPECT_EQ(seen[0].tensor, "y");
  EXPECT_EQ(seen[0].stage, 4);
  EXPECT_EQ(seen[0].accused, Side::kAgainst);
  return seen[0].what;
}

TEST(Always, RangeOfNumbersAndOfExpressions) {
  const Promise numbers{R"({"range": [-0.5, 1]})"};
  EXPECT_EQ(broken(numbers, {-0.5, 1, 0}), "");
  EXPECT_NE(broken(numbers, {-0.5, 1.0001, 0}).find("row 0, column 1"), std::string::npos);
  EXPECT_EQ(broken(numbers, {kNan}), "");
  EXPECT_NE(broken(numbers, {kInf}), "");
  const Promise indices{R"({"range": [0, "N - 1"]})", "i32"};
  EXPECT_EQ(broken(indices, {0, 2, 1}), "");
  EXPECT_NE(broken(indices, {0, 3, 1}), "");
  EXPECT_NE(broken(indices, {0, -1, 1}), "");
}

TEST(Always, AnEmptySlotIsOutsideTheRangeByRight) {
  const std::string decide = R"(, "decide": [{"by": "x", "pick": "y", "count": "N", "none": -1}])";
  EXPECT_EQ(broken({R"({"range": [0, "N - 1"]}, {"distinct_in_row": true})", "i32", 1, decide}, {0, -1, -1}), "");
  EXPECT_NE(broken({R"({"range": [0, "N - 1"]})", "i32", 1, decide}, {0, -2, 1}), "");
  EXPECT_NE(broken({R"({"distinct_in_row": true})", "i32", 1, decide}, {0, 0, -1}), "");
}

TEST(Always, DistinctInARowOnly) {
  const Promise distinct{R"({"distinct_in_row": true})", "i32", 2};
  EXPECT_EQ(broken(distinct, {0, 1, 0, 1}), "");
  EXPECT_EQ(broken(distinct, {0, 1, 1, 1}), "y holds 1 stands twice in row 1, columns 0 and 1");
}

TEST(Always, FiniteIfEveryInputIs) {
  const Promise finite{R"({"finite_if_inputs_finite": true})"};
  EXPECT_EQ(broken(finite, {1, 2}), "");
  EXPECT_NE(broken(finite, {1, kInf}), "");
  EXPECT_NE(broken(finite, {kNan, 1}), "");
  EXPECT_EQ(broken(finite, {1, kInf}, {kInf, 1}), "");
  EXPECT_EQ(broken(finite, {1, kInf}, {1, 1}, {kNan, 1}), "");
}

TEST(Always, RowSumsOfRowsWithFiniteInputs) {
  const std::string rows = R"(, "rows": {"dim": "T", "inputs": ["x"], "outputs": "all"})";
  const Promise sums{R"({"row_sums": 1, "within": 0.01})", "f32", 2, rows};
  EXPECT_EQ(broken(sums, {0.5, 0.5, 0.25, 0.755}), "");
  EXPECT_NE(broken(sums, {0.5, 0.5, 0.25, 0.78}).find("row 1 sums to"), std::string::npos);
  EXPECT_NE(broken(sums, {0.5, kNan, 0.5, 0.5}).find("row 0"), std::string::npos);
  EXPECT_EQ(broken(sums, {0.5, kNan, 0.5, 0.5}, {1, kInf, 1, 1}), "");          // its own row
  EXPECT_NE(broken(sums, {0.5, kNan, 0.5, 0.5}, {1, 1, 1, kInf}), "");          // another row
  EXPECT_EQ(broken(sums, {0.5, kNan, 0.5, 0.5}, {1, 1, 1, 1}, {kNan, 1}), "");  // what all rows share
}

TEST(Always, WithoutARowsRuleAnInfinityMayReachEveryRow) {
  const Promise sums{R"({"row_sums": 1, "within": 0.01})", "f32", 2};
  EXPECT_NE(broken(sums, {0.5, kNan, 0.5, 0.5}), "");
  EXPECT_EQ(broken(sums, {0.5, kNan, 0.5, 0.5}, {1, 1, 1, kInf}), "");
}

TEST(Always, Permutation) {
  const Promise permutation{R"({"permutation": true})", "i64", 2};
  EXPECT_EQ(broken(permutation, {1, 0, 2, 0, 1, 2}), "");
  EXPECT_NE(broken(permutation, {1, 0, 2, 0, 1, 1}).find("row 1, column 2"), std::string::npos);
  EXPECT_NE(broken(permutation, {1, 0, 3, 0, 1, 2}), "");
  EXPECT_NE(broken(permutation, {1, 0, -1, 0, 1, 2}), "");
}

TEST(Always, ConditionsAndEmptyOutputs) {
  const Promise conditional{R"({"range": [0, 1], "if": "strict == 1"})"};
  EXPECT_NE(broken(conditional, {2}), "");
  EXPECT_EQ(broken(conditional, {2}, {}, {}, 0), "");
  EXPECT_EQ(broken({R"({"row_sums": 1, "within": 0})"}, {}), "");
}

}  // namespace
}  // namespace fusediff
