#include "oracle/fills.h"

#include <gtest/gtest.h>

#include "oracle/hand_made.h"

namespace fusediff {
namespace {

constexpr const char* kFields =
    R"("dims": {"N": {"range": [0, 8]}}, "inputs": [{"name": "x", "shape": ["N"], "dtype": "u8"}],
       "outputs": [{"name": "y", "shape": ["N"], "dtype": "u8", "stage": 3}], "inplace": [["y", "x"]])";

// Three bytes of output under a choice of fills; the byte at 1 is what the test says.
class FillsTest : public testing::Test {
 protected:
  Execution run(std::byte middle, Fills fills = kFirstFills) {
    return made_.gave({{"y", {std::byte{1}, middle, std::byte{3}}}}, fills);
  }
  static Fills with(std::byte Fills::*which) {
    Fills fills = kFirstFills;
    fills.*which = kSecondFills.*which;
    return fills;
  }
  // Two runs of each choice; the middle byte is what `middle` makes of the fills.
  template <typename Middle>
  FillJudgement judge(Middle middle) {
    runs_.clear();
    for (const Fills& fills : {kFirstFills, with(&Fills::output), with(&Fills::workspace), with(&Fills::guard)}) {
      for (int i = 0; i < 2; ++i) runs_.push_back(run(middle(fills), fills));
    }
    return judge_fills(made_.call,
                       {{&runs_[0], &runs_[1]}, {&runs_[2], &runs_[3]}, {&runs_[4], &runs_[5]}, {&runs_[6], &runs_[7]}},
                       Side::kTarget);
  }

  HandMade made_{kFields, {{"N", 3}}};
  std::vector<Execution> runs_;
};

TEST_F(FillsTest, AnElementThatHoldsTheFillRaisesASuspicion) {
  EXPECT_TRUE(shows_fill(made_.call, run(kFirstFills.output)));
  EXPECT_FALSE(shows_fill(made_.call, run(kSecondFills.output)));
  made_.call.outputs[0].on = 0;
  EXPECT_FALSE(shows_fill(made_.call, run(kFirstFills.output)));  // it was never filled
}

TEST_F(FillsTest, OnlyWholeElementsRaiseASuspicion) {
  const HandMade wide(R"("dims": {"N": {"range": [0, 8]}}, "inputs": [],
                         "outputs": [{"name": "y", "shape": ["N"], "dtype": "f32"}])",
                      {{"N", 2}});
  EXPECT_TRUE(shows_fill(wide.call, wide.gave({{"y", raw_elements(DType::kF32, {1, 0x3F3F3F3F})}})));
  EXPECT_FALSE(shows_fill(wide.call, wide.gave({{"y", raw_elements(DType::kF32, {1, 0x003F3F3F})}})));
}

TEST_F(FillsTest, BytesThatKeepEveryFillAreUnwritten) {
  const FillJudgement judged = judge([](const Fills& fills) { return fills.output; });
  ASSERT_EQ(judged.evidence.size(), 1u);
  EXPECT_EQ(judged.evidence[0].cls, FindingClass::kUnwritten);
  EXPECT_EQ(judged.evidence[0].tensor, "y");
  EXPECT_EQ(judged.evidence[0].stage, 3);
  ASSERT_EQ(judged.ranges.size(), 1u);
  EXPECT_EQ(judged.ranges[0].bytes, 1);
  EXPECT_EQ(judged.ranges[0].total, 3);
  EXPECT_EQ(judged.ranges[0].ranges, (std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}}));
}

TEST_F(FillsTest, AValueThatHappensToBeTheFillIsNone) {
  EXPECT_TRUE(judge([](const Fills&) { return kFirstFills.output; }).evidence.empty());
}

TEST_F(FillsTest, BytesThatFollowTheOutputFillAreDirty) {
  const FillJudgement judged = judge([](const Fills& fills) { return fills.output ^ std::byte{5}; });
  ASSERT_EQ(judged.evidence.size(), 1u);
  EXPECT_EQ(judged.evidence[0].cls, FindingClass::kDirty);
  EXPECT_EQ(judged.ranges[0].follows, "output");
}

TEST_F(FillsTest, BytesThatFollowTheWorkspaceAreDirty) {
  const FillJudgement judged = judge([](const Fills& fills) { return fills.workspace; });
  ASSERT_EQ(judged.evidence.size(), 1u);
  EXPECT_EQ(judged.evidence[0].cls, FindingClass::kDirty);
  EXPECT_EQ(judged.ranges[0].follows, "workspace");
}

TEST_F(FillsTest, BytesThatFollowTheGuardWereReadOutside) {
  const FillJudgement judged = judge([](const Fills& fills) { return fills.guard; });
  ASSERT_EQ(judged.evidence.size(), 1u);
  EXPECT_EQ(judged.evidence[0].cls, FindingClass::kOverread);
  EXPECT_EQ(judged.ranges[0].follows, "guard");
}

TEST_F(FillsTest, APathThatVariesByItselfIsNotDirty) {
  int run = 0;
  EXPECT_TRUE(judge([&](const Fills&) { return static_cast<std::byte>(run++ * 37); }).evidence.empty());
}

TEST_F(FillsTest, AnOutputOnAnInputHasNoFill) {
  made_.call.outputs[0].on = 0;
  EXPECT_TRUE(judge([](const Fills& fills) { return fills.output; }).evidence.empty());
}

TEST_F(FillsTest, RunsThatCouldNotBeHadSayNothing) {
  const Execution first = run(kFirstFills.output);
  EXPECT_TRUE(judge_fills(made_.call, {{&first}, {}, {}, {}}, Side::kTarget).evidence.empty());
}

}  // namespace
}  // namespace fusediff
