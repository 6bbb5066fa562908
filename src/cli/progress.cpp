#include "cli/progress.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <tuple>
#include <vector>

#include "report/commands.h"
#include "report/text.h"

namespace fusediff {
namespace {

constexpr std::size_t kReasonsShown = 5;
constexpr std::size_t kUnaskedShown = 8;
constexpr std::size_t kReasonWidth = 90;
constexpr std::size_t kGroupsShown = 16;
constexpr std::size_t kLineWidth = 116;

std::string clock_text(double seconds) {
  const auto whole = static_cast<long>(seconds);
  char text[32];
  if (whole >= 3600) {
    std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%ld:%02ld", whole / 60, whole % 60);
  }
  return text;
}

std::string rounded(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::uint64_t total(const std::map<std::string, std::uint64_t>& counts) {
  std::uint64_t sum = 0;
  for (const auto& [name, count] : counts) sum += count;
  return sum;
}

// "check" counts hold OP/VERDICT: by verdict over all operators, or by operator over all verdicts.
std::map<std::string, std::uint64_t> checks_by(const Counts& counts, bool verdict) {
  std::map<std::string, std::uint64_t> by;
  for (const auto& [key, count] : counts.of_kind("check")) {
    const std::size_t slash = key.rfind('/');
    if (slash == std::string::npos) continue;
    by[verdict ? key.substr(slash + 1) : key.substr(0, slash)] += count;
  }
  return by;
}

std::uint64_t of_verdict(const Counts& counts, const char* verdict) {
  const auto by = checks_by(counts, true);
  const auto at = by.find(verdict);
  return at == by.end() ? 0 : at->second;
}

std::string classes_text(const FuzzStatus& status) {
  int findings = 0;
  std::string names;
  for (const auto& [cls, count] : status.classes) {
    findings += count;
    names += (names.empty() ? "" : ", ") + cls + " " + std::to_string(count);
  }
  return std::to_string(findings) + (names.empty() ? "" : " (" + names + ")");
}

// "  skipped 12\n    9  reason\n": the most frequent first.
void append_reasons(std::ostringstream& out, const char* title, const std::map<std::string, std::uint64_t>& reasons) {
  if (reasons.empty()) return;
  std::vector<std::pair<std::uint64_t, std::string>> sorted;
  for (const auto& [reason, count] : reasons) sorted.emplace_back(count, reason);
  std::sort(sorted.rbegin(), sorted.rend());
  out << title << " " << total(reasons) << "\n";
  for (std::size_t i = 0; i < std::min(kReasonsShown, sorted.size()); ++i) {
    std::string reason = sorted[i].second;
    if (reason.size() > kReasonWidth) reason = reason.substr(0, kReasonWidth - 3) + "...";
    out << "  " << std::string(10 - std::min<std::size_t>(10, std::to_string(sorted[i].first).size()), ' ')
        << sorted[i].first << "  " << reason << "\n";
  }
  if (sorted.size() > kReasonsShown) out << "             and " << sorted.size() - kReasonsShown << " more kinds\n";
}

// A record or two of one's own: in full. More: the report has them.
void append_unasked(std::ostringstream& out, const std::map<std::string, std::uint64_t>& sentences,
                    const std::filesystem::path& folder) {
  if (sentences.empty()) return;
  if (sentences.size() > kUnaskedShown) {
    out << "not asked, because the records leave it out: " << sentences.size() << " questions, see "
        << report_command(folder) << "\n";
    return;
  }
  out << "not asked, because the record leaves it out\n";
  for (const auto& [sentence, count] : sentences) out << "  " << sentence << "\n";
}

std::string cut(std::string text) {
  if (text.size() > kLineWidth) text = text.substr(0, kLineWidth - 3) + "...";
  return text;
}

// One entry for findings that differ in the dtype only, gravest class first: what it is, where the first bundle lies.
void append_findings(std::ostringstream& out, const std::vector<News>& all) {
  using Key = std::tuple<FindingClass, std::string, std::string, std::optional<int>>;
  std::map<Key, std::vector<const News*>> groups;
  for (const News& news : all) {
    const Finding& f = news.finding;
    groups[{f.cls, f.op, f.output, f.stage}].push_back(&news);
  }
  std::size_t shown = 0;
  for (const auto& [key, group] : groups) {
    if (shown++ == kGroupsShown) {
      out << "  and " << groups.size() - kGroupsShown << " more kinds\n";
      break;
    }
    std::set<std::string> names;
    for (const News* news : group) names.insert(news->finding.dtype);
    std::string dtypes;
    for (const std::string& name : names) dtypes += (dtypes.empty() ? "" : " ") + name;
    const News& first = *group.front();
    out << "  " << cut(headline(first.finding)) << "\n    " << dtypes << (dtypes.empty() ? "" : ": ")
        << first.bundle.string() << ", replayed " << first.replay.same << " of " << first.replay.runs << "\n";
  }
}

// "  time pair 41 % threads 22 %": where the time went, the largest share first; "" where all of it is pair.
std::string experiments_text(const Counts& counts) {
  std::vector<std::pair<std::uint64_t, std::string>> times;
  for (const auto& [name, nanoseconds] : counts.of_kind("time")) times.emplace_back(nanoseconds, name);
  const std::uint64_t all = total(counts.of_kind("time"));
  if (times.size() < 2 || all == 0) return "";
  std::sort(times.rbegin(), times.rend());
  std::string text = "  time";
  for (const auto& [nanoseconds, name] : times)
    text += " " + name + " " + rounded(100 * static_cast<double>(nanoseconds) / static_cast<double>(all), 0) + "%";
  return text;
}

double target_share(const FuzzStatus& status) {
  const double spent = status.seconds * std::max(status.jobs, 1);
  return spent > 0 ? static_cast<double>(status.counts.target_nanoseconds) * 1e-9 / spent : 0;
}

}  // namespace

std::string progress_line(const FuzzStatus& status, double checks_per_second) {
  std::string line = clock_text(status.seconds) + "  " + std::to_string(status.counts.checks) + " checks (" +
                     rounded(checks_per_second, 0) + "/s)  corpus " + std::to_string(status.corpus) + "  findings " +
                     classes_text(status) + "  skips " + std::to_string(of_verdict(status.counts, "skip")) +
                     "  vacuous " + std::to_string(of_verdict(status.counts, "vacuous"));
  line += experiments_text(status.counts);
  if (status.restarts > 0) line += "  restarts " + std::to_string(status.restarts);
  if (status.pending > 0) line += "  minimising " + std::to_string(status.pending);
  return line;
}

std::vector<std::string> warnings(const FuzzStatus& status) {
  std::map<std::string, std::uint64_t> skipped;
  for (const auto& [key, count] : status.counts.of_kind("check")) {
    if (key.ends_with("/skip")) skipped[key.substr(0, key.rfind('/'))] = count;
  }
  std::vector<std::string> lines;
  for (const auto& [op, all] : checks_by(status.counts, false)) {
    const std::uint64_t count = skipped[op];
    if (2 * count <= all) continue;
    std::pair<std::uint64_t, std::string> usual;
    for (const auto& [reason, times] : status.counts.of_kind("skip")) {
      if (reason.starts_with(op + ": ")) usual = std::max(usual, {times, reason.substr(op.size() + 2)});
    }
    lines.push_back("warning: " + op + ": " + std::to_string(count) + " of " + std::to_string(all) +
                    " checks were skipped, most of them: " + usual.second);
  }
  return lines;
}

bool compared_nothing(const FuzzStatus& status) {
  const std::uint64_t all = total(checks_by(status.counts, true));
  if (all == 0) return total(status.counts.of_kind("not_checked")) > 0;
  const std::uint64_t proved = of_verdict(status.counts, "pass") + of_verdict(status.counts, "finding");
  return proved == 0 && of_verdict(status.counts, "skip") + of_verdict(status.counts, "harness_error") > 0;
}

std::string summary_text(const FuzzResult& result, const std::filesystem::path& out) {
  const FuzzStatus& status = result.status;
  const Counts& counts = status.counts;
  std::ostringstream text;
  text << result.sides.targets[0] << ":" << result.sides.paths[0] << " against " << result.sides.targets[1] << ":"
       << result.sides.paths[1] << ", " << status.jobs << (status.jobs == 1 ? " worker" : " workers") << ", "
       << counts.checks << " checks in " << rounded(status.seconds, 1) << " s ("
       << rounded(status.seconds > 0 ? static_cast<double>(counts.checks) / status.seconds : 0, 0) << "/s, "
       << rounded(100 * target_share(status), 0) << "% of it inside the paths)\n";
  for (const auto& [verdict, count] : checks_by(counts, true)) text << "  " << verdict << " " << count;
  text << "\n";
  for (const auto& [op, count] : checks_by(counts, false)) text << "  " << op << " " << count;
  text << "\n";
  if (const std::string experiments = experiments_text(counts); !experiments.empty()) text << experiments << "\n";
  append_reasons(text, "skipped", counts.of_kind("skip"));
  append_reasons(text, "vacuous", counts.of_kind("vacuous"));
  append_reasons(text, "not judged", counts.of_kind("harness_error"));
  append_reasons(text, "not checked", counts.of_kind("not_checked"));
  if (status.restarts > 0) {
    text << "workers restarted " << status.restarts;
    if (status.unexplained > 0) text << ", " << status.unexplained << " of them for no reason that a case explains";
    text << "\n";
  }
  append_unasked(text, counts.of_kind("unasked"), out);
  for (const std::string& warning : warnings(status)) text << warning << "\n";
  text << "findings " << classes_text(status) << "\n";
  append_findings(text, result.news);
  std::size_t signatures = 0;
  for (const auto& [cls, count] : status.classes) signatures += static_cast<std::size_t>(count);
  if (signatures > result.news.size()) {
    text << "  " << signatures - result.news.size()
         << " more were seen and have no bundle of their own here: what is smallest of them shows as one of these, was "
            "bundled before, or is still to be minimised\n";
  }
  std::error_code code;
  if (!std::filesystem::is_empty(out / "found", code) && !code) {
    text << "not bundled yet: what is in " << (out / "found").string() << "; the next fuzz --out " << out.string()
         << " goes on with it\n";
  }
  text << "all of it is in " << out.string() << "; in full: " << report_command(out) << "\n";
  return text.str();
}

std::string summary_json(const FuzzResult& result, const std::filesystem::path& out) {
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(status_json(result.status), nullptr, false);
  json["out"] = out.string();
  json["interrupted"] = result.interrupted;
  json["bundles"] = nlohmann::ordered_json::array();
  for (const News& news : result.news) {
    json["bundles"].push_back({{"path", news.bundle.string()},
                               {"signature", signature_of(news.finding)},
                               {"class", name_of(news.finding.cls)},
                               {"headline", headline(news.finding)},
                               {"replay", {{"runs", news.replay.runs}, {"same", news.replay.same}}}});
  }
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace fusediff
