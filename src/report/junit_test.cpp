#include "report/junit.h"

#include <gtest/gtest.h>

#include <map>
#include <pugixml.hpp>
#include <string>

#include "report/sample_report_test.h"

namespace fusediff {
namespace {

class Junit : public testing::Test {
 protected:
  void parse(const CampaignReport& report) {
    const std::string text = report_junit(report);
    const pugi::xml_parse_result parsed = document_.load_string(text.c_str());
    ASSERT_TRUE(parsed) << parsed.description() << "\n" << text;
    root_ = document_.child("testsuites");
  }
  pugi::xml_node suite(const char* name) const { return root_.find_child_by_attribute("testsuite", "name", name); }
  pugi::xml_node testcase(const char* op, const std::string& name) const {
    return suite(op).find_child_by_attribute("testcase", "name", name.c_str());
  }

  pugi::xml_document document_;
  pugi::xml_node root_;
};

TEST_F(Junit, CountsAreThoseOfItsTestcases) {
  parse(sample_report());
  std::map<std::string, unsigned> sums;
  for (const pugi::xml_node one : root_.children("testsuite")) {
    std::map<std::string, unsigned> counts;
    for (const pugi::xml_node test : one.children("testcase")) {
      ++counts["tests"];
      counts["failures"] += !test.child("failure").empty();
      counts["errors"] += !test.child("error").empty();
      counts["skipped"] += !test.child("skipped").empty();
      EXPECT_EQ(test.attribute("classname").value(), "fusediff." + std::string(one.attribute("name").value()));
    }
    for (const char* key : {"tests", "failures", "errors", "skipped"}) {
      EXPECT_EQ(one.attribute(key).as_uint(), counts[key]) << one.attribute("name").value() << " " << key;
      sums[key] += counts[key];
    }
  }
  for (const auto& [key, sum] : sums) EXPECT_EQ(root_.attribute(key.c_str()).as_uint(), sum) << key;
  EXPECT_EQ(sums["failures"], 3u) << "two that no ledger knows, and one without a bundle";
  EXPECT_EQ(sums["errors"], 1u);
}

TEST_F(Junit, AFindingFailsAndAKnownOneIsSkippedWithItsLink) {
  const CampaignReport report = sample_report();
  parse(report);
  const pugi::xml_node failure = testcase("mul", signature_of(report.findings[0].finding)).child("failure");
  EXPECT_STREQ(failure.attribute("type").value(), "hang");
  EXPECT_NE(std::string(failure.attribute("message").value()).find("it does not end"), std::string::npos);
  const std::string text = failure.text().get();
  for (const char* part :
       {"fusediff replay out/findings/mul", "fusediff minimize", "replayed 9 of 10", "stage 2 (y)"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  const pugi::xml_node known = testcase("mul", signature_of(report.findings[1].finding));
  EXPECT_TRUE(known.child("failure").empty());
  EXPECT_NE(std::string(known.child("skipped").attribute("message").value()).find("https://example.org/7"),
            std::string::npos);
}

TEST_F(Junit, WhatWasCleanPassesAndWhatProvedNothingDoesNot) {
  parse(sample_report());
  EXPECT_FALSE(testcase("mul", "threads").child("system-out").empty()) << "clean";
  EXPECT_TRUE(testcase("mul", "pair").empty()) << "its findings stand there";
  EXPECT_FALSE(testcase("add", "repeat").child("skipped").empty()) << "ten checks, and none passed";
  EXPECT_FALSE(testcase("add", "gradient").child("skipped").empty()) << "never asked";
  EXPECT_FALSE(testcase("add", "not asked: gradient").child("skipped").empty());
  EXPECT_FALSE(testcase("sub", "all experiments").child("skipped").empty()) << "only skips";
}

TEST_F(Junit, HostileTextIsCarried) {
  const CampaignReport report = sample_report();
  parse(report);
  const std::string message =
      testcase("add", signature_of(report.findings[2].finding)).child("failure").attribute("message").value();
  EXPECT_NE(message.find("</script><script>alert(1)</script> \"'`|]]>&\xEF\xBF\xBD\xEF\xBF\xBD"), std::string::npos)
      << message;
}

TEST_F(Junit, AnEmptyCampaignIsStillADocument) {
  parse({});
  EXPECT_EQ(root_.attribute("tests").as_uint(), 0u);
}

}  // namespace
}  // namespace fusediff
