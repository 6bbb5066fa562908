// fusediff check: runs cases and prints their verdicts.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "campaign/ask.h"
#include "cli/case_check.h"
#include "cli/options.h"
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

  Result<Checked> check(const std::filesystem::path& name) {
    Result<CaseFile> file = read_case_file(name);
    if (!file.ok()) return file.error();
    if (Status opened = open(); !opened.ok()) return opened.error();
    Result<Verdict> verdict = verdict_in_child(child_, *file, sides_, setup_.seconds);
    if (!verdict.ok()) return Error{verdict.error().blame, name.string() + ": " + verdict.error().what};
    return Checked{std::move(file->c), *std::move(verdict)};
  }

 private:
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
