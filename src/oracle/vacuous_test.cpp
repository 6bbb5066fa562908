#include "oracle/vacuous.h"

#include <gtest/gtest.h>

#include "oracle/hand_made.h"

namespace fusediff {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::string judge(std::vector<double> y) {
  const HandMade made(R"("dims": {"N": {"range": [0, 1024]}}, "inputs": [],
                         "outputs": [{"name": "y", "shape": ["N"], "dtype": "f32"}])",
                      {{"N", static_cast<std::int64_t>(y.size())}});
  return judge_vacuous(made.call, made.gave({{"y", elements(DType::kF32, y)}}));
}

TEST(Vacuous, OnlyEmptyOutputs) { EXPECT_EQ(judge({}), "only empty outputs"); }

TEST(Vacuous, ZerosAndNanProveLittle) {
  EXPECT_EQ(judge({0, -0.0, kNan}), "nearly all zeros or NaN");
  EXPECT_EQ(judge({0, -0.0, 1}), "");
  std::vector<double> many(640, 0);
  for (std::size_t i = 0; i < 9; ++i) many[i] = 1;
  EXPECT_NE(judge(many), "");
  many[9] = 1;
  EXPECT_EQ(judge(many), "");
}

}  // namespace
}  // namespace fusediff
