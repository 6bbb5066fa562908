#include "run/crew_leader.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>

#include "run/crew_member.h"
#include "run/watchdog.h"

namespace fusediff {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

// Between two crews each thread keeps the memory of small tensors.
constexpr std::size_t kRetainedOfThread = std::size_t{4} << 20;
constexpr microseconds kLook(100);           // between two looks at the crew
constexpr microseconds kLookWhenLong(1000);  // when it has run for a while
constexpr int kShortLooks = 100;
constexpr int kLooksBetweenSuspensions = 3;        // of the target's own threads, and of one of the crew
constexpr std::chrono::milliseconds kGrace(1000);  // of calls in flight when one was left in the middle
constexpr double kSlowness = 8;                    // beyond what the calls take one after another

double seconds_allowed(const CrewPlan& plan, const RunLimits& limits) {
  std::uint64_t longest = 0;
  for (const std::uint64_t time : plan.nanoseconds) longest = std::max(longest, time);
  return limits.seconds + kSlowness * 1e-9 * static_cast<double>(longest) * static_cast<double>(plan.turns.size());
}

class Leader {
 public:
  Leader(const CrewPlan& plan, const Notable& notable, CrewTools& tools) : tools_(tools), board_(plan, notable) {}

  CrewOutcome lead(bool& broken) {
    void* context = nullptr;
    tools_.trap.begin();
    start_execution(execution_, kFirstFills);
    ForeignCalls calls(tools_.trap, *board_.plan.target, tools_.limits.seconds, execution_);
    if (board_.plan.context_each || calls.open(&context)) {
      start(context);
      watch();
      for (CrewMember& member : members_) member.join();
      calls.check_other_threads();
      if (!board_.plan.context_each && !board_.broken.load() && !calls.broken()) calls.close(context);
    }
    tools_.trap.end();
    if (execution_.ending != Ending::kOk) board_.outcome.context = execution_;
    broken = board_.broken.load() || calls.broken();
    return std::move(board_.outcome);
  }

 private:
  void start(void* context) {
    const std::size_t count = board_.plan.turns.size();
    while (tools_.arenas.size() < count) tools_.arenas.push_back(std::make_unique<Arena>(kRetainedOfThread));
    for (std::size_t t = 0; t < count; ++t) {
      CrewMember& member =
          members_.emplace_back(board_, t, tools_.limits, tools_.interrupt, *tools_.arenas[t], context);
      if (member.start()) continue;
      members_.pop_back();
      execution_.ending = Ending::kMemory;
      execution_.phase = Phase::kRun;
      execution_.message = "the system starts no more than " + std::to_string(t) + " threads";
      board_.stop.store(true);
      break;
    }
  }

  void watch() {
    const nanoseconds allowed(static_cast<std::int64_t>(1e9 * seconds_allowed(board_.plan, tools_.limits)));
    Clock::time_point since = Clock::now();
    std::uint64_t seen = 0;
    const SuspendOthers suspended;
    std::unique_lock lock(board_.mutex);
    for (int look = 0; board_.done < members_.size(); ++look) {
      board_.all_done.wait_for(lock, look < kShortLooks ? kLook : kLookWhenLong);
      if (board_.done == members_.size()) break;
      lock.unlock();
      tools_.trap.extend();
      const Clock::time_point now = Clock::now();
      const std::uint64_t progress = board_.progress.load(std::memory_order_relaxed);
      if (progress != seen) {
        seen = progress;
        since = now;
      }
      const bool other_fault = tools_.trap.pending() == Left::kFault;
      if (other_fault || board_.broken.load(std::memory_order_relaxed)) {
        board_.stop.store(true);
        if (other_fault || now - since > kGrace) expire_all();
      } else if (now - since > allowed) {
        if (stuck_.empty()) describe_stuck();
        expire_all();
      } else if (board_.plan.suspend && look % kLooksBetweenSuspensions == kLooksBetweenSuspensions - 1) {
        suspend_some(static_cast<std::size_t>(look / kLooksBetweenSuspensions));
      }
      lock.lock();
    }
    board_.outcome.stuck = std::move(stuck_);
  }

  void describe_stuck() {
    for (const CrewMember& member : members_) stuck_.push_back(member.where());
  }

  void expire_all() {
    board_.stop.store(true);
    for (CrewMember& member : members_) member.expire();
  }

  // A call that takes long is suspended in ever other places.
  void suspend_some(std::size_t number) {
    signal_thread(members_[number % members_.size()].thread(), tools_.interrupt);
    for (const pid_t thread : threads_now()) {
      const auto is = [&](pid_t other) { return other == thread; };
      if (std::any_of(tools_.ours.begin(), tools_.ours.end(), is)) continue;
      const bool member =
          std::any_of(members_.begin(), members_.end(), [&](const CrewMember& m) { return m.thread() == thread; });
      if (!member && thread != ::gettid()) signal_thread(thread, tools_.interrupt);
    }
  }

  CrewTools& tools_;
  CrewBoard board_;
  Execution execution_;  // of the context
  std::deque<CrewMember> members_;
  std::vector<std::string> stuck_;
};

}  // namespace

std::vector<pid_t> threads_now() {
  std::vector<pid_t> threads;
  DIR* folder = ::opendir("/proc/self/task");
  if (folder == nullptr) return threads;
  while (const dirent* entry = ::readdir(folder)) {
    if (entry->d_name[0] != '.') threads.push_back(static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10)));
  }
  ::closedir(folder);
  return threads;
}

CrewOutcome run_crew(const CrewPlan& plan, const Notable& notable, CrewTools& tools, bool& broken) {
  return Leader(plan, notable, tools).lead(broken);
}

}  // namespace fusediff
