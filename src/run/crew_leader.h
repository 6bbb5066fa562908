// Starts a crew's threads, watches them from the calling thread, and lends each what outlives one crew.
#pragma once

#include <sys/types.h>

#include <memory>
#include <vector>

#include "run/arena.h"
#include "run/crew.h"
#include "run/runner.h"
#include "run/trap.h"

namespace fusediff {

// The ids of all threads of this process.
std::vector<pid_t> threads_now();

struct CrewTools {
  const RunLimits& limits;
  Trap& trap;  // of the calling thread
  int interrupt;
  std::vector<std::unique_ptr<Arena>> arenas;  // [thread], kept from crew to crew
  std::vector<pid_t> ours;                     // threads that are not the target's: never suspended
};

// broken: the target was left in the middle of a call.
CrewOutcome run_crew(const CrewPlan& plan, const Notable& notable, CrewTools& tools, bool& broken);

}  // namespace fusediff
