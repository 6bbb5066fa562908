// What every experiment has in common for check(): a cheap first look, and the reruns that explain what it saw. Which
// class serves which kind stands in the table of experiment.cpp; each is a file of its own.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/check.h"
#include "engine/draw_cache.h"
#include "engine/investigate.h"
#include "engine/prepare.h"
#include "run/runner.h"

namespace fusediff {

// What is looked at, and with what. All of it outlives the experiment.
struct Subject {
  const Case& c;
  const Prepared& prepared;  // the case on the target side
  const Comparison& comparison;
  const CheckOptions& options;
  Runner& runner;
  DrawCache& draws;                      // for further cases
  std::array<Execution, 2>& executions;  // memory to reuse; what is compared first, [side]
};

class ExperimentCheck {
 public:
  virtual ~ExperimentCheck() = default;

  // Makes the runs once. Returns the verdict when nothing shows, or nothing can: pass, skip, vacuous, harness error.
  // Nothing: there is something to explain; suspicion() names it.
  virtual std::optional<Verdict> first_look() = 0;
  // The finding as the first look alone would name it: a key for what has been explained before.
  virtual std::string suspicion() const = 0;
  // Reruns until it is clear what it is.
  virtual Verdict explain() = 0;

  // [outputs] that were compared between Subject::executions; empty: none. For feedback.
  virtual const std::vector<bool>& compared() const = 0;
  virtual const Budget& budget() const = 0;
};

std::unique_ptr<ExperimentCheck> make_experiment(const Subject& subject);

}  // namespace fusediff
