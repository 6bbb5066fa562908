// fusediff fuzz: a campaign, what it shows while it runs, and its summary.
#include <csignal>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <thread>

#include <sys/ioctl.h>
#include <unistd.h>

#include "campaign/supervisor.h"
#include "cli/bundle_documents.h"
#include "cli/interrupts.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "model/ledger.h"
#include "model/quote.h"
#include "report/known.h"
#include "report/text.h"

namespace fusediff {
namespace {

constexpr int kMaxJobs = 1024;
constexpr double kQuietLineEvery = 10;  // seconds, where stderr is no terminal

OptionSet options() {
  OptionSet set;
  set.usage = "fusediff fuzz [options]";
  set.about =
      "Makes cases, runs each on both sides, and keeps what goes wrong: one bundle for each kind of finding, "
      "minimised,\n"
      "below --out. Goes on where an earlier fuzz into the same folder ended. Stops after --time, after --runs, or on\n"
      "Ctrl-C. Exit code: 0 nothing found, 1 findings, 2 an option or the disk is wrong, 3 fusediff itself failed, "
      "130\n"
      "interrupted.";
  set.example =
      "  fusediff fuzz --target planted --time 20                       the faults that are there to be found\n"
      "  fusediff fuzz --target ./my_ops.so --time 1h                    a library of yours\n";
  set.shown.add_options()("help", "this text");
  add_setup_options(set.shown, 64);
  add_experiment_option(set.shown);
  set.shown.add_options()                                                                                       //
      ("time", po::value<std::string>()->value_name("TIME"), "stop after 90, 90s, 15m or 8h")                   //
      ("runs", po::value<std::string>()->value_name("N"), "stop after so many checks of all workers together")  //
      ("seed", po::value<std::string>()->value_name("N")->default_value("1"),
       "of all choices; with --jobs 1 the same seed makes the same cases")                           //
      ("jobs", po::value<std::string>()->value_name("N"), "worker processes (the number of cores)")  //
      ("corpus", po::value<std::vector<std::string>>()->value_name("FOLDER"),
       "cases to start from; may be repeated; never written to")                                           //
      ("out", po::value<std::string>()->value_name("FOLDER"), "where all of it goes (reports/DATE-TIME)")  //
      ("ledger", po::value<std::string>()->value_name("FILE"), "signatures that are known: they do not fail the run");
  set.shown.add_options()("lang", po::value<std::string>()->value_name("LANG")->default_value("en"),
                          "of the bundles' ISSUE.md: en or zh");
  add_format_option(set.shown);
  return set;
}

std::string dated_folder() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  ::localtime_r(&now, &local);
  char text[64];
  std::strftime(text, sizeof text, "reports/%Y-%m-%d-%H%M%S", &local);
  return text;
}

Status read_limits(const po::variables_map& values, FuzzOptions& fuzz) {
  if (values.count("time") != 0) {
    const Result<double> time = seconds_of("--time", values["time"].as<std::string>());
    if (!time.ok()) return time.error();
    fuzz.seconds = *time;
  }
  if (values.count("runs") != 0) {
    const auto runs = number_of("--runs", values["runs"].as<std::string>(), 1, std::uint64_t{1} << 62);
    if (!runs.ok()) return runs.error();
    fuzz.runs = *runs;
  }
  const auto seed = number_of("--seed", values["seed"].as<std::string>(), 0, ~std::uint64_t{0});
  if (!seed.ok()) return seed.error();
  fuzz.seed = *seed;
  fuzz.jobs = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 1u * kMaxJobs));
  if (values.count("jobs") != 0) {
    const auto jobs = number_of("--jobs", values["jobs"].as<std::string>(), 1, kMaxJobs);
    if (!jobs.ok()) return jobs.error();
    fuzz.jobs = static_cast<int>(*jobs);
  }
  return {};
}

Status read_folders(const po::variables_map& values, FuzzOptions& fuzz) {
  fuzz.out = values.count("out") != 0 ? values["out"].as<std::string>() : dated_folder();
  if (fuzz.out.empty()) return user_error("--out: is empty; a folder is right");
  if (values.count("corpus") != 0) {
    for (const std::string& folder : values["corpus"].as<std::vector<std::string>>()) {
      std::error_code code;
      if (!std::filesystem::is_directory(folder, code)) {
        return user_error("--corpus: " + folder + ": is no folder; a folder of case files is right");
      }
      fuzz.corpora.push_back(folder);
    }
  }
  const Result<std::string> worker = worker_program();
  if (!worker.ok()) return worker.error();
  fuzz.worker_program = *worker;
  return {};
}

Result<FuzzOptions> read_options(const po::variables_map& values) {
  FuzzOptions fuzz;
  const Result<Setup> setup = setup_of(values);
  if (!setup.ok()) return setup.error();
  fuzz.setup = *setup;
  fuzz.target_arguments = arguments_of(*setup);
  for (const ExperimentKind kind : setup->experiments)
    fuzz.target_arguments.push_back("--experiment=" + std::string(name_of(kind)));
  fuzz.child = child_options(*setup);
  if (Status read = read_limits(values, fuzz); !read.ok()) return read.error();
  if (Status read = read_folders(values, fuzz); !read.ok()) return read.error();
  const std::string named = values["lang"].as<std::string>();
  const std::optional<Language> language = language_named(named);
  if (!language) {
    const std::vector<std::string> languages = {"en", "zh"};
    return user_error("--lang: " + not_one_of(named, "a language of ISSUE.md", languages));
  }
  fuzz.documents = [language = *language](const Bundle& bundle) { return bundle_documents(bundle, language); };
  fuzz.child.output_file = (fuzz.out / "workers" / "child.log").string();
  return fuzz;
}

