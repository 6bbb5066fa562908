#include "report/campaign_json.h"

#include "report/facts.h"
#include "report/text.h"

namespace fusediff {
namespace {

using Json = nlohmann::ordered_json;

Json entry_json(const LedgerEntry& entry) {
  return {{"signature", entry.signature}, {"issue", entry.issue},   {"reason", entry.reason},
          {"expires", entry.expires},     {"target", entry.target}, {"version", entry.version}};
}

Json finding_json(const ReportedFinding& reported) {
  const Finding& f = reported.finding;
  Json json;
  json["signature"] = signature_of(f);
  json["class"] = name_of(f.cls);
  json["experiment"] = f.experiment;
  json["oracle"] = f.oracle;
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
  json["commands"] = Json::array();
  for (const auto& [label, command] : commands_of(reported))
    json["commands"].push_back({{"label", label}, {"command", command}});
  json["standing"] = name_of(reported.standing);
  json["ledger"] = reported.standing == Standing::kUnknown ? Json(nullptr) : entry_json(reported.entry);
  return json;
}

Json moment_json(const Moment& moment) {
  return {{"run", moment.run},       {"seconds", moment.seconds},   {"checks", moment.checks},
          {"corpus", moment.corpus}, {"features", moment.features}, {"findings", moment.findings}};
}

}  // namespace

Json campaign_object(const CampaignReport& report) {
  Json json;
  json["fusediff_report"] = kReportVersion;
  json["answer"] = answer_of(report);
  json["folder"] = report.folder.string();
  json["ended"] = report.ended;
  json["seconds"] = report.seconds ? Json(*report.seconds) : Json(nullptr);
  json["target_seconds"] = report.target_seconds;
  json["checks"] = report.checks;
  json["jobs"] = report.jobs;
  json["restarts"] = report.restarts;
  json["corpus"] = report.corpus;
  json["target"] = report.target;
  json["against"] = report.against;
  json["checks_by_operator"] = report.operators;
  json["experiments_by_operator"] = report.asked;
  Tally verdicts, ops, classes, standings;
  for (const auto& [op, tally] : report.operators) {
    for (const auto& [verdict, count] : tally) verdicts[verdict] += count;
  }
  json["checks_by_verdict"] = verdicts;
  for (const ReportedFinding& reported : report.findings) {
    ++ops[reported.finding.op];
    ++classes[std::string(name_of(reported.finding.cls))];
    ++standings[std::string(name_of(reported.standing))];
  }
  json["findings_by_operator"] = ops;
  json["findings_by_class"] = classes;
  json["findings_by_standing"] = standings;
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
  json["ledger"] = report.ledger.empty() ? Json(nullptr) : Json(report.ledger.string());
  json["known_without_bundle"] = report.known_without_bundle;
  json["vanished"] = Json::array();
  for (const LedgerEntry& entry : report.vanished) json["vanished"].push_back(entry_json(entry));
  json["series"] = Json::array();
  for (const Moment& moment : report.series) json["series"].push_back(moment_json(moment));
  return json;
}

std::string report_json(const CampaignReport& report) {
  return campaign_object(report).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace fusediff
