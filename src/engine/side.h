// One side of a comparison, ready to be run again and again: path, call in its own spelling, inputs. What comes back is
// put into the order of the target side's outputs, so that executions of both sides can be laid beside each other.
#pragma once

#include <span>
#include <vector>

#include "engine/adapt.h"
#include "engine/check.h"
#include "model/execution.h"
#include "run/runner.h"

namespace fusediff {

struct RunChoice {
  Fills fills = kFirstFills;
  std::string_view middle;  // a tensor kept away from the guard pages
  bool pinned = false;
};

class SideRun {
 public:
  // The call as it is: the side's own spelling is the target side's. REQUIRES: call outlives this too.
  SideRun(const PathOf& path, const Call& call, Bank bank, bool keep_context);

  // REQUIRES: path's target and the inputs outlive this. keep_context as in RunRequest.
  SideRun(const PathOf& path, Adapted adapted, Bank bank, bool keep_context);

  // inputs: [inputs of the target side's call], stored elements.
  void run(Runner& runner, const std::vector<std::span<const std::byte>>& inputs, const RunChoice& choice,
           Execution& execution) const;

  const Call& call() const { return shared_ != nullptr ? *shared_ : adapted_.call; }  // in this side's own order
  const Target& target() const { return *target_; }
  const std::string& path() const { return path_; }
  bool gives(std::size_t output) const { return shared_ != nullptr || adapted_.output_from[output] >= 0; }

 private:
  const Target* target_;
  std::string path_;
  const Call* shared_ = nullptr;
  Adapted adapted_;  // where shared_ is null
  Bank bank_;
  bool keep_context_;
  bool aligned_;  // outputs need no reordering
};

}  // namespace fusediff
