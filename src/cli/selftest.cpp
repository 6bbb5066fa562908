// fusediff selftest: every planted fault looked for from an empty corpus, every clean twin and near miss watched.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iostream>
#include <thread>

#include "base/files.h"
#include "campaign/selftest.h"
#include "cli/bundle_documents.h"
#include "cli/interrupts.h"
#include "cli/options.h"
#include "model/quote.h"

namespace fusediff {
namespace {

constexpr std::uint64_t kMaxJobs = 1024;

OptionSet options() {
  OptionSet set;
  set.usage = "fusediff selftest [TARGET...] [options]";
  set.about =
      "Shows what this build can find: a campaign from an empty corpus for each planted fault, until it is found,\n"
      "minimised, bundled and replayed, and one for each clean twin and near miss, in which nothing may be found.\n"
      "Exit code: 0 all as it must be, 1 not, 2 an option is wrong or nothing is built, 130 interrupted.";
  set.example =
      "  fusediff selftest --time 60 --seed 1 --seed 2        all of it, twice\n"
      "  fusediff selftest planted_report_b3 --clean-time 0   one fault without its clean twin\n";
  set.rest = "targets";
  set.shown.add_options()("help", "this text")  //
      ("time", po::value<std::string>()->value_name("TIME")->default_value("60"), "for each fault and seed, at most")(
          "clean-time", po::value<std::string>()->value_name("TIME")->default_value("5"),
          "for each clean target and seed; 0: none of them")  //
      ("seed", po::value<std::vector<std::string>>()->value_name("N"), "may be repeated (1)")(
          "jobs", po::value<std::string>()->value_name("N"), "worker processes (the number of cores)")  //
      ("out", po::value<std::string>()->value_name("FOLDER"), "where the campaigns go (reports/selftest)");
  return set;
}

struct Plan {
  std::vector<Planted> targets;
  std::vector<std::uint64_t> seeds;
  double seconds = 60;
  double clean_seconds = 5;
  FuzzOptions campaign;  // what all have in common
  std::filesystem::path out;
};

Result<std::vector<Planted>> chosen(const std::vector<std::string>& names) {
  Result<std::vector<Planted>> all = read_planted(program_folder() / "targets");
  if (!all.ok() || names.empty()) return all;
  std::vector<std::string> known;
  for (const Planted& one : *all) known.push_back(one.target);
  std::vector<Planted> some;
  for (const std::string& name : names) {
    const auto at = std::find(known.begin(), known.end(), name);
    if (at == known.end()) return user_error(not_one_of(name, "a planted target", known));
    some.push_back((*all)[static_cast<std::size_t>(at - known.begin())]);
    const auto twin = std::find(known.begin(), known.end(), name + "_clean");
    if (twin != known.end()) some.push_back((*all)[static_cast<std::size_t>(twin - known.begin())]);
  }
  return some;
}

Result<double> clean_seconds_of(const std::string& text) {
  return text == "0" ? Result<double>(0.0) : seconds_of("--clean-time", text);
}

Result<Plan> read_plan(const po::variables_map& values) {
  Plan plan;
  Result<std::vector<Planted>> targets = chosen(rest_of(values));
  if (!targets.ok()) return targets.error();
  plan.targets = *std::move(targets);
  const Result<double> seconds = seconds_of("--time", values["time"].as<std::string>());
  if (!seconds.ok()) return seconds.error();
  plan.seconds = *seconds;
  const Result<double> clean = clean_seconds_of(values["clean-time"].as<std::string>());
  if (!clean.ok()) return clean.error();
  plan.clean_seconds = *clean;
  std::vector<std::string> seeds = {"1"};
  if (values.count("seed") != 0) seeds = values["seed"].as<std::vector<std::string>>();
  for (const std::string& text : seeds) {
    const auto seed = number_of("--seed", text, 0, ~std::uint64_t{0});
    if (!seed.ok()) return seed.error();
    plan.seeds.push_back(*seed);
  }
  plan.campaign.jobs = static_cast<int>(std::clamp<std::uint64_t>(std::thread::hardware_concurrency(), 1, kMaxJobs));
  if (values.count("jobs") != 0) {
    const auto jobs = number_of("--jobs", values["jobs"].as<std::string>(), 1, kMaxJobs);
    if (!jobs.ok()) return jobs.error();
    plan.campaign.jobs = static_cast<int>(*jobs);
  }
  const Result<std::string> worker = worker_program();
  if (!worker.ok()) return worker.error();
  plan.campaign.worker_program = *worker;
  plan.out = values.count("out") != 0 ? values["out"].as<std::string>() : "reports/selftest";
  return plan;
}

// The same campaign as `fusediff fuzz --target NAME --out FOLDER` would start. What an earlier selftest left there is
// removed: a corpus is to be empty.
Result<FuzzOptions> campaign_of(const Plan& plan, const Planted& planted, std::uint64_t seed) {
  FuzzOptions campaign = plan.campaign;
  campaign.setup.target = planted.target;
  campaign.setup.memory = std::uint64_t{64} << 20;
  campaign.setup.folders = target_folders();
  campaign.target_arguments = arguments_of(campaign.setup);
  campaign.child = child_options(campaign.setup);
  campaign.out = plan.out / (planted.target + "-" + std::to_string(seed));
  std::error_code code;
  if (std::filesystem::exists(campaign.out / "findings", code)) std::filesystem::remove_all(campaign.out, code);
  if (code) return user_error("--out: " + campaign.out.string() + ": " + code.message());
  campaign.child.output_file = (campaign.out / "workers" / "child.log").string();
  campaign.documents = [](const Bundle& bundle) { return bundle_documents(bundle, Language::kEnglish); };
  return campaign;
}

void print_row(const SelftestRow& row) {
  char figures[64];
  std::snprintf(figures, sizeof figures, "%5llu %8.1f %9llu", static_cast<unsigned long long>(row.seed), row.seconds,
                static_cast<unsigned long long>(row.checks));
  std::string name = row.target;
  name.resize(std::max<std::size_t>(name.size(), 36), ' ');
  std::cout << (row.good ? "ok    " : "FAIL  ") << name << figures << "  "
            << (row.smallest.empty() ? "" : row.smallest + "  ") << "[" << row.expected << "]\n";
  for (const std::string& what : row.missing)
    std::cout << "      " << (row.expected == "nothing" ? "found, and must not be: " : "not found: ") << what << "\n";
  std::cout << std::flush;
}

int run(const Plan& plan, const std::atomic<bool>& interrupted) {
  int good = 0, all = 0;
  std::cout << "      target                               seed  seconds    checks  minimised  [what must be found]\n";
  for (const Planted& planted : plan.targets) {
    const bool is_clean = planted.expected.empty();
    if (is_clean && plan.clean_seconds == 0) continue;
    for (const std::uint64_t seed : plan.seeds) {
      const Result<FuzzOptions> campaign = campaign_of(plan, planted, seed);
      if (!campaign.ok()) return fail(campaign.error());
      const Result<SelftestRow> row =
          prove(planted, *campaign, seed, is_clean ? plan.clean_seconds : plan.seconds, interrupted);
      if (!row.ok()) return fail(row.error());
      if (interrupted.load()) return interrupted_exit_code();
      print_row(*row);
      ++all;
      good += row->good ? 1 : 0;
    }
  }
  std::cout << good << " of " << all << " as it must be; the campaigns are in " << plan.out.string() << "\n";
  return good == all ? kExitClean : kExitFindings;
}

}  // namespace

int run_selftest(const Arguments& arguments) {
  const OptionSet set = options();
  const auto parsed = parse_options(set, arguments);
  if (!parsed.ok()) return fail(parsed.error());
  if (!*parsed) return kExitClean;
  const Result<Plan> plan = read_plan(**parsed);
  if (!plan.ok()) return fail(plan.error());
  return run(*plan, catch_interrupts());
}

}  // namespace fusediff
