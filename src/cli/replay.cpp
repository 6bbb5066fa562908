// fusediff replay: does a bundle still show its finding?
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "campaign/ask.h"
#include "cli/case_check.h"
#include "cli/interrupts.h"
#include "cli/opened_bundle.h"
#include "cli/options.h"
#include "engine/bundle.h"
#include "model/case_json.h"
#include "model/finding_json.h"
#include "model/quote.h"
#include "report/libraries.h"
#include "report/settings.h"
#include "report/text.h"

namespace fusediff {
namespace {

constexpr int kReplayVersion = 1;
constexpr double kPatience = 60;  // seconds after which no further run of a bundle is begun
constexpr std::uint64_t kMaxRuns = 1000000;

OptionSet options() {
  OptionSet set;
  set.usage = "fusediff replay BUNDLE... [options]";
  set.about =
      "Runs the case of each bundle, a folder or a .tar.gz of it, again, each time in a fresh process, and says "
      "whether\n"
      "the same finding shows.\n"
      "The sides are those that the bundle was made with, looked up by name in the folders of targets; nothing that a\n"
      "bundle names by a path is opened. Exit code: 0 no finding shows any more, 1 one does, 2 a bundle or an option "
      "is\n"
      "wrong, 3 fusediff itself failed.";
  set.example =
      "  fusediff fuzz --target planted --op moe_gating_topk --time 10 --out reports/example\n"
      "  fusediff replay reports/example/findings/*\n";
  set.rest = "BUNDLE";
  set.shown.add_options()("help", "this text");
  add_setup_options(set.shown, 1024);
  set.shown.add_options()("runs", po::value<std::string>()->value_name("N")->default_value("10"),
                          "how often each case is run; no further run is begun after a minute");
  add_format_option(set.shown);
  return set;
}

// What the runs of one bundle came to.
struct Replayed {
  CaseFile file;
  std::string signature;  // the bundle's
  Replay replay;
  Verdict
      verdict;  // of the last run that showed the signature, else of the last run that found anything, else the last
};

// "NAME:PATH" of one side of a finding. A name that is no bare name is refused: it could lead anywhere.
Result<std::string> side_named(const std::filesystem::path& bundle, const Finding& finding, Side side) {
  const std::string& target = finding.targets[index_of(side)];
  const std::string& path = finding.paths[index_of(side)];
  const auto bare = [](const std::string& name) {
    return !name.empty() && name.find_first_of("/:") == std::string::npos && name.front() != '.';
  };
  if (!bare(target) || !bare(path)) {
    return user_error((bundle / "finding.json").string() + ": " + quote(target + ":" + path) +
                      " names no target; a bare name and its path are right, or --target and --against");
  }
  return target + ":" + path;
}

// Is there anything in how this side was opened that is not in how it is opened now?
bool lacks(const SideSettings& used, const SideSettings& found) {
  const bool has_all = std::all_of(found.variables.begin(), found.variables.end(), [&](const std::string& line) {
    return std::find(used.variables.begin(), used.variables.end(), line) != used.variables.end();
  });
  return (!found.options.empty() && used.options != found.options) || !has_all ||
         (found.needs_isolate() && !used.isolated);
}

// One line where the setup lacks what the bundle was found with: a bundle sets nothing by itself.
void say_what_lacks(const std::filesystem::path& path, const Bundle& bundle, const Setup& setup, bool one_library) {
  const Settings found = settings_of(bundle.environment);
  Settings used;
  for (const Side side : kSides) {
    LoadOptions how = load_options(setup, side);
    used[index_of(side)] = {how.options, how.isolate || !how.environment.empty(), how.environment,
                            found[index_of(side)].python};
  }
  // The target's own other path, or what comes with fusediff.
  if (setup.against.empty()) used[1] = one_library ? used[0] : found[1];
  if (!lacks(used[0], found[0]) && !lacks(used[1], found[1])) return;
  const bool both = !one_library || found[0] != found[1];
  const std::string words = setting_words(used, both);
  std::cerr << "fusediff: " << path.string() << ": is run with " << (words.empty() ? "no option" : words.substr(1))
            << ", but was found with these, which show it again:" << setting_words(found, both) << std::endl;
}

class Replayer {
 public:
  Replayer(const po::variables_map& values, Setup setup, int runs)
      : given_target_(values.count("target") != 0),
        given_against_(values.count("against") != 0),
        opens_against_(values.count("against-option") != 0 || values.count("against-env") != 0),
        setup_(std::move(setup)),
        runs_(runs),
        stop_(catch_interrupts()) {}

  Result<Replayed> replay(const std::filesystem::path& path) const {
    const Result<OpenedBundle> opened = open_bundle(path);
    if (!opened.ok()) return opened.error();
    const Result<Bundle> bundle = read_bundle(opened->folder);
    if (!bundle.ok()) return bundle.error();
    const Result<Setup> setup = setup_for(path, *bundle);
    if (!setup.ok()) return setup.error();
    Result<CaseFile> file = read_case_file(opened->folder / "case.json");
    if (!file.ok()) return file.error();
    Result<Replayed> replayed = run(*setup, *std::move(file), signature_of(bundle->finding));
    if (!replayed.ok()) return Error{replayed.error().blame, path.string() + ": " + replayed.error().what};
    return replayed;
  }

