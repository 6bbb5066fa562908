#include "report/github.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "report/commands.h"
#include "report/facts.h"
#include "report/text.h"

namespace fusediff {
namespace {

constexpr std::size_t kTableBytes = 300'000;
constexpr std::size_t kNegativeBytes = 100'000;
constexpr std::size_t kReserve = 2'000;   // for the sentences that say what was left out
constexpr std::size_t kMostCell = 2'000;  // bytes of a sentence; a bundle is hostile input
constexpr std::size_t kMostCommand = 4'000;
constexpr std::size_t kLinesShown = 12;
constexpr std::size_t kReasonsShown = 20;

std::string clipped(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  return std::string(text.substr(0, most)) + " ...";
}

// One line that Markdown and the HTML in it take as it stands.
std::string prose(std::string_view text) {
  constexpr std::string_view kSpecial = "\\`*_{}[]()#+!|~@";
  std::string safe;
  for (const char c : clean_text(clipped(text, kMostCell))) {
    if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '&')
      safe += "&amp;";
    else if (c == '\n' || c == '\t')
      safe += ' ';
    else if (kSpecial.find(c) != std::string_view::npos)
      safe += std::string("\\") + c;
    else
      safe += c;
  }
  return safe;
}

// Inside an element of HTML: marks of Markdown go as entities, for readers that look for them there too.
std::string html(std::string_view text) {
  constexpr std::string_view kSpecial = "<>&\\`*_[]#~@\"";
  std::string safe;
  for (const char c : clean_text(clipped(text, kMostCell))) {
    if (kSpecial.find(c) != std::string_view::npos) {
      safe += "&#" + std::to_string(static_cast<int>(c)) + ";";
    } else {
      safe += c == '\n' ? ' ' : c;
    }
  }
  return safe;
}

// A block of code, its fence longer than any run of backticks in it.
std::string code(std::string_view text) {
  const std::string clean = clean_text(clipped(text, kMostCommand));
  std::size_t longest = 2, run = 0;
  for (const char c : clean) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  return fence + "sh\n" + clean + "\n" + fence + "\n";
}

std::string head(const CampaignReport& report) {
  std::string text = "## fusediff: " + prose(answer_of(report)) + "\n\n" + prose(report.folder.string()) + ": ";
  if (!report.seconds) return text + "no counts, the campaign wrote neither summary.json nor stats.json\n";
  char seconds[64];
  std::snprintf(seconds, sizeof seconds, "%.1f", *report.seconds);
  text += counted(report.checks, "check", "checks") + " in " + seconds + " s by " +
          counted(report.jobs, "worker", "workers") + ", " + counted(report.operators.size(), "operator", "operators") +
          ", corpus of " + counted(report.corpus, "case", "cases") + ".";
  if (!report.ended) text += " **Still running, or killed**: the counts are those of its last second.";
  return text + "\n";
}

std::string row(const ReportedFinding& reported, std::size_t number) {
  const Finding& f = reported.finding;
  return "| " + std::to_string(number) + " | " + std::string(name_of(reported.standing)) + " | " +
         std::string(name_of(f.cls)) + " | " + prose(f.op) + " | " + prose(f.output) + " | " + prose(f.dtype) + " | " +
         prose(blame_of(f)) + " | " + prose(f.experiment) + " | " + prose(certainty_of(reported)) + " |\n";
}

std::string table(const CampaignReport& report) {
  if (report.findings.empty()) return "";
  std::string text =
      "\n| # | | class | operator | output | dtype | blame | experiment | how certain |\n"
      "|---|---|---|---|---|---|---|---|---|\n";
  for (std::size_t i = 0; i < report.findings.size(); ++i) {
    const std::string line = row(report.findings[i], i + 1);
    if (text.size() + line.size() > kTableBytes) {
      return text + "\nThe table is cut: " + counted(report.findings.size() - i, "finding is", "findings are") +
             " left out of it.\n";
    }
    text += line;
  }
  return text;
}

std::string details(const ReportedFinding& reported, std::size_t number) {
  const Finding& f = reported.finding;
  std::string text = "\n<details><summary>" + std::to_string(number) + ". " + html(headline(f)) + "</summary>\n\n";
  const auto item = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += std::string("- **") + name + "**: " + prose(value) + "\n";
  };
  const auto items = [&](const char* name, const std::vector<std::string>& values) {
    for (std::size_t i = 0; i < std::min(values.size(), kLinesShown); ++i) item(name, values[i]);
    if (values.size() > kLinesShown) item(name, std::to_string(values.size() - kLinesShown) + " more, in finding.json");
  };
  item("compared", comparison_of(f, reported.smallest));
  item("meaning", meaning_of(f.cls));
  item("blame", blame_of(f));
  items("evidence", evidence_of(f));
  items("influence", f.influence);
  item("cause", f.conclusion);
  items("note", f.notes);
  item("seen", certainty_of(reported));
  item("ledger", standing_of(reported));
  item("bundle", reported.bundle.string());
  for (const auto& [label, command] : commands_of(reported)) text += "\n" + label + ":\n\n" + code(command);
  return text + "\n</details>\n";
}

