// A campaign: workers that look for findings, restarted when they die, and an analyst that bundles what they find. All
// of it lives in one folder, whole at any moment; a later campaign into the same folder goes on from there. Prints
// nothing; what a person sees is made of the hooks, in src/cli.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "campaign/analyst.h"
#include "campaign/setup.h"
#include "campaign/worker_state.h"

namespace fusediff {

struct FuzzOptions {
  Setup setup;                                // seconds and memory; what is opened stands in the arguments
  std::vector<std::string> target_arguments;  // for workers and children, as their command lines spell the setup
  ChildOptions child;
  std::string worker_program;
  std::filesystem::path out;
  std::vector<std::filesystem::path> corpora;  // read, never written
  int jobs = 1;
  std::optional<double> seconds;      // until the workers stop
  std::optional<std::uint64_t> runs;  // checks of all workers together
  std::uint64_t seed = 1;
  double minimize_seconds = 30;                                     // of one finding
  std::function<std::vector<BundleFile>(const Bundle&)> documents;  // of a bundle, as AnalystOptions has it
  double finish_seconds = 30;  // for what is still to be bundled when the workers stop
};

struct FuzzStatus {
  double seconds = 0;
  Counts counts;
  std::size_t corpus = 0;              // files
  std::map<std::string, int> classes;  // distinct signatures of this run, by class
  std::size_t pending = 0;             // found, not yet bundled
  int restarts = 0;                    // of workers, after whatever end
  std::size_t unexplained = 0;         // deaths of workers that no case explains
  int jobs = 0;
  std::string target, against;  // as --target and --against named them; "": not named
};

struct FuzzHooks {
  std::function<void(const FuzzStatus&)> status;  // a few times a second
  std::function<void(const News&)> finding;       // bundled, listed
  std::function<void(const std::string&)> note;   // one line that a person should see
};

struct FuzzResult {
  FuzzStatus status;
  OpenAnswer sides;
  std::vector<News> news;
  bool interrupted = false;
};

// Runs until the time or the checks are used up, or `interrupted` is set (then nothing is minimised any more; what was
// found is on disk). Errors: the set-up, a full disk, another campaign in the folder; workers that cannot live.
Result<FuzzResult> fuzz(const FuzzOptions& options, const std::atomic<bool>& interrupted, const FuzzHooks& hooks);

// summary.json and stats.json.
std::string status_json(const FuzzStatus& status);

}  // namespace fusediff
