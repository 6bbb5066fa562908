// Calls of one target by several threads at once, on one context or on one each; with one thread: calls in turn on one
// context. Reports what happened and judges nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "model/execution.h"
#include "run/runner.h"

namespace fusediff {

struct CrewPlan {
  const Target* target = nullptr;
  std::span<const RunRequest> requests;         // the different calls; bank, keep_context and pinned are not looked at
  std::vector<std::vector<std::size_t>> turns;  // [thread]: indexes into requests, in order
  std::vector<std::uint64_t> nanoseconds;       // [requests] about how long a call takes
  bool context_each = false;                    // a context for each thread
  bool suspend = true;                          // calls in the middle, and threads that the target has started
  std::uint64_t seed = 0;                       // of pauses between the turns and within the calls
};

struct CrewOutcome {
  struct OfRequest {
    std::int64_t calls = 0;
    std::int64_t notable = 0;
    std::vector<Hash128> digests;    // of the notable ones' outputs, each once
    std::optional<Execution> first;  // notable one
  };
  std::vector<OfRequest> requests;   // [requests]
  std::optional<Execution> context;  // how opening or closing a context ended, where not in kOk
  std::vector<std::string> stuck;    // where each thread was when no call had come back for too long
  std::uint64_t runs = 0;
  std::uint64_t nanoseconds = 0;  // inside the target, of all threads together
};

}  // namespace fusediff
