#include "campaign/flaky.h"

#include <gtest/gtest.h>

namespace fusediff {
namespace {

Finding of(FindingClass cls) {
  Finding finding;
  finding.cls = cls;
  return finding;
}

Finding contamination(std::int64_t calls, std::int64_t differing) {
  Finding finding = of(FindingClass::kContamination);
  finding.causes = {{"the mix in 8 threads on one context", calls, differing, 1}, {"equal calls", 100, 0, 0}};
  return finding;
}

TEST(Flaky, WhatShowsEveryTimeIsLookedAtOnce) {
  EXPECT_EQ(tries_for(of(FindingClass::kDamage)), 1);
  EXPECT_EQ(tries_for(of(FindingClass::kContamination)), 1);
  EXPECT_EQ(tries_for(contamination(64, 64)), 1);
}

TEST(Flaky, TriesFollowTheRateOfReruns) {
  Finding finding = of(FindingClass::kNondeterminism);
  finding.rates[0] = {16, 16, 0, 0};
  EXPECT_EQ(tries_for(finding), 2);
  finding.rates[0] = {16, 8, 0, 0};
  EXPECT_EQ(tries_for(finding), 7);  // 0.5^7 < 0.01
  finding.rates[1] = {100, 10, 0, 0};
  EXPECT_EQ(tries_for(finding), 44);  // 0.9^44 < 0.01
  finding.rates[1] = {1000, 1, 0, 0};
  EXPECT_EQ(tries_for(finding), 50);
}

// A check makes an eighth of the calls that were counted, or more.
TEST(Flaky, TriesFollowTheRateOfCallsThatDiffered) {
  EXPECT_EQ(tries_for(contamination(8, 4)), 7);      // one call a check
  EXPECT_EQ(tries_for(contamination(16, 8)), 4);     // two: three in four
  EXPECT_EQ(tries_for(contamination(160, 80)), 1);   // twenty: all but always
  EXPECT_EQ(tries_for(contamination(8000, 1)), 37);  // one check in eight
  EXPECT_EQ(tries_for(contamination(0, 0)), 1);
}

}  // namespace
}  // namespace fusediff
