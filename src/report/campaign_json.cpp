#include <nlohmann/json.hpp>

#include "report/campaign.h"
#include "report/commands.h"
#include "report/text.h"

namespace fusediff {
namespace {

using Json = nlohmann::ordered_json;

Json finding_json(const ReportedFinding& reported) {
  const Finding& f = reported.finding;
  Json json;
  json["signature"] = signature_of(f);
  json["class"] = name_of(f.cls);
  json["op"] = f.op;
  json["targets"] = f.targets;
  json["paths"] = f.paths;
  json["dtype"] = f.dtype;
  json["output"] = f.output;
  json["stage"] = f.stage ? Json(*f.stage) : Json(nullptr);
  json["headline"] = headline(f);
  json["compared"] = comparison_of(f, reported.smallest);
  json["meaning"] = meaning_of(f.cls);
  json["blame"] = blame_of(f);
  json["evidence"] = evidence_of(f);
  json["influence"] = f.influence;
  json["notes"] = f.notes;
  json["seen"] = reported.seen;
  json["replay"] =
      reported.replay ? Json{{"runs", reported.replay->runs}, {"same", reported.replay->same}} : Json(nullptr);
  json["bundles"] = reported.bundles;
  json["bundle"] = reported.bundle.string();
  json["command"] = reported.command;
  return json;
}

}  // namespace

std::string report_json(const CampaignReport& report) {
  Json json;
  json["fusediff_report"] = kReportVersion;
  json["folder"] = report.folder.string();
  json["ended"] = report.ended;
  json["seconds"] = report.seconds ? Json(*report.seconds) : Json(nullptr);
  json["target_seconds"] = report.target_seconds;
  json["checks"] = report.checks;
  json["jobs"] = report.jobs;
  json["restarts"] = report.restarts;
  json["corpus"] = report.corpus;
  json["checks_by_operator"] = report.operators;
  Tally verdicts, ops, classes;
  for (const auto& [op, tally] : report.operators) {
    for (const auto& [verdict, count] : tally) verdicts[verdict] += count;
  }
  json["checks_by_verdict"] = verdicts;
  for (const ReportedFinding& reported : report.findings) {
    ++ops[reported.finding.op];
    ++classes[std::string(name_of(reported.finding.cls))];
  }
  json["findings_by_operator"] = ops;
  json["findings_by_class"] = classes;
  json["findings"] = Json::array();
  for (const ReportedFinding& reported : report.findings) json["findings"].push_back(finding_json(reported));
  json["skipped"] = report.skips;
  json["vacuous"] = report.vacuous;
  json["not_judged"] = report.not_judged;
  json["not_checked"] = report.not_checked;
  json["unasked"] = report.unasked;
  json["seconds_by_experiment"] = report.experiments;
  json["without_bundle"] = report.without_bundle;
  json["waiting"] = report.waiting;
  json["problems"] = report.problems;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace fusediff
