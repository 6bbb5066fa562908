#include "oracle/decide.h"

#include <gtest/gtest.h>

#include <cmath>

#include "oracle/hand_made.h"
#include "oracle/ranks.h"

namespace fusediff {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// Ranks r [T, N] and picks p [T, K]; `by` is an output unless the record says another.
struct TopK {
  std::string options = "";  // further members of the decide rule, each with a comma in front
  std::string dtype = "f32";
  std::int64_t rows = 1, columns = 4, slots = 2;
  std::string more_inputs = "";
  std::string more_outputs = "";
  std::string by = "r";

  std::string fields() const {
    return R"("dims": {"T": {"range": [0, 8]}, "N": {"range": [1, 64]}, "K": {"range": [1, 64]}},
              "attrs": [{"name": "up", "bool": true, "default": true}],
              "inputs": [{"name": "x", "shape": ["T", "N"], "dtype": ")" +
           dtype + R"(", "layout": "any"})" + more_inputs +
           R"(], "outputs": [{"name": "r", "shape": ["T", "N"], "dtype": ")" + dtype + R"(", "stage": 1},
              {"name": "p", "shape": ["T", "K"], "dtype": "i32", "stage": 2})" +
           more_outputs + R"(], "decide": [{"by": ")" + by + R"(", "pick": "p", "count": "K")" + options + "}]";
  }
  std::map<std::string, std::int64_t> dims() const { return {{"T", rows}, {"N", columns}, {"K", slots}}; }
};

std::vector<Evidence> judge_bytes(const TopK& top, const Bytes& ranks, const std::vector<double>& picks,
                                  const std::map<std::string, Bytes>& more = {}, std::int64_t up = 1) {
  HandMade made(top.fields(), top.dims(), {{"up", up}});
  std::map<std::string, Bytes> outputs = {{"r", ranks}, {"p", elements(DType::kI32, picks)}};
  for (const auto& [name, bytes] : more) (made.inputs.contains(name) ? made.inputs[name] : outputs[name]) = bytes;
  const Execution execution = made.gave(outputs);
  return judge_own_picks(made.call, decision_of(made.call, 0, made.views(), execution), Side::kTarget);
}

// What is wrong with the picks by their own ranks; "" when nothing is.
std::string wrong(const TopK& top, const std::vector<double>& ranks, const std::vector<double>& picks,
                  const std::map<std::string, Bytes>& more = {}, std::int64_t up = 1) {
  const std::vector<Evidence> seen = judge_bytes(top, elements(*dtype_named(top.dtype), ranks), picks, more, up);
  if (seen.empty()) return "";
  EXPECT_EQ(seen[0].accused, Side::kTarget);
  return std::string(name_of(seen[0].cls)) + ": " + seen[0].what;
}
bool right(const TopK& top, const std::vector<double>& ranks, const std::vector<double>& picks,
           const std::map<std::string, Bytes>& more = {}, std::int64_t up = 1) {
  return wrong(top, ranks, picks, more, up).empty();
}

TEST(Decide, TheLargestInOrder) {
  EXPECT_TRUE(right({}, {1, 4, 2, 3}, {1, 3}));
  EXPECT_NE(wrong({}, {1, 4, 2, 3}, {1, 2}).find("3 is left out"), std::string::npos);
  EXPECT_NE(wrong({}, {1, 4, 2, 3}, {3, 1}).find("ranks before"), std::string::npos);
  EXPECT_TRUE(right({R"(, "sorted": false)"}, {1, 4, 2, 3}, {3, 1}));
  EXPECT_FALSE(right({R"(, "sorted": false)"}, {1, 4, 2, 3}, {3, 2}));
}

TEST(Decide, PicksOutOfRangeAndTwice) {
  EXPECT_NE(wrong({}, {1, 4, 2, 3}, {1, 4}).find("picks 4 of 4 candidates"), std::string::npos);
  EXPECT_NE(wrong({}, {1, 4, 2, 3}, {-1, 1}).find("picks -1"), std::string::npos);
  EXPECT_NE(wrong({}, {1, 4, 2, 3}, {1, 1}).find("picked twice"), std::string::npos);
}

