#include "report/series.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace fusediff {
namespace {

namespace fs = std::filesystem;

TEST(ReadSeries, DamagedLinesAreToldAndATornEndIsNot) {
  const fs::path folder = fs::temp_directory_path() / ("fusediff_read_series_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  std::ofstream(folder / "series.jsonl")
      << R"({"fusediff_series":1,"run":1,"seconds":2.5,"checks":10,"corpus":3,"features":7,"findings":{"flip":1}})"
      << "\n{]\n"
      << R"({"fusediff_series":1,"run":2,"seconds":1,"checks":-4,"corpus":3})"
      << "\n{\"fusediff_ser";
  std::vector<std::string> problems;
  const std::vector<Moment> series = read_series(folder, problems);
  ASSERT_EQ(series.size(), 1u);
  EXPECT_EQ(series[0].features, 7u);
  EXPECT_EQ(series[0].findings.at("flip"), 1u);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE(problems[1].find("line 3 is damaged"), std::string::npos);
  fs::remove_all(folder);
  problems.clear();
  EXPECT_TRUE(read_series(folder, problems).empty());
  EXPECT_TRUE(problems.empty());
}

TEST(ReadSeries, ThinningKeepsTheEndsOfEachRun) {
  std::vector<Moment> series;
  for (std::uint64_t run = 1; run <= 3; ++run) {
    for (int i = 0; i < 1000; ++i) series.push_back({run, double(i), 0, 0, 0, {}});
  }
  const std::vector<Moment> few = thinned(series, 100);
  EXPECT_LE(few.size(), 100u);
  EXPECT_GT(few.size(), 80u);
  int ends = 0;
  for (const Moment& moment : few) ends += moment.seconds == 0 || moment.seconds == 999;
  EXPECT_EQ(ends, 6);
  EXPECT_EQ(thinned(series, 5000).size(), series.size());
}

}  // namespace
}  // namespace fusediff
