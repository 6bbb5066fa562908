#include "report/known.h"

#include <gtest/gtest.h>

namespace fusediff {
namespace {

ReportedFinding reported(const std::string& op, const std::string& dtype) {
  ReportedFinding r;
  r.finding.oracle = "bits";
  r.finding.op = op;
  r.finding.targets = {"lib", "builtin"};
  r.finding.paths = {"fused", "unfused"};
  r.finding.dtype = dtype;
  r.finding.output = "y";
  r.finding.cls = FindingClass::kRounding;
  r.environment = R"({"target": {"name": "lib", "version": "7"}})";
  return r;
}

CampaignReport campaign() {
  CampaignReport report;
  report.operators["silu"]["pass"] = 5;
  report.operators["add"]["skip"] = 5;
  report.findings = {reported("silu", "f32")};
  return report;
}

Ledger ledger(const std::vector<std::string>& signatures) {
  Ledger made{"l.json", {}};
  for (const std::string& signature : signatures) made.known.push_back({signature, "https://x/1", "", "", "", ""});
  return made;
}

TEST(Known, WhatTheLedgerListsDoesNotFail) {
  CampaignReport report = campaign();
  EXPECT_TRUE(has_failed(report));
  ask_ledger(ledger({signature_of(report.findings[0].finding)}), "2026-11-30", report);
  EXPECT_FALSE(has_failed(report));
  EXPECT_EQ(report.findings[0].entry.issue, "https://x/1");
  EXPECT_NE(ledger_text(report).find("0 new, 1 known, 0 expired, 0 not seen"), std::string::npos)
      << ledger_text(report);
}

TEST(Known, AVersionOfTheScopeIsTheOneOfTheBundle) {
  for (const auto& [version, failed] : {std::pair{"7", false}, std::pair{"8", true}}) {
    CampaignReport report = campaign();
    Ledger known = ledger({signature_of(report.findings[0].finding)});
    known.known[0].target = "lib";
    known.known[0].version = version;
    ask_ledger(known, "2026-11-30", report);
    EXPECT_EQ(has_failed(report), failed) << version;
  }
}

TEST(Known, ASignatureWithoutABundleStandsAsThoseOfItsOperatorAndClass) {
  CampaignReport report = campaign();
  report.without_bundle = {{"rounding/silu-rounding-y-f16-00000000", 3}};
  const Ledger known = ledger({signature_of(report.findings[0].finding)});
  ask_ledger(known, "2026-11-30", report);
  EXPECT_FALSE(has_failed(report));
  report.waiting = 1;  // it may still be minimised to something new
  ask_ledger(known, "2026-11-30", report);
  EXPECT_TRUE(has_failed(report));
  report.waiting = 0;
  report.without_bundle = {{"damage/silu-damage-y-f16-00000000", 3}};
  ask_ledger(known, "2026-11-30", report);
  EXPECT_TRUE(has_failed(report));
}

TEST(Known, OnlyWhatTheCampaignJudgedCanHaveVanished) {
  CampaignReport report = campaign();
  const std::string gone = "bits silu fused/unfused f64 y rounding -";
  ask_ledger(ledger({gone, "bits add fused/unfused f64 y rounding -", "bits relu fused/unfused f64 y rounding -"}),
             "2026-11-30", report);
  ASSERT_EQ(report.vanished.size(), 1u);
  EXPECT_EQ(report.vanished[0].signature, gone);
  EXPECT_NE(ledger_text(report).find("1 not seen in this run"), std::string::npos);
}

TEST(Known, WhatAnEarlierRunLeftIsNotOfThisOne) {
  CampaignReport report = campaign();
  report.findings.push_back(reported("silu", "f16"));
  report.findings[0].bundle = "a/findings/one";
  report.findings[1].bundle = "a/findings/two";
  keep_what_was_seen(report, {"a/findings/two"});
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].finding.dtype, "f16");
}

}  // namespace
}  // namespace fusediff