TEST(Decide, SmallestAndByAttribute) {
  EXPECT_TRUE(right({R"(, "order": "smallest")"}, {1, 4, 2, 3}, {0, 2}));
  EXPECT_FALSE(right({R"(, "order": "smallest")"}, {1, 4, 2, 3}, {1, 3}));
  const TopK by_attr{R"(, "order": "=up")"};
  EXPECT_TRUE(right(by_attr, {1, 4, 2, 3}, {1, 3}, {}, 1));
  EXPECT_TRUE(right(by_attr, {1, 4, 2, 3}, {0, 2}, {}, 0));
  EXPECT_FALSE(right(by_attr, {1, 4, 2, 3}, {0, 2}, {}, 1));
}

TEST(Decide, TiesGoToTheLowestIndexUnlessAnyWillDo) {
  EXPECT_TRUE(right({}, {5, 4, 4, 1}, {0, 1}));
  EXPECT_NE(wrong({}, {5, 4, 4, 1}, {0, 2}).find("ties with"), std::string::npos);
  EXPECT_NE(wrong({}, {5, 5, 4, 1}, {1, 0}).find("ranks before"), std::string::npos);
  const TopK any{R"(, "tie": "any")"};
  EXPECT_TRUE(right(any, {5, 4, 4, 1}, {0, 2}));
  EXPECT_TRUE(right(any, {5, 5, 4, 1}, {1, 0}));
  EXPECT_FALSE(right(any, {5, 4, 3, 1}, {0, 2}));
}

TEST(Decide, NanByValue) {
  EXPECT_TRUE(right({}, {1, kNan, 2, 3}, {3, 2}));  // least is the default
  EXPECT_FALSE(right({}, {1, kNan, 2, 3}, {1, 3}));
  EXPECT_TRUE(right({R"(, "nan": "least")"}, {-kInf, kNan, kNan, kNan}, {0, 1}));
  const TopK greatest{R"(, "nan": "greatest")"};
  EXPECT_TRUE(right(greatest, {1, kNan, 2, kInf}, {1, 3}));
  EXPECT_FALSE(right(greatest, {1, kNan, 2, kInf}, {3, 2}));
  const TopK infinity{R"(, "nan": "as_-inf")"};
  EXPECT_TRUE(right(infinity, {kNan, -kInf, 2, kNan}, {2, 0}));  // equals: the lower index
  EXPECT_FALSE(right(infinity, {kNan, -kInf, 2, kNan}, {2, 1}));
  EXPECT_TRUE(right({R"(, "nan": "least")"}, {kNan, -kInf, 2, kNan}, {2, 1}));
}

TEST(Decide, NanByValueWhenTheSmallestAreWanted) {
  EXPECT_TRUE(right({R"(, "order": "smallest", "nan": "least")"}, {1, kNan, 2, 3}, {1, 0}));
  EXPECT_TRUE(right({R"(, "order": "smallest", "nan": "greatest")"}, {1, kNan, 2, 3}, {0, 2}));
  EXPECT_TRUE(right({R"(, "order": "smallest", "nan": "as_-inf")"}, {1, kNan, -kInf, 3}, {1, 2}));
  EXPECT_FALSE(right({R"(, "order": "smallest", "nan": "as_-inf")"}, {1, kNan, -kInf, 3}, {2, 1}));
}

TEST(Decide, NanNeverPickedLeavesSlotsEmpty) {
  const TopK never{R"(, "nan": "never", "none": -1)"};
  EXPECT_TRUE(right(never, {1, kNan, kNan, kNan}, {0, -1}));
  EXPECT_NE(wrong(never, {1, kNan, kNan, kNan}, {0, 1}).find("never be picked"), std::string::npos);
  EXPECT_NE(wrong(never, {1, kNan, 3, kNan}, {2, -1}).find("picks 1 where 2"), std::string::npos);
  EXPECT_TRUE(right(never, {kNan, kNan, kNan, kNan}, {-1, -1}));
  EXPECT_FALSE(right(never, {1, kNan, kNan, kNan}, {-1, 0}));  // slot 0 is the best one's
  EXPECT_TRUE(right({R"(, "nan": "never", "none": -1, "sorted": false)"}, {1, kNan, kNan, kNan}, {-1, 0}));
}

