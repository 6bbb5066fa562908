// fusediff minimize: the smallest case that still shows the same finding.
#include <filesystem>
#include <iostream>
#include <optional>
#include <system_error>
#include <utility>

#include "campaign/ask.h"
#include "campaign/flaky.h"
#include "cli/case_check.h"
#include "cli/interrupts.h"
#include "cli/opened_bundle.h"
#include "cli/options.h"
#include "cli/written_case.h"
#include "model/case_json.h"
#include "model/inline_bits.h"
#include "model/quote.h"
#include "report/text.h"

namespace fusediff {
namespace {

OptionSet options() {
  OptionSet set;
  set.usage = "fusediff minimize CASE|BUNDLE [options]";
  set.about =
      "Makes a case small while its finding keeps the same signature: dims, layout, attributes, dtypes, recipes, rows\n"
      "and columns, single values. The result goes to stdout or to --output; what was tried, what passes next to it "
      "and\n"
      "what turned out not to matter to stderr. Of a bundle, a folder or a .tar.gz of it, the original case is taken.\n"
      "--output is written at each step, whole: it can be ended at any time, and started again from that file. "
      "Tensors\n"
      "that are too large for a case's JSON stand in FILE.safetensors beside it.\n"
      "Exit code: 0 done, 2 the case shows no finding, or an option is wrong, 3 fusediff itself failed, 130 "
      "interrupted.";
  set.example = "  fusediff minimize corpus/moe_gating_topk/report_a.json --target planted\n";
  set.rest = "CASE";
  set.shown.add_options()("help", "this text");
  add_setup_options(set.shown, 1024);
  set.shown.add_options()                                                          //
      ("time", po::value<std::string>()->value_name("TIME")->default_value("30"),  //
       "for all of it; what is smallest then is the result")                       //
      ("output", po::value<std::string>()->value_name("FILE"), "where the case goes (stdout)");
  return set;
}

Result<Finding> finding_in(Child& child, const CaseFile& file, const std::string& name, const OpenAnswer& sides,
                           double seconds) {
  Result<Verdict> verdict = verdict_in_child(child, file, sides, seconds);
  if (!verdict.ok()) return Error{verdict.error().blame, name + ": " + verdict.error().what};
  if (!verdict->finding) {
    return user_error(name + ": nothing to minimise: the case gives " + std::string(name_of(verdict->kind)) +
                      (verdict->reason.empty() ? "" : " (" + verdict->reason + ")") + ", a finding is needed");
  }
  return *std::move(verdict->finding);
}

// The smallest case so far: written as soon as it is known, or kept to be printed.
struct Smallest {
  std::string output;     // "": stdout, at the end
  std::optional<Case> c;  // absent: still the original
  Status written;

