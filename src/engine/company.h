// The case and the other calls that stand in its experiment: bound, drawn, and run once alone, all on the target side.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/experiment.h"
#include "engine/prepare.h"
#include "model/case.h"
#include "model/execution.h"
#include "run/crew.h"
#include "run/runner.h"

namespace fusediff {

struct Companion {
  const Case* c = nullptr;
  const Prepared* prepared = nullptr;
  std::optional<Prepared> own;  // of a call that is not the case itself
  std::string path;
  std::vector<std::span<const std::byte>> inputs;
  Execution alone;  // on a fresh context, with nothing else in flight

  const Call& call() const { return prepared->call; }
  bool is_deterministic() const { return call().op->is_deterministic(path); }
};

class Company {
 public:
  explicit Company(const Subject& subject) : subject_(subject) {}
  Company(const Company&) = delete;
  Company& operator=(const Company&) = delete;

  // Nothing: the case, and those of its calls that the target offers, stand in members(). Else why they cannot: a skip.
  std::optional<Verdict> gather();
  // Another call, run alone; false, and not added, where it does not succeed.
  bool add(const Case& c, Budget& budget);
  // Runs each alone. Calls that do not succeed so are dropped; the case itself stays, however it ends.
  void run_alone(Budget& budget);

  // [0] is the case.
  const std::deque<Companion>& members() const { return members_; }
  // The runs of members(), in their order.
  std::vector<RunRequest> requests() const;
  std::vector<std::uint64_t> nanoseconds() const;  // that each took alone
  std::size_t mates() const { return mates_; }     // members()[1] to [mates()]
  const Target& target() const { return *subject_.comparison.sides[0].target; }

 private:
  RunRequest request(const Companion& member) const;
  std::optional<Companion> prepared(const Case& c);
  void run_alone(Companion& member, Budget& budget);

  const Subject& subject_;
  std::size_t mates_ = 0;
  std::deque<Companion> members_;  // deque: addresses stay
};

}  // namespace fusediff