TEST(Decide, ARowOfNanOrOfMinusInfinity) {
  EXPECT_TRUE(right({}, {kNan, kNan, kNan, kNan}, {0, 1}));
  EXPECT_NE(wrong({}, {kNan, kNan, kNan, kNan}, {0, 0}).find("picked twice"), std::string::npos);
  EXPECT_TRUE(right({}, {-kInf, -kInf, -kInf, -kInf}, {0, 1}));
  EXPECT_FALSE(right({}, {-kInf, -kInf, -kInf, -kInf}, {0, 2}));
}

TEST(Decide, ZerosEqualOrOrdered) {
  EXPECT_TRUE(right({}, {-0.0, 0.0, -1, -1}, {0, 1}));
  EXPECT_FALSE(right({}, {-0.0, 0.0, -1, -1}, {1, 0}));
  const TopK ordered{R"(, "zeros": "ordered")"};
  EXPECT_TRUE(right(ordered, {-0.0, 0.0, -1, -1}, {1, 0}));
  EXPECT_FALSE(right(ordered, {-0.0, 0.0, -1, -1}, {0, 1}));
  EXPECT_TRUE(right({R"(, "zeros": "ordered", "order": "smallest")"}, {0.0, -0.0, 1, 1}, {1, 0}));
}

TEST(Decide, AmongSaysHowManyCandidatesARowHas) {
  TopK among{R"(, "among": "len", "none": -1)"};
  among.rows = 2;
  among.more_inputs = R"(, {"name": "len", "shape": ["T"], "dtype": "i32", "role": "counts"})";
  const std::map<std::string, Bytes> lengths = {{"len", elements(DType::kI32, {2, 1})}};
  EXPECT_TRUE(right(among, {1, 2, 9, 9, 1, 9, 9, 9}, {1, 0, 0, -1}, lengths));
  EXPECT_NE(wrong(among, {1, 2, 9, 9, 1, 9, 9, 9}, {2, 1, 0, -1}, lengths).find("never be picked"), std::string::npos);
  EXPECT_FALSE(right(among, {1, 2, 9, 9, 1, 9, 9, 9}, {1, 0, -1, -1}, lengths));
}

TEST(Decide, ValuesEqualTheRanksOfThePicks) {
  TopK valued{R"(, "values": "v")"};
  valued.more_outputs = R"(, {"name": "v", "shape": ["T", "K"], "dtype": "f32", "stage": 2})";
  const std::vector<double> ranks = {-0.0, 4, -2, kNan};
  const auto with = [&](const std::vector<double>& values) {
    return wrong(valued, ranks, {1, 0}, {{"v", elements(DType::kF32, values)}});
  };
  EXPECT_EQ(with({4, -0.0}), "");
  EXPECT_EQ(with({4, 0.0}).substr(0, 9), "zero_sign");
  EXPECT_EQ(with({4 + 0x1p-20, 0.0}).substr(0, 10), "wrong_pick");  // the sign of a zero is the milder
  EXPECT_EQ(with({4 + 0x1p-21, -0.0}).substr(0, 10), "wrong_pick");
  TopK nan = valued;
  nan.options += R"(, "nan": "greatest")";
  EXPECT_TRUE(right(nan, {kNan, 4, 1, 1}, {0, 1}, {{"v", raw_elements(DType::kF32, {0x7FC00077, 0x40800000})}}));
}

TEST(Decide, RanksMayBeAnInputThatRepeatsAnElement) {
  TopK repeated;
  repeated.by = "x";
  repeated.rows = 2;
  HandMade made(repeated.fields(), repeated.dims());
  made.call.inputs[0].stride = {0, 1};
  made.inputs["x"] = elements(DType::kF32, {1, 4, 2, 3});  // one row stored
  const Execution good = made.gave({{"p", elements(DType::kI32, {1, 3, 1, 3})}});
  EXPECT_TRUE(judge_own_picks(made.call, decision_of(made.call, 0, made.views(), good), Side::kTarget).empty());
  const Execution bad = made.gave({{"p", elements(DType::kI32, {1, 3, 1, 2})}});
  const std::vector<Evidence> seen =
      judge_own_picks(made.call, decision_of(made.call, 0, made.views(), bad), Side::kTarget);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_NE(seen[0].what.find("row 1"), std::string::npos);
}

