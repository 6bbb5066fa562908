// One fuzzing process: what libFuzzer calls to make a case, to join two, and to check one. It goes on after a finding
// and leaves after one that may have broken the process. libFuzzer itself, and its command line, are in
// fuzz/worker_main.cpp.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/rng.h"
#include "campaign/setup.h"
#include "campaign/worker_state.h"
#include "case_cache.h"
#include "engine/check.h"
#include "mutate/mutate.h"
#include "schedule.h"

namespace fusediff {

struct WorkerOptions {
  Setup setup;
  std::filesystem::path out;      // of the campaign; "": alone, the first finding ends the process as a crash does
  std::filesystem::path tensors;  // where the files are that cases name; "": such cases are none
  std::string name;               // tells workers of one campaign apart
  // Of a merge: what a case reports is a function of the case alone, and nothing is written.
  bool merging = false;
};

class Worker {
 public:
  // Opens the targets. What earlier workers left in `out` is known: killers are not run again.
  static Result<std::unique_ptr<Worker>> make(WorkerOptions options, WorkerState state);

  // Checks the bytes as a case; bytes that are none are counted and nothing else.
  void check(std::string_view bytes);
  // Writes a case into data: one made from those bytes, or a new one. The result is its length, at most `capacity`.
  std::size_t mutate(char* data, std::size_t bytes, std::size_t capacity, unsigned seed);
  // Writes a case made of both into `out`; 0: there is none.
  std::size_t cross(std::string_view a, std::string_view b, char* out, std::size_t capacity, unsigned seed);

 private:
  Worker(WorkerOptions options, WorkerState state, OpenedSetup opened);

  Engine& engine();
  std::size_t position_of(std::string_view op) const;  // in opened_.ops; its size: not among them
  MutateContext mutate_context(const Operator& op, Rng& rng, std::uint64_t max_bytes) const;
  std::optional<Case> new_case(Rng& rng);
  bool change(Case& c, Rng& rng);
  void leave_where(Case& c, Rng& rng);
  std::size_t write(const Case& c, char* data, std::size_t capacity);
  void steer(Case& c, Rng& rng);
  void ask_for_truth(const Case& c, const Verdict& verdict);
  void account(const Experiment& experiment, std::chrono::steady_clock::duration time, const CheckResult& result,
               std::size_t new_features);
  void count(const Case& c, const Verdict& verdict);
  void keep(const Case& c, const Finding& finding, std::size_t json_bytes);
  [[noreturn]] void leave(Leaving why, std::string_view message, int exit_code);

  WorkerOptions options_;
  WorkerState state_;
  OpenedSetup opened_;
  std::unique_ptr<Engine> engine_;  // made late: its signal handlers must lie over libFuzzer's
  Probe probe_;
  CaseCache cache_;
  Schedule schedule_;
  std::set<std::string> asked_for_truth_;  // operators
  ByExperiment<bool> allowed_{};
  std::set<std::string> killers_;
  std::set<std::string> listed_;  // signatures that are bundled already
  // Signatures found here: bytes of tensors and of JSON of the case that is stored.
  std::map<std::string, std::pair<std::uint64_t, std::size_t>> stored_;
};

}  // namespace fusediff
