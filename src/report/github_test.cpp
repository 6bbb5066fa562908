#include "report/github.h"

#include <gtest/gtest.h>

#include <string>

#include "report/sample_report_test.h"

namespace fusediff {
namespace {

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

TEST(Github, SaysWhatIsNewFirst) {
  const std::string text = report_github(sample_report());
  EXPECT_TRUE(text.starts_with("## fusediff: 2 new findings, 1 known one")) << text.substr(0, 200);
  EXPECT_EQ(count_of(text, "\n| "), 4u) << "a head and three rows";
  EXPECT_EQ(count_of(text, "<details>"), 3u);
  EXPECT_EQ(count_of(text, "</details>"), 3u);
  EXPECT_NE(text.find("```sh\nfusediff replay out/findings/mul\n```"), std::string::npos);
  EXPECT_NE(text.find("What proves little or nothing"), std::string::npos);
  EXPECT_NE(text.find("5 sub: not here"), std::string::npos);
  EXPECT_NE(text.find("half/case.json"), std::string::npos);
}

TEST(Github, HostileTextStaysText) {
  const std::string text = report_github(sample_report());
  EXPECT_EQ(text.find("<script"), std::string::npos);
  EXPECT_EQ(text.find("**x**"), std::string::npos);
  EXPECT_EQ(text.find("\n# "), std::string::npos);
  EXPECT_EQ(text.find('\x01'), std::string::npos);
}

TEST(Github, StaysBelowTheCapAndSaysWhatIsLeftOut) {
  CampaignReport report = sample_report();
  report.findings.clear();
  for (int i = 0; i < 5000; ++i) {
    report.findings.push_back(sample_finding("op" + std::to_string(i), FindingClass::kDamage, std::string(900, '_')));
  }
  for (int i = 0; i < 5000; ++i) report.skips[std::string(300, '<') + std::to_string(i)] = 1;
  const std::string text = report_github(report);
  EXPECT_LE(text.size(), kMostSummaryBytes);
  EXPECT_GT(text.size(), kMostSummaryBytes / 2);
  EXPECT_NE(text.find("Left out, because a summary holds no more: the details of "), std::string::npos);
  EXPECT_NE(text.find("The table is cut: "), std::string::npos);
  EXPECT_NE(text.find("more reasons"), std::string::npos);
  EXPECT_EQ(count_of(text, "<details>"), count_of(text, "</details>"));
}

}  // namespace
}  // namespace fusediff
