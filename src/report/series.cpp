#include "report/series.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/files.h"

namespace fusediff {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMaxSeriesBytes = std::uint64_t{64} << 20;

std::optional<std::uint64_t> count_in(const Json& json, const char* key) {
  const auto at = json.find(key);
  if (at == json.end() || !at->is_number_unsigned()) return std::nullopt;
  return at->get<std::uint64_t>();
}

std::optional<Moment> moment_of(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || count_in(json, "fusediff_series") != 1) return std::nullopt;
  const auto run = count_in(json, "run"), checks = count_in(json, "checks"), corpus = count_in(json, "corpus");
  const auto seconds = json.find("seconds");
  if (!run || !checks || !corpus || seconds == json.end() || !seconds->is_number()) return std::nullopt;
  Moment moment{*run, seconds->get<double>(), *checks, *corpus, count_in(json, "features").value_or(0), {}};
  if (const auto findings = json.find("findings"); findings != json.end() && findings->is_object()) {
    for (const auto& [cls, count] : findings->items()) {
      if (count.is_number_unsigned()) moment.findings[cls] = count.get<std::uint64_t>();
    }
  }
  return moment;
}

}  // namespace

std::vector<Moment> read_series(const std::filesystem::path& folder, std::vector<std::string>& problems) {
  std::vector<Moment> series;
  const std::filesystem::path file = folder / "series.jsonl";
  std::error_code code;
  if (!std::filesystem::exists(file, code)) return series;
  const Result<std::string> text = read_file(file, kMaxSeriesBytes);
  if (!text.ok()) {
    problems.push_back(text.error().what);
    return series;
  }
  std::string_view rest = *text;
  for (int line = 1; !rest.empty(); ++line) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (const auto moment = moment_of(rest.substr(0, end))) {
      series.push_back(*moment);
    } else if (end != rest.size()) {
      problems.push_back(file.string() + ": line " + std::to_string(line) + " is damaged; passed over");
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return series;
}

std::vector<Moment> thinned(const std::vector<Moment>& series, std::size_t most) {
  if (series.size() <= most || most == 0) return series;
  std::vector<bool> keep(series.size(), false);
  std::size_t ends = 0;
  for (std::size_t i = 0; i < series.size(); ++i) {
    keep[i] =
        i == 0 || i + 1 == series.size() || series[i - 1].run != series[i].run || series[i + 1].run != series[i].run;
    ends += keep[i];
  }
  if (ends > most) keep.assign(series.size(), false), ends = 0;
  const std::size_t room = most - ends;
  for (std::size_t k = 0; k < room; ++k) keep[k * series.size() / room] = true;
  std::vector<Moment> kept;
  for (std::size_t i = 0; i < series.size(); ++i) {
    if (keep[i]) kept.push_back(series[i]);
  }
  return kept;
}

}  // namespace fusediff
