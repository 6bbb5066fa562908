// One worker of a campaign: starts it, sees it end, starts it again. Decides when, not what a death means.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/spawn.h"
#include "campaign/worker_state.h"

namespace fusediff {

struct WorkerPlan {
  std::string program;
  std::filesystem::path out;
  std::vector<std::filesystem::path> corpora;  // read, beside the campaign's own
  std::vector<std::string> target_arguments;   // what the worker opens, as its command line spells it
  std::uint64_t seed = 1;
  int jobs = 1;
  int process_megabytes = 0;  // its cap on resident memory
  int case_seconds = 0;       // beyond which libFuzzer ends the worker: its own watchdog has failed
};

class WorkerProcess {
 public:
  // Makes a new state file. allowed: checks over all restarts, 0: any number.
  static Result<WorkerProcess> make(const WorkerPlan& plan, int number, std::uint64_t allowed);
  WorkerProcess(WorkerProcess&& other) noexcept;
  WorkerProcess& operator=(WorkerProcess&&) = delete;
  ~WorkerProcess();  // kills

  // What is new since the last call: how it ended, if it did. A worker that ended is started again by start().
  struct Death {
    Ended ended;
    Leaving leaving = Leaving::kNotSaid;
    std::string message;
    std::optional<std::string> culprit;  // the case that was in the target
  };
  // One that is in the same case for half as long again as libFuzzer should allow is killed here: libFuzzer's alarm can
  // be lost in a target that blocks signals.
  std::optional<Death> poll(const WorkerPlan& plan, double now);
  // Starts it if it does not run, is not used up, and its pause after a quick death is over.
  Status start(const WorkerPlan& plan, double now);
  void ask_to_stop() { state_.ask_to_stop(); }
  bool runs() const { return process_ != 0; }
  // The case that a running worker is at.
  std::optional<std::string> case_under_way() const { return runs() ? state_.case_under_way() : std::nullopt; }
  bool used_up() const { return state_.stop_wanted(); }
  int restarts() const { return starts_ > 1 ? starts_ - 1 : 0; }
  int quick_deaths() const { return quick_deaths_; }  // in a row, without a check in between
  Counts counts() const { return state_.counts(); }
  std::filesystem::path log() const { return log_; }

 private:
  WorkerProcess(WorkerState state, int number, std::filesystem::path folder);
  std::vector<std::string> arguments(const WorkerPlan& plan) const;
  bool is_stuck(const WorkerPlan& plan, double now);

  WorkerState state_;
  int number_;
  std::filesystem::path state_file_;
  std::filesystem::path log_;
  pid_t process_ = 0;
  int starts_ = 0;
  int quick_deaths_ = 0;
  bool died_of_case_ = false;
  std::uint64_t checks_at_start_ = 0;
  double not_before_ = 0;
  std::uint64_t last_case_ = 0;  // cases_begun() when it last changed, and when that was
  double last_case_at_ = 0;
};

}  // namespace fusediff