TEST(Decide, TheDecisionOwnsWhatItWroteOut) {
  TopK repeated;
  repeated.by = "x";
  repeated.rows = 2;
  HandMade made(repeated.fields(), repeated.dims());
  made.call.inputs[0].stride = {0, 1};
  made.inputs["x"] = elements(DType::kF32, {1, 4, 2, 3});
  const Execution good = made.gave({{"p", elements(DType::kI32, {1, 3, 1, 3})}});
  std::vector<Decision> kept;
  kept.push_back(decision_of(made.call, 0, made.views(), good));
  const Decision moved = std::move(kept[0]);
  kept.clear();
  EXPECT_TRUE(judge_own_picks(made.call, moved, Side::kTarget).empty());
}

TEST(Decide, TheFastKeysOfF32AreTheKeysOfTheValues) {
  const std::vector<double> values = {0.0, -0.0, 1, -1, kInf, -kInf, kNan, 0x1p-149, -0x1p-149, 3.5, 1};
  for (const char* order : {R"(, "order": "largest")", R"(, "order": "smallest")"}) {
    for (const char* nan : {"least", "greatest", "as_-inf", "never"}) {
      for (const char* zeros : {"equal", "ordered"}) {
        std::vector<std::vector<std::int64_t>> keys;
        for (const char* dtype : {"f32", "f64"}) {
          TopK top{std::string(order) + R"(, "none": -1, "nan": ")" + nan + R"(", "zeros": ")" + zeros + "\""};
          top.dtype = dtype;
          top.columns = static_cast<std::int64_t>(values.size());
          HandMade made(top.fields(), top.dims());
          const Execution execution = made.gave({{"r", elements(*dtype_named(dtype), values)}});
          rank_keys(decision_of(made.call, 0, made.views(), execution), 0, keys.emplace_back());
        }
        for (std::size_t i = 0; i < values.size(); ++i) {
          EXPECT_EQ(keys[0][i] == kNeverPicked, keys[1][i] == kNeverPicked);
          for (std::size_t j = 0; j < values.size(); ++j) {
            EXPECT_EQ(keys[0][i] < keys[0][j], keys[1][i] < keys[1][j]) << nan << zeros << order << i << " " << j;
          }
        }
      }
    }
  }
}

TEST(Decide, IntegersRankToTheirEnds) {
  TopK integers;
  integers.dtype = "i64";
  const auto ranks = [](const std::vector<std::int64_t>& values) {
    Bytes bytes;
    for (const std::int64_t value : values) {
      const Bytes one = raw_elements(DType::kI64, {static_cast<std::uint64_t>(value)});
      bytes.insert(bytes.end(), one.begin(), one.end());
    }
    return bytes;
  };
  EXPECT_TRUE(judge_bytes(integers, ranks({0, INT64_MAX - 1, INT64_MAX, -1}), {2, 1}).empty());
  EXPECT_FALSE(judge_bytes(integers, ranks({0, INT64_MAX - 1, INT64_MAX, -1}), {1, 2}).empty());
  integers.options = R"(, "order": "smallest")";
  EXPECT_TRUE(judge_bytes(integers, ranks({0, INT64_MIN + 1, INT64_MIN, -1}), {2, 1}).empty());
  EXPECT_FALSE(judge_bytes(integers, ranks({0, INT64_MIN + 1, INT64_MIN, -1}), {1, 2}).empty());
}

TEST(Decide, SmallFloatsAndAFormatWithoutInfinity) {
  for (const char* dtype : {"f16", "bf16", "f8e5m2", "f8e4m3fn"}) {
    TopK top;
    top.dtype = dtype;
    EXPECT_TRUE(right(top, {1, -2, 1.5, kNan}, {2, 0})) << dtype;
    EXPECT_FALSE(right(top, {1, -2, 1.5, kNan}, {0, 2})) << dtype;
  }
}

