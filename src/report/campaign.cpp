#include "report/campaign.h"

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <tuple>

#include "base/files.h"
#include "report/commands.h"
#include "report/series.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::uint64_t kSummaryVersion = 1;
constexpr std::uint64_t kMaxSummaryBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kMaxListBytes = std::uint64_t{1} << 30;

std::uint64_t count_of(const Json& json, const char* key) {
  const Json& value = json.at(key);
  if (!value.is_number_unsigned()) throw std::invalid_argument("\"" + std::string(key) + "\" is not a count");
  return value.get<std::uint64_t>();
}

double seconds_of(const Json& json, const char* key) {
  const Json& value = json.at(key);
  if (!value.is_number()) throw std::invalid_argument("\"" + std::string(key) + "\" is not a number of seconds");
  return value.get<double>();
}

Tally tally_of(const Json& json, const char* key) {
  const Json& value = json.at(key);
  if (!value.is_object()) throw std::invalid_argument("\"" + std::string(key) + "\" is not an object of counts");
  Tally tally;
  for (const auto& [name, unused] : value.items()) tally[name] = count_of(value, name.c_str());
  return tally;
}

// The entries of a folder by name; none where it is missing.
std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    if (!at->path().filename().string().starts_with('.')) found.push_back(at->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

class Fold {
 public:
  explicit Fold(fs::path folder) { report_.folder = std::move(folder); }

  Result<CampaignReport> run() {
    if (Status read = read_counts(); !read.ok()) return read.error();
    read_bundles();
    read_list();
    report_.series = read_series(report_.folder, report_.problems);
    for (const fs::path& file : entries(report_.folder / "found")) {
      if (file.extension() == ".json") ++report_.waiting;
    }
    tell_what_has_no_bundle();
    sort_findings();
    return std::move(report_);
  }

 private:
  Status read_counts() {
    std::error_code code;
    if (!fs::is_directory(report_.folder, code)) {
      return user_error(report_.folder.string() +
                        (fs::exists(report_.folder, code)
                             ? ": is a file; the folder of a campaign is needed here"
                             : ": there is no such folder; that of a campaign is needed here"));
    }
    for (const char* name : {"summary.json", "stats.json"}) {
      const fs::path file = report_.folder / name;
      if (!fs::exists(file, code)) continue;
      report_.ended = std::string_view(name) == "summary.json";
      return read_counts_of(file);
    }
    if (fs::is_directory(report_.folder / "findings", code)) return {};
    return user_error(report_.folder.string() +
                      ": is not the folder of a campaign: summary.json, stats.json and findings are missing; the --out "
                      "of a fusediff fuzz is right");
  }

  Status read_counts_of(const fs::path& file) {
    const Result<std::string> text = read_file(file, kMaxSummaryBytes);
    if (!text.ok()) return text.error();
    const Json json = Json::parse(*text, nullptr, false);
    if (!json.is_object()) return user_error(file.string() + ": is cut off or no JSON; a whole one is needed");
    try {
      if (const std::uint64_t version = count_of(json, "fusediff_summary"); version != kSummaryVersion) {
        return user_error(file.string() + ": has version " + std::to_string(version) +
                          ", this fusediff reads version " + std::to_string(kSummaryVersion));
      }
      take_counts(json);
    } catch (const std::exception& thrown) {
      return user_error(file.string() + ": is no summary of a campaign: " + thrown.what());
    }
    return {};
  }

  void take_counts(const Json& json) {
    report_.seconds = seconds_of(json, "seconds");
    report_.target_seconds = seconds_of(json, "target_seconds");
    report_.checks = count_of(json, "checks");
    report_.jobs = count_of(json, "jobs");
    report_.target = json.value("target", "");
    report_.against = json.value("against", "");
    report_.restarts = count_of(json, "restarts");
    report_.corpus = count_of(json, "corpus");
    const Json& operators = json.at("checks_by_operator");
    for (const auto& [name, unused] : operators.items()) report_.operators[name] = tally_of(operators, name.c_str());
    report_.skips = tally_of(json, "skip");
    report_.vacuous = tally_of(json, "vacuous");
    report_.not_judged = tally_of(json, "harness_error");
    report_.not_checked = tally_of(json, "not_checked");
    if (json.contains("unasked")) report_.unasked = tally_of(json, "unasked");  // not of the first releases
    if (const auto at = json.find("experiments"); at != json.end() && at->is_object()) {
      for (const auto& [name, figures] : at->items()) report_.experiments[name] = figures.value("seconds", 0.0);
    }
    if (const auto at = json.find("experiments_by_operator"); at != json.end() && at->is_object()) {
      for (const auto& [op, experiments] : at->items()) {
        for (const auto& [name, unused] : experiments.items())
          report_.asked[op][name] = tally_of(experiments, name.c_str());
      }
    }
    counted_ = tally_of(json, "signature");
  }

  void read_bundles() {
    std::map<std::string, std::size_t> known;  // signature -> index
    for (const fs::path& folder : entries(report_.folder / "findings")) {
      Result<Bundle> bundle = read_bundle(folder);
      if (!bundle.ok()) {
        report_.problems.push_back(bundle.error().what);
        continue;
      }
      const auto [at, fresh] = known.emplace(signature_of(bundle->finding), report_.findings.size());
      if (!fresh) {
        ++report_.findings[at->second].bundles;
        continue;
      }
      report_.findings.push_back(reported(*std::move(bundle), folder));
    }
  }

  ReportedFinding reported(Bundle bundle, const fs::path& folder) const {
    ReportedFinding made;
    made.finding = std::move(bundle.finding);
    made.smallest = std::move(bundle.smallest);
    made.replay = bundle.replay;
    made.bundle = folder;
    made.environment = std::move(bundle.environment);
    for (const fs::path& file : entries(folder)) made.files.push_back(file.filename().string());
    Sides sides = sides_of(made.finding, made.environment);
    sides.target = report_.target;
    sides.against = report_.against;
    made.command = replay_command(folder, sides);
    made.minimize = minimize_command(folder, sides);
    if (std::binary_search(made.files.begin(), made.files.end(), "repro.py"))
      made.repro = repro_command(folder, other_library(made.finding, made.environment), sides);
    return made;
  }

  // What is listed counts as seen once where nothing counted it.
  void read_list() {
    std::error_code code;
    const fs::path file = report_.folder / "findings.jsonl";
    if (!fs::exists(file, code)) return;
    const Result<std::string> text = read_file(file, kMaxListBytes);
    if (!text.ok()) {
      report_.problems.push_back(text.error().what);
      return;
    }
    std::string_view rest = *text;
    for (int line = 1; !rest.empty(); ++line) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      const Json json = Json::parse(rest.substr(0, end), nullptr, false);
      if (const auto key = key_of(json)) {
        listed_.insert(*key);
      } else {
        report_.problems.push_back(file.string() + ": line " + std::to_string(line) +
                                   (end == rest.size() ? " is cut off" : " is damaged") + "; passed over");
      }
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }

  // "CLASS/SLUG", as the counts of a campaign spell a signature.
  static std::optional<std::string> key_of(const Json& line) {
    if (!line.is_object()) return std::nullopt;
    const auto cls = line.find("class");
    const auto slug = line.find("slug");
    if (cls == line.end() || slug == line.end() || !cls->is_string() || !slug->is_string()) return std::nullopt;
    return cls->get<std::string>() + "/" + slug->get<std::string>();
  }

  void tell_what_has_no_bundle() {
    report_.without_bundle = counted_;
    for (const std::string& key : listed_) report_.without_bundle.emplace(key, 0);
    for (ReportedFinding& reported : report_.findings) {
      const std::string key = std::string(name_of(reported.finding.cls)) + "/" + slug_of(reported.finding);
      if (const auto at = counted_.find(key); at != counted_.end()) reported.seen = at->second;
      report_.without_bundle.erase(key);
    }
  }

  void sort_findings() {
    const auto place = [](const ReportedFinding& reported) {
      return std::tuple(reported.finding.cls, reported.finding.op, signature_of(reported.finding));
    };
    std::sort(report_.findings.begin(), report_.findings.end(),
              [&](const ReportedFinding& a, const ReportedFinding& b) { return place(a) < place(b); });
  }

  CampaignReport report_;
  Tally counted_;                 // by CLASS/SLUG
  std::set<std::string> listed_;  // likewise, in findings.jsonl
};

}  // namespace

std::string_view name_of(Standing standing) {
  switch (standing) {
    case Standing::kUnknown:
      return "new";
    case Standing::kKnown:
      return "known";
    case Standing::kExpired:
      return "expired";
  }
  return "new";
}

Result<CampaignReport> fold_campaign(const fs::path& folder) { return Fold(folder).run(); }

}  // namespace fusediff
