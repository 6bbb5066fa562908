#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "report/campaign.h"
#include "report/facts.h"
#include "report/text.h"

namespace fusediff {
namespace {

constexpr std::size_t kEvidenceShown = 4;
constexpr std::size_t kReasonsShown = 20;
constexpr std::array<Verdict::Kind, 5> kVerdicts = {Verdict::Kind::kPass, Verdict::Kind::kFinding, Verdict::Kind::kSkip,
                                                    Verdict::Kind::kVacuous, Verdict::Kind::kHarnessError};

std::string left(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}
std::string right(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

std::string tenths(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string head(const CampaignReport& report) {
  std::string text = report.folder.string() + ": ";
  if (!report.seconds) return text + "no counts: the campaign wrote neither summary.json nor stats.json\n";
  text += counted(report.checks, "check", "checks") + " in " + tenths(*report.seconds) + " s by " +
          counted(report.jobs, "worker", "workers") + ", " + tenths(report.target_seconds) +
          " s of it inside the paths; corpus of " + counted(report.corpus, "case", "cases");
  if (report.restarts > 0) text += "; workers restarted " + counted(report.restarts, "time", "times");
  text += "\n";
  if (!report.ended) text += "still running, or killed: the counts are those of its last second\n";
  return text;
}

// A line for each operator, a column for each verdict, and the sum of each column.
std::string checks_table(const CampaignReport& report) {
  if (report.operators.empty()) return "";
  constexpr std::size_t kWidth = 15;
  std::size_t name_width = 3;
  Tally sums;
  for (const auto& [op, verdicts] : report.operators) {
    name_width = std::max(name_width, op.size());
    for (const auto& [verdict, count] : verdicts) sums[verdict] += count;
  }
  const auto row = [&](const std::string& name, const auto& cell) {
    std::string text = "  " + left(name, name_width);
    for (const Verdict::Kind kind : kVerdicts) text += right(cell(std::string(name_of(kind))), kWidth);
    return text + "\n";
  };
  const auto counts_of = [](const Tally& verdicts) {
    return [&verdicts](const std::string& verdict) {
      const auto at = verdicts.find(verdict);
      return std::to_string(at == verdicts.end() ? 0 : at->second);
    };
  };
  std::string text = "\nchecks\n" + row("", [](const std::string& verdict) { return verdict; });
  for (const auto& [op, verdicts] : report.operators) text += row(op, counts_of(verdicts));
  return text + row("all", counts_of(sums));
}

// Where the time of the workers went, the largest share first.
std::string time_line(const CampaignReport& report) {
  std::vector<std::pair<double, std::string>> times;
  double all = 0;
  for (const auto& [name, seconds] : report.experiments) {
    times.emplace_back(seconds, name);
    all += seconds;
  }
  if (all <= 0) return "";
  std::sort(times.rbegin(), times.rend());
  std::string text = "time by experiment:";
  for (const auto& [seconds, name] : times) text += " " + name + " " + tenths(100 * seconds / all) + "%";
  return text + "\n";
}

std::string tally_line(const char* name, const Tally& tally) {
  std::string text = "  " + left(name, 12);
  bool first = true;
  for (const auto& [key, count] : tally) {
    text += (first ? "" : ", ") + key + " " + std::to_string(count);
    first = false;
  }
  return text + "\n";
}

std::string findings_by(const CampaignReport& report) {
  std::string text = "\nfindings: " + counted(report.findings.size(), "signature", "signatures") + "\n";
  if (report.findings.empty()) return text;
  Tally ops, classes, stages;
  for (const ReportedFinding& reported : report.findings) {
    const Finding& f = reported.finding;
    ++ops[f.op];
    ++classes[std::string(name_of(f.cls))];
    ++stages[f.stage ? f.op + " " + blame_of(f) : f.op + " no stage"];
  }
  return text + tally_line("by operator", ops) + tally_line("by class", classes) + tally_line("by stage", stages);
}

void append_field(std::string& text, const char* name, const std::string& value) {
  if (!value.empty()) text += "   " + left(name, 10) + value + "\n";
}

std::string finding_text(const ReportedFinding& reported, std::size_t number) {
  const Finding& f = reported.finding;
  std::string text = "\n" + std::to_string(number) + ". " + headline(f) + "\n";
  append_field(text, "compared", comparison_of(f, reported.smallest));
  append_field(text, "meaning", meaning_of(f.cls));
  append_field(text, "blame", blame_of(f));
  const std::vector<std::string> evidence = evidence_of(f);
  for (std::size_t i = 0; i < std::min(kEvidenceShown, evidence.size()); ++i) {
    append_field(text, i == 0 ? "evidence" : "also", evidence[i]);
  }
  if (evidence.size() > kEvidenceShown) {
    append_field(text, "also", std::to_string(evidence.size() - kEvidenceShown) + " more, in finding.json");
  }
  for (const std::string& sentence : f.influence) append_field(text, "influence", sentence);
  for (const std::string& note : f.notes) append_field(text, "note", note);
  append_field(text, "seen", certainty_of(reported));
  append_field(text, "ledger", standing_of(reported));
  append_field(text, "bundle", reported.bundle.string());
  append_field(text, "replay", reported.command);
  return text;
}

// The most frequent first.
std::string reasons(const char* title, const Tally& tally) {
  const auto sorted = most_frequent(tally);
  std::string text = "  " + left(title, 13) + std::to_string(total(tally)) + "\n";
  for (std::size_t i = 0; i < std::min(kReasonsShown, sorted.size()); ++i) {
    text += "  " + right(std::to_string(sorted[i].first), 12) + "  " + sorted[i].second + "\n";
  }
  if (sorted.size() > kReasonsShown) {
    text += "  " + right("", 14) + "and " + std::to_string(sorted.size() - kReasonsShown) + " more reasons\n";
  }
  return text;
}

std::string negative_space(const CampaignReport& report) {
  std::string text;
  if (report.seconds) {
    text += "\nwhat proves little or nothing\n";
    text += reasons("skipped", report.skips);
    text += reasons("vacuous", report.vacuous);
    text += reasons("not judged", report.not_judged);
    text += reasons("not checked", report.not_checked);
  }
  if (!report.unasked.empty()) {
    text += "\nnot asked, because the record leaves it out, and what to add\n";
    for (const auto& [sentence, count] : report.unasked) text += "  " + sentence + "\n";
  }
  if (!report.without_bundle.empty()) {
    text +=
        "\nseen without a bundle of its own (a bundle may show it under the signature that its smallest case has)\n";
    for (const auto& [key, count] : report.without_bundle) {
      text += "  " + right(std::to_string(count), 12) + "  " + key + "\n";
    }
  }
  if (report.waiting > 0) {
    text += "\nnot bundled yet: " + counted(report.waiting, "file", "files") + " in " +
            (report.folder / "found").string() + "; the next fusediff fuzz --out " + report.folder.string() +
            " goes on with it\n";
  }
  if (!report.vanished.empty()) {
    text += "\nin the ledger and no longer seen: take them out of " + report.ledger.string() + "\n";
    for (const LedgerEntry& entry : report.vanished) text += "  " + entry.signature + "  " + entry.issue + "\n";
  }
  return text;
}

}  // namespace

std::string report_text(const CampaignReport& report) {
  std::string text = head(report) + time_line(report) + checks_table(report) + findings_by(report);
  for (std::size_t i = 0; i < report.findings.size(); ++i) text += finding_text(report.findings[i], i + 1);
  return text + negative_space(report);
}

}  // namespace fusediff