// Keeps one line at the foot of a terminal, or prints one now and then elsewhere. All on stderr.
class Screen {
 public:
  Screen() : terminal_(::isatty(STDERR_FILENO) == 1) {}

  void status(const FuzzStatus& status) {
    const double passed = status.seconds - rate_seconds_;
    if (passed >= 1) {
      rate_ = static_cast<double>(status.counts.checks - rate_checks_) / passed;
      rate_seconds_ = status.seconds;
      rate_checks_ = status.counts.checks;
    }
    line_ = progress_line(status, rate_);
    if (terminal_) {
      draw();
    } else if (status.seconds >= next_line_) {
      next_line_ = status.seconds + kQuietLineEvery;
      if (status.seconds > 1) std::cerr << line_ << std::endl;
    }
  }
  // A line that stays.
  void say(const std::string& text) {
    if (terminal_) std::cerr << "\r\x1b[K";
    std::cerr << text << std::endl;
    if (terminal_) draw();
  }
  void end() {
    if (terminal_ && !line_.empty()) std::cerr << std::endl;
  }

 private:
  void draw() const {
    winsize size = {};
    const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    std::cerr << "\r\x1b[K" << line_.substr(0, known ? size.ws_col - 1u : 79) << std::flush;
  }

  bool terminal_;
  std::string line_;
  double next_line_ = 0;
  double rate_ = 0;
  double rate_seconds_ = 0;
  std::uint64_t rate_checks_ = 0;
};

Result<std::optional<Ledger>> ledger_of(const po::variables_map& values) {
  if (!values.contains("ledger")) return std::optional<Ledger>();
  Result<Ledger> ledger = read_ledger(values["ledger"].as<std::string>());
  if (!ledger.ok()) return ledger.error();
  return std::optional<Ledger>(*std::move(ledger));
}

// What this run showed, beside the ledger.
Result<CampaignReport> known_of(const FuzzResult& result, const std::filesystem::path& out, const Ledger& ledger) {
  Result<CampaignReport> report = fold_campaign(out);
  if (!report.ok()) return report;
  std::vector<std::filesystem::path> bundled;
  for (const News& news : result.news) bundled.push_back(news.bundle);
  keep_what_was_seen(*report, bundled);
  ask_ledger(ledger, today(), *report);
  return report;
}

std::string with_ledger(const std::string& summary, const CampaignReport& report) {
  using Json = nlohmann::ordered_json;
  Json json = Json::parse(summary, nullptr, false);
  json["ledger"] = Json::parse(ledger_json(report), nullptr, false);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

int exit_code_of(const FuzzResult& result, const CampaignReport* report) {
  if (result.interrupted) return interrupted_exit_code();
  const bool failed = report == nullptr ? !result.status.classes.empty() : has_failed(*report);
  return failed ? kExitFindings : kExitClean;
}

}  // namespace

int run_fuzz(const Arguments& arguments) {
  const OptionSet set = options();
  const auto parsed = parse_options(set, arguments);
  if (!parsed.ok()) return fail(parsed.error());
  if (!*parsed) return kExitClean;
  const Result<bool> json = is_json(**parsed);
  if (!json.ok()) return fail(json.error());
  const Result<FuzzOptions> fuzz_options = read_options(**parsed);
  if (!fuzz_options.ok()) return fail(fuzz_options.error());

  const Result<std::optional<Ledger>> ledger = ledger_of(**parsed);
  if (!ledger.ok()) return fail(ledger.error());

  // The first Ctrl-C ends the campaign in order, the second one the program.
  const std::atomic<bool>& interrupted = catch_interrupts();
  ::signal(SIGPIPE, SIG_IGN);
  Screen screen;
  FuzzHooks hooks;
  hooks.status = [&](const FuzzStatus& status) { screen.status(status); };
  hooks.finding = [&](const News& news) { screen.say("found: " + headline(news.finding)); };
  hooks.note = [&](const std::string& text) { screen.say(text); };
  const Result<FuzzResult> result = fuzz(*fuzz_options, interrupted, hooks);
  screen.end();
  if (!result.ok()) return fail(result.error());
  std::string summary = *json ? summary_json(*result, fuzz_options->out) : summary_text(*result, fuzz_options->out);
  std::optional<CampaignReport> beside;
  if (*ledger) {
    Result<CampaignReport> report = known_of(*result, fuzz_options->out, **ledger);
    if (!report.ok()) return fail(report.error());
    beside = *std::move(report);
    summary = *json ? with_ledger(summary, *beside) : summary + ledger_text(*beside);
  }
  std::cout << summary << std::flush;
  if (!result->interrupted && compared_nothing(result->status)) {
    return fail(
        user_error("--target " + fuzz_options->setup.target +
                   ": nothing was compared: checks were skipped, would not open, proved nothing, or no record has what "
                   "--experiment asks; see the reasons above"));
  }
  return exit_code_of(*result, beside ? &*beside : nullptr);
}

}  // namespace fusediff
