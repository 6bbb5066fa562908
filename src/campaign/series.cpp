#include "campaign/series.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/files.h"
#include "campaign/found.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kSeriesVersion = 1;
constexpr double kFirstStep = 2;        // seconds between lines
constexpr double kGrowth = 0.01;        // of a run's age, once that is the longer step
constexpr std::size_t kLongest = 4000;  // lines that a new run leaves as they are
constexpr std::uint64_t kMaxBytes = std::uint64_t{64} << 20;
constexpr std::streamoff kLogTail = 4096;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

struct Line {
  std::uint64_t run = 0;
  std::string_view text;
};

std::vector<Line> whole_lines(std::string_view text) {
  std::vector<Line> whole;
  for (const std::string_view line : lines_of(text)) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object()) continue;
    const auto run = json.find("run");
    if (run != json.end() && run->is_number_unsigned()) whole.push_back({run->get<std::uint64_t>(), line});
  }
  return whole;
}

// Every other line goes; the first and the last of each run stay.
void thin(std::vector<Line>& lines) {
  std::vector<Line> kept;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool first = i == 0 || lines[i - 1].run != lines[i].run;
    const bool last = i + 1 == lines.size() || lines[i + 1].run != lines[i].run;
    if (first || last || i % 2 == 0) kept.push_back(lines[i]);
  }
  lines = std::move(kept);
}

std::set<ClassAndSlug> listed(const fs::path& out) {
  std::set<ClassAndSlug> found;
  const Result<std::string> text = read_file(findings_list(out), std::uint64_t{1} << 30);
  if (!text.ok()) return found;
  for (const std::string_view line : lines_of(*text)) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object()) continue;
    const auto cls = json.find("class"), slug = json.find("slug");
    if (cls != json.end() && slug != json.end() && cls->is_string() && slug->is_string()) {
      found.insert({cls->get<std::string>(), slug->get<std::string>()});
    }
  }
  return found;
}

}  // namespace

fs::path series_file(const fs::path& out) { return out / "series.jsonl"; }

Series::Series(const fs::path& out) : file_(series_file(out)), before_(listed(out)) {
  std::error_code code;
  if (!fs::exists(file_, code)) return;
  const Result<std::string> text = read_file(file_, kMaxBytes);
  if (!text.ok()) return;
  std::vector<Line> lines = whole_lines(*text);
  if (!lines.empty()) run_ = lines.back().run + 1;
  for (std::size_t before = 0; lines.size() > kLongest && lines.size() != before;) {
    before = lines.size();
    thin(lines);
  }
  std::string kept;
  for (const Line& line : lines) kept += std::string(line.text) + "\n";
  if (kept == *text) return;
  if (const Status written = write_file(file_, kept); !written.ok()) return;
}

void Series::append(const SeriesPoint& point) {
  next_ = point.seconds + std::max(kFirstStep, kGrowth * point.seconds);
  features_ = std::max(features_, point.features);
  std::set<ClassAndSlug> all = before_;
  all.insert(point.findings.begin(), point.findings.end());
  std::map<std::string, int> classes;
  for (const auto& [cls, slug] : all) ++classes[cls];
  const Json json = {{"fusediff_series", kSeriesVersion},
                     {"run", run_},
                     {"seconds", point.seconds},
                     {"checks", point.checks},
                     {"target_seconds", point.target_seconds},
                     {"corpus", point.corpus},
                     {"features", features_},
                     {"findings", classes}};
  // A full disk is met, and told, where a finding is written.
  if (const Status written = append_line(file_, json.dump(-1, ' ', false, Json::error_handler_t::replace));
      !written.ok()) {
    return;
  }
}

std::uint64_t features_in_log(const fs::path& log) {
  std::ifstream stream(log, std::ios::binary | std::ios::ate);
  if (!stream) return 0;
  const std::streamoff size = stream.tellg();
  const std::streamoff length = std::min(size, kLogTail);
  stream.seekg(size - length);
  std::string tail(static_cast<std::size_t>(length), '\0');
  stream.read(tail.data(), length);
  tail.resize(static_cast<std::size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  constexpr std::string_view kMark = " ft: ";
  const std::size_t at = tail.rfind(kMark);
  if (at == std::string::npos) return 0;
  std::uint64_t features = 0;
  std::from_chars(tail.data() + at + kMark.size(), tail.data() + tail.size(), features);
  return features;
}

}  // namespace fusediff