TEST(Decide, WithoutTheRanksNothingIsJudged) {
  HandMade made(TopK{}.fields(), TopK{}.dims());
  made.call.outputs[0].present = false;
  const Execution execution = made.gave({{"p", elements(DType::kI32, {3, 3})}});
  EXPECT_TRUE(judge_own_picks(made.call, decision_of(made.call, 0, made.views(), execution), Side::kTarget).empty());
}

struct Compared {
  PickJudgement judgement;
  FindingClass cls() const { return judgement.evidence ? judgement.evidence->cls : FindingClass::kNanBits; }
};

Compared compare(const TopK& top, const std::vector<double>& ranks_a, const std::vector<double>& picks_a,
                 const std::vector<double>& ranks_b, const std::vector<double>& picks_b) {
  const HandMade made(top.fields(), top.dims());
  const DType dtype = *dtype_named(top.dtype);
  const Execution a = made.gave({{"r", elements(dtype, ranks_a)}, {"p", elements(DType::kI32, picks_a)}});
  const Execution b = made.gave({{"r", elements(dtype, ranks_b)}, {"p", elements(DType::kI32, picks_b)}});
  return {
      compare_picks(made.call, decision_of(made.call, 0, made.views(), a), decision_of(made.call, 0, made.views(), b))};
}

TEST(ComparePicks, EqualPicksSayNothing) {
  EXPECT_FALSE(compare({}, {1, 4, 2, 3}, {1, 3}, {1, 4, 2, 3}, {1, 3}).judgement.evidence);
}

TEST(ComparePicks, AFlipFollowsOnEachSideFromItsOwnRanks) {
  TopK two_rows;
  two_rows.rows = 2;
  const double up = 3 + 0x1p-22;
  const Compared compared =
      compare(two_rows, {1, 4, 2, 3, 3, 4, 3, 1}, {1, 3, 1, 0}, {1, 4, 2, 3, 3, 4, up, 1}, {1, 3, 1, 2});
  ASSERT_EQ(compared.cls(), FindingClass::kFlip);
  const Flip& flip = *compared.judgement.flip;
  EXPECT_EQ(flip.row, 1);
  EXPECT_EQ(flip.slot, 1);
  EXPECT_EQ(flip.rows, 1);
  EXPECT_EQ(flip.picked, (std::array<std::int64_t, 2>{0, 2}));
  EXPECT_TRUE(flip.by_is_known);
  EXPECT_EQ(flip.gap_ulp, (std::array<std::uint64_t, 2>{0, 1}));
  EXPECT_EQ(compared.judgement.rows, (std::vector<bool>{false, true}));
}

TEST(ComparePicks, APickThatDoesNotFollowIsWrong) {
  const Compared compared = compare({}, {1, 4, 2, 3}, {1, 2}, {1, 4, 2, 3}, {1, 3});
  EXPECT_EQ(compared.cls(), FindingClass::kWrongPick);
}

TEST(ComparePicks, AmongEqualsAgainstTheTieRuleIsWrong) {
  EXPECT_EQ(compare({}, {5, 4, 4, 1}, {0, 2}, {5, 4, 4, 1}, {0, 1}).cls(), FindingClass::kWrongPick);
}

TEST(ComparePicks, WhereAnyOfEqualsWillDoTheDifferenceIsFree) {
  const TopK any{R"(, "tie": "any")"};
  const Compared free = compare(any, {5, 4, 4, 1}, {0, 2}, {5, 4, 4, 1}, {0, 1});
  EXPECT_FALSE(free.judgement.evidence);
  EXPECT_EQ(free.judgement.free, (std::vector<bool>{false, true}));
  EXPECT_EQ(free.judgement.free_rows, (std::vector<bool>{true}));
  // Equal by value is enough.
  EXPECT_FALSE(compare(any, {0.0, -0.0, -1, -1}, {0, 1}, {-0.0, 0.0, -1, -1}, {1, 0}).judgement.evidence);
  EXPECT_EQ(compare(any, {5, 4, 4, 1}, {0, 2}, {5, 4 + 0x1p-20, 4, 1}, {0, 1}).cls(), FindingClass::kFlip);
  EXPECT_EQ(compare(any, {5, 4, 3, 1}, {0, 2}, {5, 4, 3, 1}, {0, 1}).cls(), FindingClass::kWrongPick);
}

