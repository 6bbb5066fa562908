// The `threads` experiment: the case and its mates from N threads on one context, in a seeded order, against each of
// them alone. When something differs, four more kinds of run say what it takes.
#pragma once

#include <optional>
#include <string>

#include "engine/shared_context.h"

namespace fusediff {

class ThreadsCheck : public SharedContextCheck {
 public:
  using SharedContextCheck::SharedContextCheck;

 private:
  Turns turns() const override;
  bool only_the_case() const override { return false; }
  bool context_each() const override;
  std::string circumstance() const override;
  void explain_cause(Finding& finding) override;

  Turns mixed(std::size_t case_member) const;
  Turns alone_in_threads() const;
  Turns one_after_another() const;
  std::optional<std::size_t> control();
  std::string mates_words() const;

  Case control_;
};

}  // namespace fusediff
