#include "report/junit.h"

#include <cstdio>
#include <pugixml.hpp>
#include <set>
#include <sstream>
#include <string_view>

#include "report/facts.h"
#include "report/text.h"

namespace fusediff {
namespace {

constexpr const char* kFolderSuite = "the campaign";

// A testsuite whose counts are written when it is whole.
class Suite {
 public:
  Suite(pugi::xml_node parent, const std::string& name) : node_(parent.append_child("testsuite")), name_(name) {
    set(node_, "name", name);
    for (const char* count : {"tests", "failures", "errors", "skipped"}) node_.append_attribute(count) = 0;
  }

  void passed(const std::string& name, const std::string& output) {
    const std::string text = clean_text(output);
    testcase(name).append_child("system-out").text() = text.c_str();
  }
  void failed(const std::string& name, const std::string& type, const std::string& message, const std::string& text) {
    ended(name, "failure", "failures", type, message, text);
  }
  void broken(const std::string& name, const std::string& message) {
    ended(name, "error", "errors", "damaged", message, message);
  }
  void skipped(const std::string& name, const std::string& message) {
    set(testcase(name).append_child("skipped"), "message", message);
    add_one(node_, "skipped");
  }

 private:
  static void set(pugi::xml_node node, const char* key, const std::string& value) {
    node.append_attribute(key) = clean_text(value).c_str();
  }
  void add_one(pugi::xml_node suite, const char* count) {
    for (pugi::xml_node node : {suite, suite.parent()}) {
      node.attribute(count) = node.attribute(count).as_uint() + 1;
    }
  }
  pugi::xml_node testcase(const std::string& name) {
    add_one(node_, "tests");
    pugi::xml_node made = node_.append_child("testcase");
    set(made, "classname", "fusediff." + name_);
    set(made, "name", name);
    made.append_attribute("time") = "0";
    return made;
  }
  void ended(const std::string& name, const char* element, const char* count, const std::string& type,
             const std::string& message, const std::string& text) {
    pugi::xml_node made = testcase(name).append_child(element);
    set(made, "type", type);
    set(made, "message", message);
    made.text() = clean_text(text).c_str();
    add_one(node_, count);
  }

  pugi::xml_node node_;
  std::string name_;
};

std::string finding_lines(const ReportedFinding& reported) {
  const Finding& f = reported.finding;
  std::string text;
  const auto add = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) text += name + ": " + value + "\n";
  };
  add("compared", comparison_of(f, reported.smallest));
  add("meaning", meaning_of(f.cls));
  add("blame", blame_of(f));
  for (const std::string& line : evidence_of(f)) add("evidence", line);
  for (const std::string& line : f.influence) add("influence", line);
  add("conclusion", f.conclusion);
  for (const std::string& line : f.notes) add("note", line);
  add("seen", certainty_of(reported));
  add("ledger", standing_of(reported));
  add("bundle", reported.bundle.string());
  for (const auto& [label, command] : commands_of(reported)) add(label, command);
  return text;
}

void add_findings(Suite& suite, const CampaignReport& report, const std::string& op, std::set<std::string>& found) {
  for (const ReportedFinding& reported : report.findings) {
    if (reported.finding.op != op) continue;
    found.insert(reported.finding.experiment);
    const std::string name = signature_of(reported.finding);
    if (fails(reported)) {
      suite.failed(name, std::string(name_of(reported.finding.cls)), headline(reported.finding),
                   finding_lines(reported));
    } else {
      suite.skipped(name, standing_of(reported));
    }
  }
}

std::uint64_t count_in(const Tally& tally, const char* key) {
  const auto at = tally.find(key);
  return at == tally.end() ? 0 : at->second;
}

