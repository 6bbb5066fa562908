#include "oracle/memory.h"

#include <gtest/gtest.h>

#include "oracle/hand_made.h"

namespace fusediff {
namespace {

constexpr const char* kFields =
    R"("dims": {"N": {"range": [0, 8]}}, "inputs": [{"name": "x", "shape": ["N"], "dtype": "f32"}],
       "outputs": [{"name": "y", "shape": ["N"], "dtype": "f32", "stage": 2}])";

TEST(Memory, UntouchedGuardsAndInputsSayNothing) {
  const HandMade made(kFields, {{"N", 2}});
  EXPECT_TRUE(judge_memory(made.call, made.gave({}), Side::kTarget).empty());
}

TEST(Memory, ChangedGuardBytesAreAnOverrunOfTheTensorHit) {
  const HandMade made(kFields, {{"N", 2}});
  Execution execution = made.gave({});
  execution.overruns = {
      {"y", true, false, true, 5, 4}, {"x", false, false, false, 1, 1}, {"y", true, true, true, 4, 8}};
  const std::vector<Evidence> seen = judge_memory(made.call, execution, Side::kAgainst);
  ASSERT_EQ(seen.size(), 3u);
  for (const Evidence& evidence : seen) {
    EXPECT_EQ(evidence.cls, FindingClass::kOverrun);
    EXPECT_EQ(evidence.accused, Side::kAgainst);
  }
  EXPECT_EQ(seen[0].tensor, "y");
  EXPECT_EQ(seen[0].what, "changed 4 bytes behind y, the first 5 bytes past its end");
  EXPECT_EQ(seen[1].what, "changed 1 byte before x, the first 1 byte ahead of its start");
  EXPECT_EQ(seen[2].what, "changed 8 bytes in the gaps of y, the first at byte 4 of its memory");
}

TEST(Memory, AChangedInputIsNamed) {
  const HandMade made(kFields, {{"N", 2}});
  Execution execution = made.gave({});
  execution.changed_inputs = {{0, 1, 1}};
  const std::vector<Evidence> seen = judge_memory(made.call, execution, Side::kTarget);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].cls, FindingClass::kInputChanged);
  EXPECT_EQ(seen[0].tensor, "x");
  EXPECT_EQ(seen[0].what, "changed 1 element of its input x, the first at index 1");
}

}  // namespace
}  // namespace fusediff
