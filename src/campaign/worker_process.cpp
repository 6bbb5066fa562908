#include "campaign/worker_process.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/rng.h"
#include "campaign/captured.h"
#include "campaign/found.h"
#include "model/case_json.h"

namespace fusediff {
namespace {

// Seconds after a death before anything was checked, doubled each time. Where a case ended the worker that case is
// dealt with and the next start gets further.
constexpr double kFirstPause = 0.1;
constexpr double kLongestPause = 10;
constexpr double kLongestPauseAfterCase = 1;

// libFuzzer takes 32 bits and reads 0 as "choose one".
std::uint32_t seed_of(std::uint64_t seed, int number, int start) {
  Rng rng(seed + 0x10000u * static_cast<std::uint64_t>(number) + static_cast<std::uint64_t>(start));
  return static_cast<std::uint32_t>(rng.next() >> 33) + 1;
}

}  // namespace

Result<WorkerProcess> WorkerProcess::make(const WorkerPlan& plan, int number, std::uint64_t allowed) {
  const std::filesystem::path folder = workers_folder(plan.out);
  Result<WorkerState> state = WorkerState::create(folder / (std::to_string(number) + ".state"));
  if (!state.ok()) return state.error();
  state->allow(allowed);
  return WorkerProcess(*std::move(state), number, folder);
}

WorkerProcess::WorkerProcess(WorkerState state, int number, std::filesystem::path folder)
    : state_(std::move(state)),
      number_(number),
      state_file_(folder / (std::to_string(number) + ".state")),
      log_(folder / (std::to_string(number) + ".log")) {}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : state_(std::move(other.state_)),
      number_(other.number_),
      state_file_(std::move(other.state_file_)),
      log_(std::move(other.log_)),
      process_(std::exchange(other.process_, 0)),
      starts_(other.starts_),
      quick_deaths_(other.quick_deaths_),
      died_of_case_(other.died_of_case_),
      checks_at_start_(other.checks_at_start_),
      not_before_(other.not_before_),
      last_case_(other.last_case_),
      last_case_at_(other.last_case_at_) {}

WorkerProcess::~WorkerProcess() {
  if (process_ != 0) kill_and_reap(process_);
}

std::vector<std::string> WorkerProcess::arguments(const WorkerPlan& plan) const {
  std::vector<std::string> all = {corpus_folder(plan.out).string()};
  for (const auto& corpus : plan.corpora) all.push_back(corpus.string());
  all.push_back("-seed=" + std::to_string(seed_of(plan.seed, number_, starts_)));
  all.push_back("-rss_limit_mb=" + std::to_string(plan.process_megabytes));
  all.push_back("-timeout=" + std::to_string(plan.case_seconds));
  // One worker alone knows its corpus; looking again would make two runs with one seed differ.
  all.push_back(plan.jobs > 1 ? "-reload=1" : "-reload=0");
  // The case in flight lies in the state file; libFuzzer would leave a copy wherever the campaign was started.
  all.emplace_back("-exact_artifact_path=/dev/null");
  all.push_back("-ignore_remaining_args=1");
  all.insert(all.end(), plan.target_arguments.begin(), plan.target_arguments.end());
  for (const std::string& argument : {std::string("--out"), plan.out.string(), std::string("--state"),
                                      state_file_.string(), std::string("--parent"), std::to_string(::getpid())}) {
    all.push_back(argument);
  }
  return all;
}

bool WorkerProcess::is_stuck(const WorkerPlan& plan, double now) {
  const std::uint64_t begun = state_.cases_begun();
  if (begun != last_case_ || !state_.is_running()) {
    last_case_ = begun;
    last_case_at_ = now;
  }
  return now - last_case_at_ > 1.5 * plan.case_seconds;
}

std::optional<WorkerProcess::Death> WorkerProcess::poll(const WorkerPlan& plan, double now) {
  if (process_ == 0) return std::nullopt;
  std::optional<Ended> ended = poll_end(process_);
  if (!ended && is_stuck(plan, now)) {
    kill_and_reap(process_);
    ended = Ended{SIGKILL, 0};
  }
  if (!ended) return std::nullopt;
  // What the target itself may have started goes with it.
  kill_group(process_);
  process_ = 0;
  Death death{*ended, state_.leaving(), state_.message(), state_.case_under_way()};
  const bool quick = state_.checks() == checks_at_start_;
  quick_deaths_ = quick ? quick_deaths_ + 1 : 0;
  died_of_case_ = death.culprit.has_value();
  if (death.culprit && (death.leaving == Leaving::kNotSaid || death.leaving == Leaving::kMemory)) {
    const Result<Case> c = parse_case(*death.culprit, tensors_folder(plan.out));
    state_.count_death(c.ok() ? c->op : "unknown");
  }
  return death;
}

Status WorkerProcess::start(const WorkerPlan& plan, double now) {
  if (process_ != 0 || used_up()) return {};
  if (starts_ > 0 && quick_deaths_ > 0 && not_before_ == 0) {
    const double longest = died_of_case_ ? kLongestPauseAfterCase : kLongestPause;
    not_before_ = now + std::min(longest, kFirstPause * static_cast<double>(1 << std::min(quick_deaths_, 10)));
  }
  if (now < not_before_) return {};
  not_before_ = 0;
  state_.forget_leaving();
  checks_at_start_ = state_.checks();
  last_case_at_ = now;
  SpawnRequest request;
  request.program = plan.program;
  request.arguments = arguments(plan);
  request.output_file = log_.string();
  request.truncate_output = true;
  const Result<pid_t> process = spawn(request);
  if (!process.ok()) return process.error();
  process_ = *process;
  ++starts_;
  return {};
}

}  // namespace fusediff
