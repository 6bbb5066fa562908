// Makes a failing case small while its signature stays the same.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/check.h"
#include "model/case.h"

namespace fusediff {

struct MinimizeOptions {
  double seconds = 30;
  int tries = 1;   // of the predicate, for a flaky finding
  int needed = 1;  // of them
  std::function<void(const std::string& step, int checks)> progress;
  // The smallest so far, each time that there is another one: what a run that is ended keeps.
  std::function<void(const Case& c)> accepted;
};

struct Minimized {
  Case smallest;
  Finding finding;  // of the smallest case
  int checks = 0;
  bool finished = false;           // false: the time cap came first
  std::vector<std::string> notes;  // nearest passing neighbours, what the experiment needs, what does not matter
};

// What is asked of every candidate: an engine, or what stands for one.
struct Predicate {
  std::function<Result<CheckResult>(const Case& c, bool anew)> check;
  std::function<const Operator*(std::string_view op)> find;
  std::function<bool()> tainted;
  std::uint64_t max_bytes = 0;
};

// The case's own check gives the signature to keep. A case that is not a finding is the user's error.
Result<Minimized> minimize(Engine& engine, const Case& original, const MinimizeOptions& options);
Result<Minimized> minimize(const Predicate& predicate, const Case& original, const MinimizeOptions& options);

}  // namespace fusediff
