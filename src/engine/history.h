// The `history` experiment: the case after earlier calls on its context, of this and of other operators, against the
// case alone.
#pragma once

#include <string>

#include "engine/shared_context.h"

namespace fusediff {

class HistoryCheck : public SharedContextCheck {
 public:
  using SharedContextCheck::SharedContextCheck;

 private:
  Turns turns() const override;
  bool only_the_case() const override { return true; }
  std::string circumstance() const override;
  void explain_cause(Finding& finding) override;
};

}  // namespace fusediff