void add_experiments(Suite& suite, const CampaignReport& report, const std::string& op,
                     const std::set<std::string>& found) {
  const auto asked = report.asked.find(op);
  for (int i = 0; i < kExperimentKindCount; ++i) {
    const std::string name(name_of(static_cast<ExperimentKind>(i)));
    if (asked == report.asked.end() || found.contains(name)) continue;
    const auto tally = asked->second.find(name);
    if (tally == asked->second.end()) {
      suite.skipped(name, "never asked: the record of the operator leaves it out, or there was no time for it");
      continue;
    }
    const std::uint64_t checks = count_in(tally->second, "checks"), passes = count_in(tally->second, "pass");
    const std::string said = counted(passes, "pass", "passes") + " in " + counted(checks, "check", "checks");
    passes > 0 ? suite.passed(name, said) : suite.skipped(name, said + ": nothing was proved");
  }
  const auto verdicts = report.operators.find(op);
  if (asked == report.asked.end() && found.empty() && verdicts != report.operators.end()) {
    const std::uint64_t passes = count_in(verdicts->second, "pass");
    const std::string said =
        counted(passes, "pass", "passes") + " in " + counted(total(verdicts->second), "check", "checks");
    passes > 0 ? suite.passed("all experiments", said)
               : suite.skipped("all experiments", said + ": nothing was proved");
  }
}

// "OP: QUESTION: what to add to the record".
void add_unasked(Suite& suite, const CampaignReport& report, const std::string& op) {
  for (const auto& [sentence, count] : report.unasked) {
    if (!sentence.starts_with(op + ": ")) continue;
    const std::string rest = sentence.substr(op.size() + 2);
    suite.skipped("not asked: " + rest.substr(0, rest.find(": ")), rest);
  }
}

void add_folder(pugi::xml_node root, const CampaignReport& report) {
  if (report.without_bundle.empty() && report.problems.empty() && report.waiting == 0 && report.vanished.empty())
    return;
  Suite suite(root, kFolderSuite);
  for (const auto& [key, count] : report.without_bundle) {
    const std::string said = "seen in " + counted(count, "check", "checks") + ", without a bundle of its own";
    if (report.known_without_bundle.contains(key)) {
      suite.skipped(key, said + "; known");
    } else {
      suite.failed(key, key.substr(0, key.find('/')), said, said);
    }
  }
  if (report.waiting > 0) {
    const std::string said = counted(report.waiting, "file", "files") + " in found/: not bundled yet";
    suite.failed("found", "waiting", said, said);
  }
  for (std::size_t i = 0; i < report.problems.size(); ++i) {
    suite.broken("damaged file " + std::to_string(i + 1), report.problems[i]);
  }
  for (const LedgerEntry& entry : report.vanished) {
    suite.skipped(entry.signature, "in the ledger (" + entry.issue + ") and no longer seen");
  }
}

}  // namespace

std::string report_junit(const CampaignReport& report) {
  pugi::xml_document document;
  pugi::xml_node declaration = document.append_child(pugi::node_declaration);
  declaration.append_attribute("version") = "1.0";
  declaration.append_attribute("encoding") = "UTF-8";
  pugi::xml_node root = document.append_child("testsuites");
  root.append_attribute("name") = clean_text("fusediff " + report.folder.string()).c_str();
  for (const char* count : {"tests", "failures", "errors", "skipped"}) root.append_attribute(count) = 0;
  char seconds[64];
  std::snprintf(seconds, sizeof seconds, "%.3f", report.seconds.value_or(0));
  root.append_attribute("time") = seconds;
  std::set<std::string> operators;
  for (const auto& [op, verdicts] : report.operators) operators.insert(op);
  for (const ReportedFinding& reported : report.findings) operators.insert(reported.finding.op);
  for (const std::string& op : operators) {
    Suite suite(root, op);
    std::set<std::string> found;  // experiments that the findings are of
    add_findings(suite, report, op, found);
    add_experiments(suite, report, op, found);
    add_unasked(suite, report, op);
  }
  add_folder(root, report);
  std::ostringstream text;
  document.save(text, "  ");
  return text.str();
}

}  // namespace fusediff