  void take(const Case& smaller) {
    c = smaller;
    if (!output.empty() && written.ok()) written = write_case_alone(output, smaller);
  }
  // Where there is no output.
  Status print() const {
    if (!c || !output.empty()) return {};
    if (bytes_of_bits(*c) > kMostInlineBytes) {
      return user_error("the smallest case has bits of " + std::to_string(bytes_of_bits(*c)) +
                        " bytes, too many for its JSON; --output FILE writes them beside it");
    }
    std::cout << write_case(with_bits_inline(*c), 2) << std::endl;
    return {};
  }
};

// The case of a progress line, whose file is not needed afterwards.
Result<Case> case_of(const Progress& progress, const std::filesystem::path& folder) {
  const std::string& text = progress.case_text;
  Result<Case> c = parse_case(text, folder);
  std::error_code code;
  if (const std::size_t end = text.find(".safetensors#"); c.ok() && end != std::string::npos) {
    const std::size_t begin = text.rfind('"', end) + 1;
    std::filesystem::remove(folder / text.substr(begin, text.find('#', end) - begin), code);
  }
  return c;
}

Result<MinimizeAnswer> minimized(Child& child, const CaseFile& file, const Finding& finding, double time,
                                 double seconds, Smallest& smallest) {
  Request request;
  request.kind = Request::Kind::kMinimize;
  request.case_text = file.text;
  request.folder = file.folder;
  request.seconds = time;
  request.tries = tries_for(finding);
  request.progress = true;
  const Result<ScratchFolder> scratch = ScratchFolder::make();
  if (!scratch.ok()) return scratch.error();
  request.into = scratch->path();
  const auto show = [&](std::string_view line) {
    const std::optional<Progress> progress = parse_progress(line);
    if (progress && !progress->case_text.empty()) {
      const Result<Case> c = case_of(*progress, request.into);
      if (c.ok()) smallest.take(*c);
      return true;
    }
    if (progress) std::cerr << "minimize: " << progress->step << ", " << progress->checks << " checks" << std::endl;
    return progress.has_value();
  };
  const Result<Outcome> outcome = child.request(write_request(request), time + answer_seconds(seconds), show);
  if (!outcome.ok()) return outcome.error();
  if (outcome->kind == Outcome::Kind::kReply) return parse_minimize_answer(outcome->reply, request.into);
  return our_error("the process that tried smaller cases ended: " +
                   (outcome->kind == Outcome::Kind::kDied ? describe(outcome->ended) : std::string("no answer")) +
                   "; the case stays as it is");
}

void print_notes(const MinimizeAnswer& answer) {
  for (const std::string& note : answer.notes) std::cerr << "note: " << note << "\n";
  if (!answer.finished) std::cerr << "note: the time was up before all was tried; --time gives more\n";
  std::cerr << "minimised with " << answer.checks << " checks: " << headline(answer.finding) << std::endl;
}

// What an interrupted run leaves.
int end_early(const Smallest& smallest) {
  if (!smallest.c) {
    std::cerr << "interrupted: nothing smaller was found yet" << std::endl;
  } else if (smallest.output.empty()) {
    const Status printed = smallest.print();
    std::cerr << "interrupted: " << (printed.ok() ? "the smallest case so far is above" : printed.error().what)
              << std::endl;
  } else {
    std::cerr << "interrupted: the smallest case so far is in " << smallest.output
              << "; fusediff minimize goes on from it" << std::endl;
  }
  return interrupted_exit_code();
}

int minimize_file(const std::filesystem::path& case_file, const std::string& name, const Setup& setup, double time,
                  const std::string& output) {
  const Result<CaseFile> file = read_case_file(case_file);
  if (!file.ok()) return fail(file.error());
  Smallest smallest{output, {}, {}};
  ChildOptions child_wanted = child_options(setup);
  child_wanted.stop = &catch_interrupts();
  Child child(std::move(child_wanted));
  const Result<OpenAnswer> sides = open_in_child(child, setup.seconds);
  if (is_interrupted()) return end_early(smallest);
  if (!sides.ok()) return fail(sides.error());
  const Result<Finding> finding = finding_in(child, *file, name, *sides, setup.seconds);
  if (is_interrupted()) return end_early(smallest);
  if (!finding.ok()) return fail(finding.error());
  child.end();
  const Result<MinimizeAnswer> answer = minimized(child, *file, *finding, time, setup.seconds, smallest);
  if (is_interrupted()) return end_early(smallest);
  if (!smallest.written.ok()) return fail(smallest.written.error());
  if (!answer.ok()) return fail(Error{answer.error().blame, name + ": " + answer.error().what});
  smallest.take(answer->smallest);
  if (!smallest.written.ok()) return fail(smallest.written.error());
  print_notes(*answer);
  if (const Status printed = smallest.print(); !printed.ok()) return fail(printed.error());
  return kExitClean;
}

}  // namespace

int run_minimize(const Arguments& arguments) {
  const OptionSet set = options();
  const auto parsed = parse_options(set, arguments);
  if (!parsed.ok()) return fail(parsed.error());
  if (!*parsed) return kExitClean;
  const Result<Setup> setup = setup_of(**parsed);
  if (!setup.ok()) return fail(setup.error());
  const Result<double> time = seconds_of("--time", (**parsed)["time"].as<std::string>());
  if (!time.ok()) return fail(time.error());
  const std::vector<std::string> files = rest_of(**parsed);
  if (files.size() != 1)
    return fail(user_error("minimize: " + std::to_string(files.size()) + " cases are named; one is right"));
  std::string output;
  if ((*parsed)->count("output") != 0) {
    output = (**parsed)["output"].as<std::string>();
    std::error_code code;
    const std::filesystem::path folder = std::filesystem::absolute(output).parent_path();
    if (output.empty() || std::filesystem::is_directory(output, code) || !std::filesystem::is_directory(folder, code)) {
      return fail(
          user_error("--output: " + quote(output) + " cannot be written; a file in a folder that is there is right"));
    }
  }
  if (!may_be_bundle(files.front())) return minimize_file(files.front(), files.front(), *setup, *time, output);
  const Result<OpenedBundle> opened = open_bundle(files.front());
  if (!opened.ok()) return fail(opened.error());
  return minimize_file(opened->folder / "original.json", files.front(), *setup, *time, output);
}

}  // namespace fusediff