TEST(ComparePicks, EqualsAreFreeAlsoWhereAnotherRankDiffers) {
  const TopK any{R"(, "tie": "any")"};
  const Compared free = compare(any, {5, 4, 4, 1}, {0, 2}, {5 + 0x1p-20, 4, 4, 1}, {0, 1});
  EXPECT_FALSE(free.judgement.evidence);
  EXPECT_EQ(free.judgement.free, (std::vector<bool>{false, true}));
  // Slot 0 is a choice among equals; slot 1 is where the rankings part.
  TopK three = any;
  three.columns = 5;
  three.slots = 2;
  const Compared flipped = compare(three, {5, 5, 5, 4, 1}, {0, 1}, {5, 5, 4, 5, 1}, {1, 3});
  EXPECT_EQ(flipped.cls(), FindingClass::kFlip);
  EXPECT_EQ(flipped.judgement.flip->slot, 1);
}

TEST(ComparePicks, WhereTheOrderOfSlotsIsFreeItDiffersByRight) {
  const TopK unsorted{R"(, "sorted": false)"};
  EXPECT_FALSE(compare(unsorted, {1, 4, 2, 3}, {1, 3}, {1, 4, 2, 3}, {3, 1}).judgement.evidence);
  EXPECT_FALSE(compare(unsorted, {1, 4, 2, 3}, {1, 3}, {1, 4, 2, 4.5}, {3, 1}).judgement.evidence);
  EXPECT_EQ(compare(unsorted, {1, 4, 2, 3}, {1, 3}, {1, 4, 3.5, 3}, {2, 1}).cls(), FindingClass::kFlip);
  EXPECT_EQ(compare(unsorted, {5, 4, 4, 1}, {0, 1}, {5, 4, 4, 1}, {2, 0}).cls(), FindingClass::kWrongPick);
}

TEST(ComparePicks, AFlipOutranksAWrongPickAndRowsAreCounted) {
  TopK rows;
  rows.rows = 2;
  const Compared compared =
      compare(rows, {1, 4, 2, 3, 3, 4, 2, 1}, {1, 2, 1, 0}, {1, 4, 2, 3, 2, 4, 3, 1}, {1, 3, 1, 2});
  EXPECT_EQ(compared.cls(), FindingClass::kFlip);
  EXPECT_EQ(compared.judgement.flip->rows, 2);
  EXPECT_EQ(compared.judgement.flip->row, 1);
}

TEST(ComparePicks, APickOutOfRangeHasNoRanks) {
  const Compared compared = compare({}, {1, 4, 2, 3}, {1, 77}, {1, 4, 2, 3}, {1, 3});
  EXPECT_EQ(compared.cls(), FindingClass::kWrongPick);
  EXPECT_FALSE(compared.judgement.flip->by_is_known);
}

TEST(SmallestGap, TheBoundaryBetweenPickedAndLeftOut) {
  const auto gap = [](const std::vector<double>& ranks, std::int64_t slots = 2) {
    TopK top;
    top.slots = slots;
    const HandMade made(top.fields(), top.dims());
    const Execution execution = made.gave({{"r", elements(DType::kF32, ranks)}});
    return smallest_gap(decision_of(made.call, 0, made.views(), execution));
  };
  EXPECT_EQ(gap({4, 1, 3, 3}), 0);
  EXPECT_EQ(gap({4, 1, 3, 3 + 0x1p-22}), 1);
  EXPECT_GT(gap({4, 1, 3, 2}), 20);
  EXPECT_EQ(gap({4, 1, 3, 2}, 4), 255);  // nobody is left out
}

}  // namespace
}  // namespace fusediff