 private:
  Result<Setup> setup_for(const std::filesystem::path& path, const Bundle& bundle) const {
    const Finding& finding = bundle.finding;
    const bool two_libraries = are_two_libraries(finding, bundle.environment);
    const bool opened_twice = is_opened_twice(finding, bundle.environment);
    const bool one_name = finding.targets[0] == finding.targets[1];
    if (!given_against_ && (given_target_ || one_name) && needs_other_library(finding, bundle.environment)) {
      const auto words = library_words(finding, bundle.environment);
      return user_error(path.string() + ": compares two libraries, " + quote(words[0]) + " and " + quote(words[1]) +
                        "; --against names the other" + (given_target_ ? "" : ", --target the first"));
    }
    Setup setup = setup_;
    // Seen of one path alone: what it is compared with is the target's default.
    const bool one_path = one_name && finding.paths[0] == finding.paths[1] && !opened_twice;
    for (const Side side : kSides) {
      const bool given = side == Side::kTarget ? given_target_ : given_against_;
      // Another --target is compared with its own other path, as everywhere, unless the bundle has another library.
      if (given || (side == Side::kAgainst && !two_libraries && (given_target_ || one_path))) continue;
      const Result<std::string> name = side_named(path, finding, side);
      if (!name.ok()) return name.error();
      (side == Side::kTarget ? setup.target : setup.against) = *name;
    }
    // Another path of the same library is opened as the target is, as where a campaign names none.
    const bool one_library = one_name && !two_libraries && !opened_twice;
    if (one_library && !given_against_ && !opens_against_) {
      setup.against_option = setup.target_option;
      setup.against_environment = setup.target_environment;
    }
    say_what_lacks(path, bundle, setup, one_library);
    return setup;
  }

  Result<Replayed> run(const Setup& setup, CaseFile file, std::string signature) const {
    using Clock = std::chrono::steady_clock;
    ChildOptions options = child_options(setup);
    options.stop = &stop_;
    Child child(std::move(options));
    const Result<OpenAnswer> sides = open_in_child(child, setup.seconds);
    if (!sides.ok()) return sides.error();
    Replayed replayed{std::move(file), std::move(signature), {}, {}};
    const auto until = Clock::now() + std::chrono::duration<double>(kPatience);
    do {
      if (replayed.replay.runs > 0) child.end();
      Result<Verdict> verdict = verdict_in_child(child, replayed.file, *sides, setup.seconds);
      if (!verdict.ok()) return verdict.error();
      ++replayed.replay.runs;
      const bool same = verdict->finding && signature_of(*verdict->finding) == replayed.signature;
      if (same) ++replayed.replay.same;
      if (same || (replayed.replay.same == 0 && (verdict->finding || !replayed.verdict.finding))) {
        replayed.verdict = *std::move(verdict);
      }
    } while (replayed.replay.runs < runs_ && Clock::now() < until);
    return replayed;
  }

  bool given_target_;
  bool given_against_;
  bool opens_against_;  // the command line says how
  Setup setup_;
  int runs_;
  const std::atomic<bool>& stop_;
};

// A case that could not be run says nothing about the bug.
bool was_judged(const Verdict& verdict) {
  return verdict.kind != Verdict::Kind::kSkip && verdict.kind != Verdict::Kind::kHarnessError;
}

// One line: does it still show?
std::string conclusion(const Replayed& replayed) {
  const Replay& replay = replayed.replay;
  const std::string times = std::to_string(replay.same) + " of " + std::to_string(replay.runs);
  if (replay.same > 0) return "the finding shows again, " + times;
  if (replayed.verdict.finding) return "the finding does not show again, " + times + "; another one does";
  if (replayed.verdict.kind == Verdict::Kind::kPass) return "the finding does not show again, " + times;
  return "the finding does not show again, " + times +
         ", but the case was not judged in full: " + std::string(name_of(replayed.verdict.kind));
}

void print(const std::string& bundle, const Replayed& replayed, bool json) {
  if (!json) {
    std::cout << bundle << ": " << conclusion(replayed) << "\n"
              << describe(replayed.verdict, replayed.file.c) << std::flush;
    return;
  }
  nlohmann::ordered_json line = {{"fusediff_replay", kReplayVersion},
                                 {"bundle", bundle},
                                 {"signature", replayed.signature},
                                 {"runs", replayed.replay.runs},
                                 {"same", replayed.replay.same}};
  line["verdict"] = nlohmann::ordered_json::parse(write_verdict(replayed.verdict), nullptr, false);
  std::cout << line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << std::endl;
}

}  // namespace

int run_replay(const Arguments& arguments) {
  const OptionSet set = options();
  const auto parsed = parse_options(set, arguments);
  if (!parsed.ok()) return fail(parsed.error());
  if (!*parsed) return kExitClean;
  const Result<Setup> setup = setup_of(**parsed);
  if (!setup.ok()) return fail(setup.error());
  const Result<bool> json = is_json(**parsed);
  if (!json.ok()) return fail(json.error());
  const auto runs = number_of("--runs", (**parsed)["runs"].as<std::string>(), 1, kMaxRuns);
  if (!runs.ok()) return fail(runs.error());
  const std::vector<std::string> bundles = rest_of(**parsed);
  if (bundles.empty()) return fail(user_error("replay: no bundle is named; fusediff replay BUNDLE... is right"));

  const Replayer replayer(**parsed, *setup, static_cast<int>(*runs));
  int code = kExitClean;
  for (const std::string& bundle : bundles) {
    const Result<Replayed> replayed = replayer.replay(bundle);
    if (is_interrupted()) return interrupted_exit_code();
    if (replayed.ok() && (*json || was_judged(replayed->verdict))) print(bundle, *replayed, *json);
    if (!replayed.ok()) {
      code = std::max(code, fail(replayed.error()));
    } else if (was_judged(replayed->verdict)) {
      code = std::max(code, exit_code_of(replayed->verdict));
    } else {
      code = std::max(code, fail(user_error(bundle + ": could not be judged here: " + replayed->verdict.reason +
                                            "; name the library that it is about with --target")));
    }
  }
  return code;
}

}  // namespace fusediff
