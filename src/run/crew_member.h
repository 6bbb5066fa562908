// One thread of a crew: makes its calls in turn, and says where it is.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "run/arena.h"
#include "run/crew.h"
#include "run/foreign_calls.h"
#include "run/one_run.h"
#include "run/trap.h"
#include "target/veil.h"

namespace fusediff {

// What the members of one crew and their leader share.
struct CrewBoard {
  CrewBoard(const CrewPlan& the_plan, const Notable& the_notable) : plan(the_plan), notable(the_notable) {
    outcome.requests.resize(the_plan.requests.size());
  }

  const CrewPlan& plan;
  const Notable& notable;
  std::atomic<bool> stop{false};           // no further calls
  std::atomic<bool> broken{false};         // a call was left in the middle
  std::atomic<bool> late{false};           // calls that end now were ended by the leader
  std::atomic<std::uint64_t> progress{0};  // calls that came back
  std::mutex mutex;
  std::condition_variable all_done;
  std::size_t done = 0;  // guarded, as the outcome
  CrewOutcome outcome;
};

class CrewMember {
 public:
  // context: the shared one; nullptr: its own is opened.
  CrewMember(CrewBoard& board, std::size_t number, const RunLimits& limits, int interrupt, Arena& arena, void* context);
  CrewMember(const CrewMember&) = delete;
  CrewMember& operator=(const CrewMember&) = delete;
  // Starts the thread; false where the system has none.
  bool start();
  void join();

  pid_t thread() const { return deadline_.thread.load(std::memory_order_relaxed); }
  void expire() { trap_.expire(); }
  // "thread 3: in its call 2 of 4 (moe_permute)".
  std::string where() const;

 private:
  enum class Where { kStarting, kBetween, kInCall, kDone };
  void work();
  void make_calls(Context& context);
  bool make_call(Context& context, std::size_t request);
  void tally(std::size_t request);
  void pause_between();

  CrewBoard& board_;
  const std::size_t number_;
  const RunLimits& limits_;
  Arena& arena_;
  void* const shared_context_;
  Deadline deadline_;
  Trap trap_;
  Workbench bench_;
  Execution execution_;
  Rng rng_;
  Veil veil_;
  std::atomic<std::size_t> turn_{0};
  std::atomic<Where> where_{Where::kStarting};
  std::thread thread_;
};

}  // namespace fusediff
