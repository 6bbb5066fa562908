// fusediff report: what a campaign's folder says.
#include <algorithm>
#include <array>
#include <iostream>
#include <optional>
#include <system_error>

#include "base/files.h"
#include "cli/options.h"
#include "model/quote.h"
#include "report/campaign.h"
#include "report/github.h"
#include "report/html.h"
#include "report/junit.h"
#include "report/known.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

enum class Format { kText, kJson, kJunit, kGithub, kHtml };
constexpr std::array kFormats = {"text", "json", "junit", "github", "html"};
constexpr const char* kPageName = "report.html";

OptionSet options() {
  OptionSet set;
  set.usage = "fusediff report DIR [options]";
  set.about =
      "Folds the folder of a fuzz into one report: checks by verdict and operator, each finding with its meaning, the\n"
      "stage to blame, the evidence, its bundle and the command that replays it, and what proves little: skips and\n"
      "vacuous checks by reason. Loads no target. html is one page with plots that needs no network, written to\n"
      "DIR/report.html unless --output names another file; the other formats go to stdout or to --output.\n"
      "With --ledger what the file lists is known: it is marked, and does not count as a finding.\n"
      "Exit code: 0 no finding, 1 findings, 2 the folder or a file in it is wrong.";
  set.example =
      "  fusediff fuzz --target planted --time 10 --out reports/example\n"
      "  fusediff report reports/example\n"
      "  fusediff report reports/example --format html\n";
  set.rest = "DIR";
  set.shown.add_options()("help", "this text")  //
      ("format", po::value<std::string>()->value_name("FORMAT")->default_value("text"),
       "text, json, junit (XML for CI), github (Markdown for a step summary) or html")       //
      ("ledger", po::value<std::string>()->value_name("FILE"), "signatures that are known")  //
      ("output", po::value<std::string>()->value_name("FILE"), "where it goes");
  return set;
}

Result<Format> format_of(const po::variables_map& values) {
  const std::string& named = values["format"].as<std::string>();
  for (std::size_t i = 0; i < kFormats.size(); ++i) {
    if (named == kFormats[i]) return static_cast<Format>(i);
  }
  const std::vector<std::string> legal(kFormats.begin(), kFormats.end());
  return user_error("--format: " + not_one_of(named, "a format", legal));
}

std::string written(const CampaignReport& report, Format format, const fs::path& place) {
  switch (format) {
    case Format::kText:
      return printable(report_text(report), /*lines=*/true);
    case Format::kJson:
      return report_json(report);
    case Format::kJunit:
      return report_junit(report);
    case Format::kGithub:
      return report_github(report);
    case Format::kHtml:
      return report_html(report, place);
  }
  return "";
}

// Where it goes; nothing: to stdout.
std::optional<fs::path> place_of(const po::variables_map& values, Format format, const fs::path& folder) {
  if (values.contains("output")) return values["output"].as<std::string>();
  if (format == Format::kHtml) return folder / kPageName;
  return std::nullopt;
}

}  // namespace

int run_report(const Arguments& arguments) {
  const OptionSet set = options();
  const auto parsed = parse_options(set, arguments);
  if (!parsed.ok()) return fail(parsed.error());
  if (!*parsed) return kExitClean;
  const Result<Format> format = format_of(**parsed);
  if (!format.ok()) return fail(format.error());
  const std::vector<std::string> folders = rest_of(**parsed);
  if (folders.size() != 1) {
    return fail(user_error("report: " + std::to_string(folders.size()) + " folders are named; one is right"));
  }
  Result<CampaignReport> report = fold_campaign(folders.front());
  if (!report.ok()) return fail(report.error());
  if ((**parsed).contains("ledger")) {
    const Result<Ledger> ledger = read_ledger((**parsed)["ledger"].as<std::string>());
    if (!ledger.ok()) return fail(ledger.error());
    ask_ledger(*ledger, today(), *report);
  }
  const std::optional<fs::path> place = place_of(**parsed, *format, folders.front());
  const std::string text = written(*report, *format, place.value_or(""));
  if (!place) {
    std::cout << text << std::flush;
  } else if (const Status kept = write_file(*place, text); !kept.ok()) {
    return fail(kept.error());
  } else {
    std::cerr << "report: written to " << place->string() << std::endl;
  }
  int code = has_failed(*report) ? kExitFindings : kExitClean;
  for (const std::string& problem : report->problems) code = std::max(code, fail(user_error(problem)));
  return code;
}

}  // namespace fusediff
