#include "run/runner.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "run/crew.h"
#include "run/crew_leader.h"
#include "run/foreign_calls.h"
#include "run/one_run.h"
#include "run/trap.h"
#include "run/watchdog.h"

namespace fusediff {
namespace {

// Free memory that each of the two banks keeps: the tensors of nearly every case, and a fraction of a worker's memory.
constexpr std::size_t kRetainedBytes = std::size_t{128} << 20;

std::chrono::nanoseconds duration(double seconds) {
  constexpr double kMostSeconds = 1e9;  // three decades, and far from overflow
  const double bounded = std::isnan(seconds) ? kMostSeconds : std::clamp(seconds, 0.0, kMostSeconds);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(bounded));
}

// Keeps the calling thread on the CPU where it is, until the end of the scope.
class PinnedThread {
 public:
  explicit PinnedThread(bool wanted) {
    if (!wanted || ::sched_getaffinity(0, sizeof(before_), &before_) != 0) return;
    const int cpu = ::sched_getcpu();
    if (cpu < 0 || cpu >= CPU_SETSIZE) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(cpu), &one);
    pinned_ = ::sched_setaffinity(0, sizeof(one), &one) == 0;
  }
  ~PinnedThread() {
    if (pinned_) ::sched_setaffinity(0, sizeof(before_), &before_);
  }
  PinnedThread(const PinnedThread&) = delete;
  PinnedThread& operator=(const PinnedThread&) = delete;

 private:
  cpu_set_t before_;
  bool pinned_ = false;
};

}  // namespace

struct Runner::State {
  explicit State(RunLimits the_limits)
      : limits(the_limits),
        trap(deadline, handlers.interrupt()),
        watchdog(deadline, duration(limits.seconds), handlers.interrupt()) {}

  void run(const RunRequest& request, Execution& execution);
  Status ready(const Target& target);
  void run_on_fresh_context(ForeignCalls& calls, OneRun& one);
  void run_on_kept_context(const RunRequest& request, ForeignCalls& calls, OneRun& one);
  void close_kept();
  void close(ForeignCalls& calls, Context& context);

  RunLimits limits;
  SignalHandlers handlers;
  Deadline deadline;
  Trap trap;
  Watchdog watchdog;
  Arena banks[2] = {Arena(kRetainedBytes), Arena(kRetainedBytes)};
  Workbench bench;
  std::map<std::pair<const Target*, Bank>, Context> kept;
  CrewTools crew{limits, trap, handlers.interrupt(), {}, threads_now()};
  std::vector<const Target*> seen;
  bool tainted = false;
};

// An isolated target that has ended since is there again, outside of any run's time. Its contexts went with it.
Status Runner::State::ready(const Target& target) {
  if (target.host == nullptr || !target.host->has_ended()) return {};
  for (auto at = kept.begin(); at != kept.end();) {
    if (at->first.first != &target) {
      ++at;
      continue;
    }
    Execution ignored;
    ForeignCalls calls(trap, target, limits.seconds, ignored);
    at->second.memory.release_all(calls, nullptr);
    at = kept.erase(at);
  }
  return target.host->revive();
}

void Runner::State::close(ForeignCalls& calls, Context& context) {
  context.memory.release_all(calls, context.handle);
  if (!calls.broken()) calls.close(context.handle);
}

void Runner::State::run_on_fresh_context(ForeignCalls& calls, OneRun& one) {
  Context context;
  if (!calls.open(&context.handle)) return;
  one.execute(context);
  one.return_blocks(context);
  close(calls, context);
}

void Runner::State::run_on_kept_context(const RunRequest& request, ForeignCalls& calls, OneRun& one) {
  const auto key = std::pair(request.target, request.bank);
  auto at = kept.find(key);
  if (at == kept.end()) {
    Context context;
    if (!calls.open(&context.handle)) return;
    at = kept.emplace(key, std::move(context)).first;
  }
  one.execute(at->second);
  one.return_blocks(at->second);
  if (!calls.broken()) at->second.memory.trim(calls, at->second.handle, kRetainedBytes);
  if (calls.broken()) {  // it is left as it stands
    at->second.memory.release_all(calls, at->second.handle);
    kept.erase(at);
  }
}

void Runner::State::run(const RunRequest& request, Execution& execution) {
  start_execution(execution, request.fills);
  if (Status there = ready(*request.target); !there.ok()) {
    execution.ending = Ending::kFailed;
    execution.phase = Phase::kOpen;
    execution.message = there.error().what;
    execution.outputs.assign(request.call->outputs.size(), {});
    return;
  }
  ForeignCalls calls(trap, *request.target, limits.seconds, execution);
  OneRun one(request, limits, banks[request.bank == Bank::kFirst ? 0 : 1], bench, calls, execution);
  {
    const PinnedThread pinned(request.pinned);
    trap.begin();
    if (request.keep_context) {
      run_on_kept_context(request, calls, one);
    } else {
      run_on_fresh_context(calls, one);
    }
    calls.check_other_threads();
    trap.end();
  }
  one.inspect();
  tainted = tainted || !calls.harmless();
  if (std::find(seen.begin(), seen.end(), request.target) == seen.end()) {
    seen.push_back(request.target);
    handlers.reinstall();
  }
}

void Runner::State::close_kept() {
  for (auto& [key, context] : kept) {
    Execution ignored;
    ForeignCalls calls(trap, *key.first, limits.seconds, ignored);
    trap.begin();
    close(calls, context);
    trap.end();
  }
}

Runner::Runner(RunLimits limits) : state_(std::make_unique<State>(limits)) {}

Runner::~Runner() { state_->close_kept(); }

void Runner::run(const RunRequest& request, Execution& execution) { state_->run(request, execution); }

CrewOutcome Runner::run_together(const CrewPlan& plan, const Notable& notable) {
  if (Status there = state_->ready(*plan.target); !there.ok()) {
    CrewOutcome outcome;
    outcome.requests.resize(plan.requests.size());
    outcome.context.emplace();
    outcome.context->ending = Ending::kFailed;
    outcome.context->phase = Phase::kOpen;
    outcome.context->message = there.error().what;
    return outcome;
  }
  bool broken = false;
  CrewOutcome outcome = run_crew(plan, notable, state_->crew, broken);
  state_->tainted = state_->tainted || (broken && plan.target->host == nullptr);
  return outcome;
}

bool Runner::tainted() const { return state_->tainted; }

const RunLimits& Runner::limits() const { return state_->limits; }

}  // namespace fusediff
