#include "campaign/selftest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>
#include <fstream>

namespace fusediff {
namespace {

using testing::HasSubstr;

class ReadPlanted : public testing::Test {
 protected:
  ReadPlanted() : folder_(std::filesystem::temp_directory_path() / ("fusediff_expect_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~ReadPlanted() override { std::filesystem::remove_all(folder_); }
  Result<std::vector<Planted>> read(const std::string& text) {
    std::ofstream(folder_ / "planted.expect") << text;
    return read_planted(folder_);
  }
  std::filesystem::path folder_;
};

TEST_F(ReadPlanted, FaultsComeFirstThenWhatMustStayClean) {
  const auto planted =
      read("near_a op=x experiment=pair\nb class=flip op=x\nc class=damage op=x\nc class=rounding op=y\n");
  ASSERT_TRUE(planted.ok()) << planted.error().what;
  ASSERT_EQ(planted->size(), 5u);
  EXPECT_EQ((*planted)[0].target, "planted_b");
  EXPECT_EQ((*planted)[1].expected.size(), 2u);
  EXPECT_EQ((*planted)[2].target, "planted_near_a");
  EXPECT_EQ((*planted)[3].target, "planted_b_clean");
  EXPECT_TRUE((*planted)[4].expected.empty());
}

TEST_F(ReadPlanted, WhatIsNotWholeIsRefused) {
  EXPECT_THAT(read("").error().what, HasSubstr("names no fault"));
  EXPECT_THAT(read("b flip\n").error().what, HasSubstr("is not NAME class=CLASS"));
  std::filesystem::remove(folder_ / "planted.expect");
  EXPECT_THAT(read_planted(folder_).error().what, HasSubstr("planted.expect"));
}

TEST(IsExpected, EachWordCounts) {
  Finding f;
  f.cls = FindingClass::kContamination;
  f.op = "norm";
  f.output = "y";
  f.experiment = "threads";
  f.relation = "moved y";
  f.stage_outputs = {"rstd"};
  f.conclusion = "needs at least two different shapes in flight";
  const Expectation all = {{"class", "contamination"},
                           {"op", "norm"},
                           {"output", "y"},
                           {"stage", "rstd"},
                           {"relation", "moved"},
                           {"experiment", "threads"},
                           {"cause", "two_different_shapes"}};
  EXPECT_TRUE(is_expected(f, all));
  for (const auto& [key, word] : all) {
    Expectation other = all;
    other[key] = "something_else";
    EXPECT_FALSE(is_expected(f, other)) << key;
    other.erase(key);
    EXPECT_TRUE(is_expected(f, other)) << key;
  }
}

}  // namespace
}  // namespace fusediff
