#include "campaign/series.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.h"
#include "campaign/found.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

class SeriesFile : public testing::Test {
 protected:
  void SetUp() override {
    out_ = fs::temp_directory_path() / ("fusediff_series_" + std::to_string(::getpid()));
    fs::remove_all(out_);
    fs::create_directories(out_);
  }
  void TearDown() override { fs::remove_all(out_); }

  void write(const std::string& text) const { std::ofstream(series_file(out_), std::ios::binary) << text; }
  std::vector<nlohmann::json> lines() const {
    std::vector<nlohmann::json> all;
    std::istringstream text(*read_file(series_file(out_), 1 << 26));
    for (std::string line; std::getline(text, line);) all.push_back(nlohmann::json::parse(line));
    return all;
  }

  fs::path out_;
};

TEST_F(SeriesFile, ANightIsSomeHundredLines) {
  Series series(out_);
  for (double t = 0; t < 10 * 3600; t += 0.2) {
    if (series.due(t)) series.append({.seconds = t, .checks = 1, .findings = {}});
  }
  const auto all = lines();
  EXPECT_GT(all.size(), 200u);
  EXPECT_LT(all.size(), 800u);
  EXPECT_LE(all[2].at("seconds"), 5) << "the first minutes are the finest";
}

TEST_F(SeriesFile, ALaterRunGoesOnBehindATornLine) {
  Series(out_).append({.seconds = 1, .checks = 10, .findings = {{"flip", "a"}}});
  ASSERT_TRUE(append_line(findings_list(out_), R"({"class": "flip", "slug": "a"})").ok());
  {
    std::ofstream torn(series_file(out_), std::ios::app);
    torn << R"({"fusediff_series": 1, "run": 1, "sec)";
  }
  Series(out_).append({.seconds = 0.5, .checks = 4, .findings = {{"flip", "b"}, {"damage", "c"}}});
  const auto all = lines();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].at("run"), 1);
  EXPECT_EQ(all[1].at("run"), 2);
  EXPECT_EQ(all[1].at("checks"), 4);
  EXPECT_EQ(all[1].at("findings"), (nlohmann::json{{"damage", 1}, {"flip", 2}})) << "of all runs";
}

TEST_F(SeriesFile, ManyRunsAreThinnedAndKeepTheirEnds) {
  std::string text;
  for (int run = 1; run <= 10; ++run) {
    for (int i = 0; i < 1000; ++i) {
      text += R"({"fusediff_series":1,"run":)" + std::to_string(run) + ",\"seconds\":" + std::to_string(i) + "}\n";
    }
  }
  write(text);
  Series series(out_);
  const auto all = lines();
  EXPECT_LE(all.size(), 4000u);
  int firsts = 0, lasts = 0;
  for (const auto& line : all) {
    firsts += line.at("seconds") == 0;
    lasts += line.at("seconds") == 999;
  }
  EXPECT_EQ(firsts, 10);
  EXPECT_EQ(lasts, 10);
}

TEST_F(SeriesFile, FeaturesAreTheLastThatTheLogTellsAndNeverFall) {
  const fs::path log = out_ / "0.log";
  EXPECT_EQ(features_in_log(log), 0u);
  std::ofstream(log) << "INFO: seed\n#2\tINITED ft: 12 corp: 1/35b\n#40\tNEW    ft: 107 corp: 81/35Kb exec/s: 0\n";
  EXPECT_EQ(features_in_log(log), 107u);
  Series series(out_);
  series.append({.seconds = 1, .features = 107, .findings = {}});
  series.append({.seconds = 3, .features = 12, .findings = {}});
  EXPECT_EQ(lines()[1].at("features"), 107) << "a restarted worker begins anew";
}

}  // namespace
}  // namespace fusediff
