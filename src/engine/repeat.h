// The `repeat` experiment: the case again and again on one context, with other calls and a dirtied workspace between,
// against the case on a fresh one.
#pragma once

#include <string>

#include "engine/shared_context.h"

namespace fusediff {

class RepeatCheck : public SharedContextCheck {
 public:
  using SharedContextCheck::SharedContextCheck;

 private:
  Turns turns() const override;
  bool only_the_case() const override { return true; }
  std::string circumstance() const override;
  void explain_cause(Finding& finding) override;
};

}  // namespace fusediff
