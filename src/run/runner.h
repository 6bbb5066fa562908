// Runs one path of a target once and reports what happened. It never judges, and a fault of the target never ends the
// process when a signal, an exception or a deadline can be caught.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/call.h"
#include "model/execution.h"
#include "target/target.h"

namespace fusediff {

struct CrewPlan;
struct CrewOutcome;

struct RunLimits {
  double seconds = 10;                           // of one run, all phases together
  std::uint64_t bytes = std::uint64_t{1} << 30;  // of all tensors and the workspace of one run
};

// Which of the two sets of buffers a run uses: tensors of equal size and place get the same address modulo 4096 in
// both.
enum class Bank { kFirst, kSecond };

struct RunRequest {
  const Target* target = nullptr;
  std::string_view path;
  const Call* call = nullptr;
  std::span<const std::span<const std::byte>> inputs;  // [call->inputs]: stored elements; empty where absent
  Fills fills = kFirstFills;
  Bank bank = Bank::kFirst;
  std::string_view middle;    // a tensor that is placed in the middle, away from the guard pages, or ""
  bool keep_context = false;  // use, and leave open, one context per target and bank
  bool pinned = false;        // run on one CPU only
};

// Is this execution to be kept? Called on the crew's threads at once: it must not write what they share.
using Notable = std::function<bool(std::size_t request, const Execution& execution)>;

class Runner {
 public:
  // Installs the process's signal handlers and watchdog on first use; only one Runner may live in a process at a time.
  explicit Runner(RunLimits limits);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Runs on the calling thread, one run at a time. REQUIRES: target and call are set, inputs as large as what the call
  // stores, elements of a tensor on different memory unless their stride is 0. Fills in `execution` entirely, reusing
  // its memory. After kGuardHit, kSignal or kHang the target's own state may be broken: tainted() is true from then on,
  // and a long-lived process should end after reporting. A thread of the target that raises a signal stops there for
  // good, and the run ends with that signal. What a target does to end the process by itself (exit) is not caught.
  void run(const RunRequest& request, Execution& execution);
  // Fresh contexts, fresh threads. A hang is that no call comes back for the time of a run, and as much longer as the
  // plan's calls take on one CPU. tainted() as above.
  CrewOutcome run_together(const CrewPlan& plan, const Notable& notable);
  bool tainted() const;
  const RunLimits& limits() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fusediff
