#include "report/html.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "report/sample_report_test.h"

namespace fusediff {
namespace {

nlohmann::json data_of(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const std::size_t at = page.find(begin) + begin.size();
  return nlohmann::json::parse(page.substr(at, page.find("</script>", at) - at));
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

TEST(Html, HoldsTheFactsAndNothingFromOutside) {
  const std::string page = report_html(sample_report(), "out/report.html");
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(page.find(" src="), std::string::npos);
  EXPECT_EQ(page.find("<link"), std::string::npos);
  EXPECT_EQ(page.find('@' + std::string("nonce@")), std::string::npos);
  EXPECT_NE(page.find("Chart.js Contributors"), std::string::npos) << "the licence";
  const auto data = data_of(page);
  EXPECT_EQ(data.at("answer"), "2 new findings, 1 known one, 1 signature seen without a bundle");
  ASSERT_EQ(data.at("findings").size(), 3u);
  EXPECT_EQ(data["findings"][1].at("standing"), "known");
  EXPECT_EQ(data["findings"][0].at("files")[0].at("href"), "./findings/mul/case.json") << "relative to the page";
  EXPECT_EQ(data.at("series").size(), 2u);
}

TEST(Html, HostileTextIsOnlyText) {
  const std::string page = report_html(sample_report(), "out/report.html");
  EXPECT_EQ(page.find("alert(1)</script>"), std::string::npos);
  EXPECT_EQ(count_of(page, "</script>"), count_of(page, "<script"));
  const auto note = data_of(page)["findings"][2].at("notes")[0].get<std::string>();
  EXPECT_TRUE(note.starts_with("</script><script>alert(1)</script>")) << "nothing is lost: " << note;
}

TEST(Html, TheWordThatScriptsNeedFollowsFromTheData) {
  const auto nonce = [](const std::string& page) { return page.substr(page.find("'nonce-") + 7, 32); };
  CampaignReport report = sample_report();
  const std::string before = nonce(report_html(report, "out/report.html"));
  report.findings[2].finding.notes[0] += " nonce=" + before;
  EXPECT_NE(nonce(report_html(report, "out/report.html")), before);
}

TEST(Html, AThousandLongFindingsStayBelowTheLimit) {
  CampaignReport report = sample_report();
  report.findings.clear();
  for (int i = 0; i < 1000; ++i) {
    ReportedFinding one = sample_finding("op" + std::to_string(i), FindingClass::kDamage, "y differs");
    one.finding.notes.assign(500, std::string(100, 'n'));
    report.findings.push_back(std::move(one));
  }
  const std::string page = report_html(report, "out/report.html");
  EXPECT_LT(page.size(), std::size_t{15'000'000});
  EXPECT_EQ(data_of(page)["findings"][0].at("notes").back(), "440 more, in finding.json");
}

}  // namespace
}  // namespace fusediff
