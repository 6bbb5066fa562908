// A campaign as the tests of its forms need it: two operators, three findings, one of them known, and text that is out
// to break the form that it is put into.
#pragma once

#include "report/campaign.h"

namespace fusediff {

inline constexpr const char* kHostile = "</script><script>alert(1)</script> \"'`|]]>&\x01\xff\n# **x**";

inline ReportedFinding sample_finding(const std::string& op, FindingClass cls, const std::string& what) {
  ReportedFinding reported;
  Finding& f = reported.finding;
  f.experiment = "pair";
  f.oracle = "bits";
  f.op = op;
  f.targets = {"mine", "builtin"};
  f.paths = {"fused", "unfused"};
  f.dtype = "f32";
  f.output = "y";
  f.cls = cls;
  f.stage = 2;
  f.stage_outputs = {"y"};
  f.evidence = {{cls, "bits", "y", 2, Side::kTarget, what, ""}};
  f.notes = {what};
  reported.smallest.op = op;
  reported.smallest.dims = {{"N", 4}};
  reported.replay = Replay{10, 9};
  reported.bundle = "out/findings/" + op;
  reported.seen = 34;
  reported.command = "fusediff replay out/findings/" + op;
  reported.minimize = "fusediff minimize out/findings/" + op + "/original.json";
  reported.files = {"case.json", "finding.json"};
  reported.environment = "{}\n";
  return reported;
}

inline CampaignReport sample_report() {
  CampaignReport report;
  report.folder = "out";
  report.seconds = 12.5;
  report.ended = true;
  report.checks = 100;
  report.jobs = 2;
  report.operators = {{"add", {{"pass", 60}}}, {"mul", {{"finding", 30}, {"pass", 5}}}, {"sub", {{"skip", 5}}}};
  report.asked = {{"add", {{"pair", {{"checks", 50}, {"pass", 50}}}, {"repeat", {{"checks", 10}}}}},
                  {"mul", {{"pair", {{"checks", 30}, {"pass", 5}}}, {"threads", {{"checks", 5}, {"pass", 5}}}}}};
  report.skips = {{"sub: not here", 5}};
  report.unasked = {{"add: gradient: say of what it is the gradient", 1}};
  report.findings = {sample_finding("mul", FindingClass::kHang, "it does not end"),
                     sample_finding("mul", FindingClass::kDamage, "y differs"),
                     sample_finding("add", FindingClass::kRounding, kHostile)};
  report.ledger = "ledger.json";
  report.findings[1].standing = Standing::kKnown;
  report.findings[1].entry = {"SIGNATURE", "https://example.org/7", "being mended", "2027-01-31", "", ""};
  report.vanished = {{"gone", "https://example.org/8", "", "", "", ""}};
  report.without_bundle = {{"flip/mul-flip-1", 3}};
  report.problems = {"half/case.json: is cut off"};
  report.series = {{1, 1, 10, 3, 4, {}}, {1, 3, 30, 5, 9, {{"hang", 1}}}};
  return report;
}

}  // namespace fusediff
