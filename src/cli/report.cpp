// fusediff report: what a campaign's folder says.
#include <algorithm>
#include <iostream>

#include "cli/options.h"
#include "report/campaign.h"

namespace fusediff {
namespace {

OptionSet options() {
  OptionSet set;
  set.usage = "fusediff report DIR [options]";
  set.about =
      "Folds the folder of a fuzz into one report: checks by verdict and operator, each finding with its meaning, the\n"
      "stage to blame, the evidence, its bundle and the command that replays it, and what proves little: skips and\n"
      "vacuous checks by reason. Exit code: 0 no finding, 1 findings, 2 the folder or a file in it is wrong.";
  set.example =
      "  fusediff fuzz --target planted --time 10 --out reports/example\n"
      "  fusediff report reports/example\n";
  set.rest = "DIR";
  set.shown.add_options()("help", "this text");
  add_format_option(set.shown);
  return set;
}

}  // namespace

int run_report(const Arguments& arguments) {
  const OptionSet set = options();
  const auto parsed = parse_options(set, arguments);
  if (!parsed.ok()) return fail(parsed.error());
  if (!*parsed) return kExitClean;
  const Result<bool> json = is_json(**parsed);
  if (!json.ok()) return fail(json.error());
  const std::vector<std::string> folders = rest_of(**parsed);
  if (folders.size() != 1) {
    return fail(user_error("report: " + std::to_string(folders.size()) + " folders are named; one is right"));
  }
  const Result<CampaignReport> report = fold_campaign(folders.front());
  if (!report.ok()) return fail(report.error());
  std::cout << (*json ? report_json(*report) : report_text(*report)) << std::flush;
  int code = report->findings.empty() && report->without_bundle.empty() ? kExitClean : kExitFindings;
  for (const std::string& problem : report->problems) code = std::max(code, fail(user_error(problem)));
  return code;
}

}  // namespace fusediff
