#include "report/issue.h"

#include "model/finding.h"
#include "report/commands.h"
#include "report/issue_parts.h"

namespace fusediff {
namespace {

std::string where(const IssueFacts& facts) {
  const Finding& f = facts.f;
  const IssueWords& w = facts.w;
  const auto side_text = [&](std::size_t s) { return as_code(f.paths[s]) + " (" + as_code(f.targets[s]) + ")"; };
  std::string text = "| | |\n|---|---|\n" + table_row({std::string(w.row_op), as_code(f.op)});
  text += table_row({std::string(w.row_path), side_text(0)});
  const bool two_ways = !f.columns[0].empty();
  const std::string against = two_ways ? fill_in(w.row_one_path, {facts.side[0], facts.side[1]}) : side_text(1);
  if (two_ways || side_text(0) != side_text(1)) text += table_row({std::string(w.row_against), against});
  if (!f.output.empty()) text += table_row({std::string(w.row_output), as_code(f.output)});
  if (f.stage) {
    const std::string stage = std::to_string(*f.stage);
    text +=
        table_row({std::string(w.row_stage),
                   f.stage_outputs.empty() ? stage : fill_in(w.stage_of, {stage, code_list(facts, f.stage_outputs)})});
  }
  if (!f.dtype.empty()) text += table_row({std::string(w.row_dtype), as_code(f.dtype)});
  const std::size_t kind = static_cast<std::size_t>(facts.bundle.smallest.experiment.kind);
  text += table_row(
      {std::string(w.row_experiment), as_code(f.experiment) + std::string(w.colon) + std::string(w.experiments[kind])});
  text += table_row({std::string(w.row_class), as_code(name_of(f.cls)) + std::string(w.colon) +
                                                   std::string(w.classes[static_cast<std::size_t>(f.cls)].meaning)});
  return text;
}

std::string how_to_run(const IssueFacts& facts) {
  const std::string slug = slug_of(facts.f);
  const IssueWords& w = facts.w;
  Sides sides = sides_of(facts.f, facts.bundle.environment);
  const OtherLibrary other = other_library(facts.f, facts.bundle.environment);
  const std::string repro = repro_command("", other, sides);
  sides.target = placeholder(sides.settings[0], "library");
  // Another path of the library that is opened otherwise is named with it.
  if (other == OtherLibrary::kMayBeNamed) {
    sides.against =
        sides.opened_twice ? sides.target + ":" + facts.f.paths[1] : placeholder(sides.settings[1], "other");
  }
  std::string text = std::string(sides.settings[0].python ? w.run_repro_file : w.run_repro) + "\n\n```sh\n" + repro +
                     "\n```\n\n" + std::string(w.run_replay) + "\n\n```sh\n" + replay_command(slug, sides) + "\n```\n";
  if (facts.bundle.replay) {
    text +=
        "\n" +
        fill_in(w.replayed, {std::to_string(facts.bundle.replay->same), std::to_string(facts.bundle.replay->runs)}) +
        "\n";
  }
  return text;
}

}  // namespace

std::optional<Language> language_named(std::string_view name) {
  if (name == "en") return Language::kEnglish;
  if (name == "zh") return Language::kChinese;
  return std::nullopt;
}

std::string issue_text(const Bundle& bundle, Language language) {
  const IssueWords& w = language == Language::kChinese ? kChineseIssue : kEnglishIssue;
  const IssueFacts facts = issue_facts(bundle, w);
  const auto section = [](std::string_view heading, const std::string& text) {
    return text.empty() ? std::string() : "\n## " + std::string(heading) + "\n\n" + text;
  };
  return "# " + issue_title(facts) + "\n\n" + where(facts) + section(w.expected, issue_expected(facts)) +
         section(w.actual, issue_actual(facts)) + section(w.evidence, issue_evidence(facts)) +
         section(w.smallest, issue_input(facts)) + section(w.run, how_to_run(facts)) +
         section(w.ruled_out, issue_ruled_out(facts)) + section(w.environment, issue_environment(facts)) +
         section(w.reading, issue_reading(facts));
}

}  // namespace fusediff
