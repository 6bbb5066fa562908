// fusediff check: runs cases and prints their verdicts.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "campaign/ask.h"
#include "campaign/death.h"
#include "cli/options.h"
#include "model/case_json.h"
#include "model/finding_json.h"
#include "report/text.h"

namespace fusediff {
namespace {

OptionSet options() {
  OptionSet set;
  set.usage = "fusediff check CASE... [options]";
  set.about =
      "Runs each case file on both sides and says whether they agree, and if not, where and why. Exit code: 0 all "
      "agree,\n"
      "1 a finding, 2 a case or an option is wrong, 3 fusediff itself failed.";
  set.example = "  fusediff check corpus/moe_gating_topk/report_a.json --target planted\n";
  set.rest = "CASE";
  set.shown.add_options()("help", "this text");
  add_setup_options(set.shown, 1024);
  add_format_option(set.shown);
  return set;
}

// One case file: what was read, and what came of it.
struct Checked {
  Case c;
  Verdict verdict;
};

class Checker {
 public:
  explicit Checker(const Setup& setup) : setup_(setup), child_(child_options(setup)) {}

  Result<Checked> check(const std::filesystem::path& file) {
    const Result<std::string> text = read_file(file, kMaxCaseBytes);
    if (!text.ok()) return text.error();
    const std::filesystem::path folder = std::filesystem::absolute(file).parent_path();
    Result<Case> c = parse_case(*text, folder);
    if (!c.ok()) return at(file, c.error());
    if (Status opened = open(); !opened.ok()) return opened.error();
    Request request;
    request.case_text = *text;
    request.folder = folder;
    const Result<Outcome> outcome = child_.request(write_request(request), answer_seconds(setup_.seconds));
    if (!outcome.ok()) return outcome.error();
    Checked checked{*std::move(c), {}};
    if (outcome->kind != Outcome::Kind::kReply) {
      checked.verdict = {Verdict::Kind::kFinding, "", finding_of_death(checked.c, sides_, *outcome, setup_.seconds)};
      return checked;
    }
    Result<CheckAnswer> answer = parse_check_answer(outcome->reply);
    if (!answer.ok()) return at(file, answer.error());
    if (answer->tainted) child_.end();
    checked.verdict = std::move(answer->verdict);
    return checked;
  }

 private:
  static Error at(const std::filesystem::path& file, const Error& error) {
    return {error.blame, file.string() + ": " + error.what};
  }

  // The sides' names, once: a target that cannot be opened is no error of a case.
  Status open() {
    if (!sides_.ops.empty()) return {};
    Result<OpenAnswer> sides = open_in_child(child_, setup_.seconds);
    if (!sides.ok()) return sides.error();
    sides_ = *std::move(sides);
    return {};
  }

  const Setup& setup_;
  Child child_;
  OpenAnswer sides_;
};

void print(const std::string& file, const Checked& checked, bool json, bool several) {
  if (json) {
    nlohmann::ordered_json line = {{"case", file}};
    line["verdict"] = nlohmann::ordered_json::parse(write_verdict(checked.verdict), nullptr, false);
    std::cout << line.dump() << std::endl;
    return;
  }
  if (several) std::cout << "== " << file << "\n";
  std::cout << describe(checked.verdict, checked.c) << std::flush;
}

int exit_code_of(const Verdict& verdict) {
  if (verdict.kind == Verdict::Kind::kFinding) return kExitFindings;
  return verdict.kind == Verdict::Kind::kHarnessError ? kExitOurs : kExitClean;
}

}  // namespace

int run_check(const Arguments& arguments) {
  const OptionSet set = options();
  const auto parsed = parse_options(set, arguments);
  if (!parsed.ok()) return fail(parsed.error());
  if (!*parsed) return kExitClean;
  const Result<Setup> setup = setup_of(**parsed);
  if (!setup.ok()) return fail(setup.error());
  const Result<bool> json = is_json(**parsed);
  if (!json.ok()) return fail(json.error());
  const std::vector<std::string> files = rest_of(**parsed);
  if (files.empty()) return fail(user_error("check: no case is named; fusediff check CASE... is right"));

  Checker checker(*setup);
  int code = kExitClean;
  for (const std::string& file : files) {
    const Result<Checked> checked = checker.check(file);
    if (checked.ok()) print(file, *checked, *json, files.size() > 1);
    code = std::max(code, checked.ok() ? exit_code_of(checked->verdict) : fail(checked.error()));
  }
  return code;
}

}  // namespace fusediff
