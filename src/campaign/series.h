// series.jsonl: how a campaign went over time. One line now and then, more seldom as a run gets older, so that a night
// is some hundred lines; a later run into the same folder goes on with the next run number. A line:
//   {"fusediff_series": 1, "run": 2, "seconds": 12.5, "checks": 4000, "target_seconds": 3.1, "corpus": 80,
//    "features": 107, "findings": {"flip": 1}}
// run counts from 1; seconds, checks and target_seconds are of that run alone; corpus is files; features is the most
// that libFuzzer told of in any worker, 0 where it told nothing yet; findings are distinct signatures by class, of all
// runs so far. Loses nothing that matters when it is cut off at any byte. Reading for reports is in src/report.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <utility>

namespace fusediff {

using ClassAndSlug = std::pair<std::string, std::string>;

struct SeriesPoint {
  double seconds = 0;
  std::uint64_t checks = 0;
  double target_seconds = 0;
  std::uint64_t corpus = 0;
  std::uint64_t features = 0;
  std::set<ClassAndSlug> findings;  // of this run
};

class Series {
 public:
  // Drops lines that are cut off or damaged, and thins a file that many runs have made long. A file that cannot be
  // read or written is passed over: what is lost is a picture.
  explicit Series(const std::filesystem::path& out);

  // Is it time for the next line?
  bool due(double seconds) const { return seconds >= next_; }
  void append(const SeriesPoint& point);

 private:
  std::filesystem::path file_;
  std::uint64_t run_ = 1;
  double next_ = 0;
  std::uint64_t features_ = 0;
  std::set<ClassAndSlug> before_;  // listed by earlier runs
};

std::filesystem::path series_file(const std::filesystem::path& out);  // series.jsonl

// The last "ft: N" of a libFuzzer log; 0 where there is none.
std::uint64_t features_in_log(const std::filesystem::path& log);

}  // namespace fusediff
