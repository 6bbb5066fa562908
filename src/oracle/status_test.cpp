#include "oracle/status.h"

#include <gtest/gtest.h>

#include <csignal>

namespace fusediff {
namespace {

Execution ended(Ending ending) {
  Execution execution;
  execution.ending = ending;
  return execution;
}

std::optional<FindingClass> class_of(const Execution& execution, bool outside = false) {
  const std::optional<Evidence> evidence = judge_ending(execution, Side::kAgainst, outside);
  if (!evidence) return std::nullopt;
  EXPECT_EQ(evidence->accused, Side::kAgainst);
  EXPECT_FALSE(evidence->what.empty());
  return evidence->cls;
}

TEST(Status, EveryEndingInsideTheSchema) {
  EXPECT_EQ(class_of(ended(Ending::kOk)), std::nullopt);
  EXPECT_EQ(class_of(ended(Ending::kUnsupported)), std::nullopt);
  EXPECT_EQ(class_of(ended(Ending::kRejected)), FindingClass::kUndeclaredLimit);
  EXPECT_EQ(class_of(ended(Ending::kFailed)), FindingClass::kUndeclaredLimit);
  EXPECT_EQ(class_of(ended(Ending::kBadStatus)), FindingClass::kCrash);
  EXPECT_EQ(class_of(ended(Ending::kSignal)), FindingClass::kCrash);
  EXPECT_EQ(class_of(ended(Ending::kException)), FindingClass::kCrash);
  EXPECT_EQ(class_of(ended(Ending::kHang)), FindingClass::kHang);
  EXPECT_EQ(class_of(ended(Ending::kMemory)), FindingClass::kMemory);
}

TEST(Status, OutsideTheSchemaOnlyARejectionIsRight) {
  EXPECT_EQ(class_of(ended(Ending::kRejected), true), std::nullopt);
  EXPECT_EQ(class_of(ended(Ending::kUnsupported), true), std::nullopt);
  EXPECT_EQ(class_of(ended(Ending::kOk), true), FindingClass::kAcceptedIllegal);
  EXPECT_EQ(class_of(ended(Ending::kFailed), true), FindingClass::kAcceptedIllegal);
  EXPECT_EQ(class_of(ended(Ending::kHang), true), FindingClass::kHang);
  EXPECT_EQ(class_of(ended(Ending::kSignal), true), FindingClass::kCrash);
}

TEST(Status, AGuardPageNamesTensorSideAndDistance) {
  Execution execution = ended(Ending::kGuardHit);
  execution.signal = SIGSEGV;
  execution.guard_hit = GuardHit{"y", true, 1, Access::kWrite};
  std::optional<Evidence> evidence = judge_ending(execution, Side::kTarget, false);
  ASSERT_TRUE(evidence);
  EXPECT_EQ(evidence->cls, FindingClass::kOverrun);
  EXPECT_EQ(evidence->tensor, "y");
  EXPECT_EQ(evidence->what, "wrote 1 byte behind y (guard page)");

  execution.guard_hit = GuardHit{"x", false, 4, Access::kRead};
  evidence = judge_ending(execution, Side::kTarget, false);
  EXPECT_EQ(evidence->cls, FindingClass::kOverread);
  EXPECT_EQ(evidence->what, "read 4 bytes before x (guard page)");

  execution.guard_hit = GuardHit{"x", false, 4, Access::kUnknown};  // what may have been a write is the worse
  EXPECT_EQ(class_of(execution), FindingClass::kOverrun);

  execution.guard_hit = GuardHit{};
  EXPECT_EQ(class_of(execution), FindingClass::kCrash);
}

TEST(Status, CrashesSayWhatAndWhere) {
  Execution execution = ended(Ending::kSignal);
  execution.signal = SIGFPE;
  execution.phase = Phase::kWorkspace;
  EXPECT_EQ(judge_ending(execution, Side::kTarget, false)->what, "SIGFPE in workspace_bytes()");
  execution = ended(Ending::kBadStatus);
  execution.status = 42;
  EXPECT_EQ(judge_ending(execution, Side::kTarget, false)->what, "run() returned 42, which is no fusediff_status");
  execution = ended(Ending::kException);
  execution.message = "bad tile";
  EXPECT_EQ(judge_ending(execution, Side::kTarget, false)->what, "a C++ exception left run(): bad tile");
}

TEST(Status, TwoLimitsInOtherWordsAreTwoFindingsAndOtherNumbersAreNot) {
  const auto relation = [](const std::string& message) {
    Execution execution = ended(Ending::kRejected);
    execution.message = message;
    return judge_ending(execution, Side::kTarget, false)->relation;
  };
  EXPECT_EQ(relation("C must divide by 128, is 7"), relation("C must divide by 128, is 9"));
  EXPECT_NE(relation("C must divide by 128, is 7"), relation("N must be 4, is 7"));
  EXPECT_EQ(relation(""), "");
}

}  // namespace
}  // namespace fusediff