std::string reasons(const char* title, const Tally& tally) {
  if (tally.empty()) return "";
  std::string text = "- **" + std::string(title) + "**: " + std::to_string(total(tally)) + "\n";
  const auto sorted = most_frequent(tally);
  for (std::size_t i = 0; i < std::min(kReasonsShown, sorted.size()); ++i) {
    text += "  - " + std::to_string(sorted[i].first) + " " + prose(sorted[i].second) + "\n";
  }
  if (sorted.size() > kReasonsShown) text += "  - " + std::to_string(sorted.size() - kReasonsShown) + " more reasons\n";
  return text;
}

std::string negative_space(const CampaignReport& report) {
  std::string text = reasons("skipped", report.skips) + reasons("vacuous", report.vacuous) +
                     reasons("not judged", report.not_judged) + reasons("not checked", report.not_checked) +
                     reasons("not asked, because the record leaves it out", report.unasked) +
                     reasons("seen without a bundle of its own", report.without_bundle);
  if (report.waiting > 0) text += "- **not bundled yet**: " + counted(report.waiting, "file", "files") + "\n";
  for (std::size_t i = 0; i < std::min(kReasonsShown, report.problems.size()); ++i) {
    text += "- **damaged file**: " + prose(report.problems[i]) + "\n";
  }
  if (report.problems.size() > kReasonsShown) {
    text += "- **damaged file**: " + std::to_string(report.problems.size() - kReasonsShown) + " more\n";
  }
  for (std::size_t i = 0; i < std::min(kReasonsShown, report.vanished.size()); ++i) {
    text += "- **in the ledger, no longer seen**: " + prose(report.vanished[i].signature) + " (" +
            prose(report.vanished[i].issue) + ")\n";
  }
  if (report.vanished.size() > kReasonsShown) {
    text +=
        "- **in the ledger, no longer seen**: " + std::to_string(report.vanished.size() - kReasonsShown) + " more\n";
  }
  if (text.empty()) return "";
  text = "\n### What proves little or nothing\n\n" + text;
  if (text.size() <= kNegativeBytes) return text;
  return text.substr(0, text.rfind('\n', kNegativeBytes) + 1) + "- the rest is left out\n";
}

}  // namespace

std::string report_github(const CampaignReport& report) {
  const std::string tail = negative_space(report);
  std::string text = head(report) + table(report);
  for (std::size_t i = 0; i < report.findings.size(); ++i) {
    const std::string block = details(report.findings[i], i + 1);
    if (text.size() + block.size() + tail.size() + kReserve > kMostSummaryBytes) {
      text += "\nLeft out, because a summary holds no more: the details of " +
              counted(report.findings.size() - i, "finding", "findings") + ". All of them:\n\n" +
              code(report_command(report.folder));
      break;
    }
    text += block;
  }
  return text + tail;
}

}  // namespace fusediff
