#include "oracle/agreement.h"

#include <gtest/gtest.h>

#include "oracle/hand_made.h"

namespace fusediff {
namespace {

constexpr const char* kFields =
    R"("dims": {"N": {"range": [0, 8]}}, "inputs": [],
       "outputs": [{"name": "late", "shape": ["N"], "dtype": "f32", "stage": 2},
                   {"name": "early", "shape": ["N"], "dtype": "f32", "stage": 1, "agree": {"ulp": 2, "why": "a test"}}])";

class Agreement : public testing::Test {
 protected:
  Execution gave(std::uint64_t late, std::uint64_t early) const {
    return made_.gave({{"late", raw_elements(DType::kF32, {late})}, {"early", raw_elements(DType::kF32, {early})}});
  }
  HandMade made_{kFields, {{"N", 1}}};
  static constexpr std::uint64_t kOne = 0x3F800000;
};

TEST_F(Agreement, ADeterministicPathRepeatsItsBits) {
  EXPECT_EQ(differs_from_itself(made_.call, gave(kOne, kOne), gave(kOne, kOne), true), std::nullopt);
  EXPECT_EQ(differs_from_itself(made_.call, gave(kOne, kOne), gave(kOne, kOne + 1), true), 1u);
  EXPECT_EQ(differs_from_itself(made_.call, gave(kOne, kOne), gave(kOne + 1, kOne + 1), true), 1u);  // lowest stage
}

TEST_F(Agreement, AnotherMayVaryAsFarAsItsOutputsAgree) {
  EXPECT_EQ(differs_from_itself(made_.call, gave(kOne, kOne), gave(kOne, kOne + 2), false), std::nullopt);
  EXPECT_EQ(differs_from_itself(made_.call, gave(kOne, kOne), gave(kOne, kOne + 3), false), 1u);
  EXPECT_EQ(differs_from_itself(made_.call, gave(kOne, kOne), gave(kOne + 1, kOne + 2), false), 0u);  // bits stay exact
  EXPECT_EQ(differs_from_itself(made_.call, gave(0x7FC00000, kOne), gave(0x7FC00001, kOne), false), std::nullopt);
}

TEST_F(Agreement, AnotherEndingIsADisagreement) {
  Execution rejected;
  rejected.ending = Ending::kRejected;
  EXPECT_EQ(differs_from_itself(made_.call, gave(kOne, kOne), rejected, true), 2u);
  EXPECT_EQ(differs_from_itself(made_.call, rejected, rejected, true), std::nullopt);
}

}  // namespace
}  // namespace fusediff
