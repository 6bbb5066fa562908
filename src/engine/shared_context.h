// What repeat, history and threads have in common: calls that share a context must give what each gives alone. The
// plan of the calls, and what the reruns say of the cause, are theirs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/company.h"
#include "engine/experiment.h"
#include "engine/judge.h"
#include "run/crew.h"

namespace fusediff {

using Turns = std::vector<std::vector<std::size_t>>;  // [thread]: indexes into Company::members(), in order

class SharedContextCheck : public ExperimentCheck {
 public:
  explicit SharedContextCheck(const Subject& subject);

  std::optional<Verdict> first_look() override;
  std::string suspicion() const override;
  Verdict explain() override;

  const std::vector<bool>& compared() const override { return compared_; }
  const Budget& budget() const override { return budget_; }

 protected:
  // Who calls what; members() are gathered and ran alone.
  virtual Turns turns() const = 0;
  // Of which members another result counts: the case alone, or all.
  virtual bool only_the_case() const = 0;
  // A context for each thread, in the plan that is looked at first.
  virtual bool context_each() const { return false; }
  // "with 7 other calls in flight": what an output differs under.
  virtual std::string circumstance() const = 0;
  // Fills in causes and conclusion. seen: the first row.
  virtual void explain_cause(Finding& finding) = 0;

  const Subject& subject() const { return subject_; }
  Company& company() { return company_; }
  const Company& company() const { return company_; }
  Budget& spend() { return budget_; }
  std::size_t accused() const { return accused_; }  // member whose result differs
  const CauseRun& seen() const { return seen_; }

  CrewOutcome run(const Turns& turns, bool context_each, bool suspended, std::uint64_t seed);
  // Repeats it until a call of `member` differs, or often enough to say that none does.
  CauseRun try_cause(std::string what, const Turns& turns, bool context_each, std::size_t member);
  // How often one crew of the seen plan shows it, in how many crews.
  int crews() const { return crews_; }
  int crews_differing() const { return crews_differing_; }

 private:
  std::optional<Verdict> set_up();
  std::optional<Verdict> judge_alone();
  bool suspicious(const CrewOutcome& outcome) const;
  std::size_t accused_of(const CrewOutcome& outcome) const;
  Judgement judged(const CrewOutcome& outcome, std::size_t member) const;
  void rerun_seen();
  bool goes_away_unsuspended();
  bool agrees_with_itself(Judgement& judgement);
  Case named() const;

  const Subject subject_;
  Company company_;
  Budget budget_;
  std::vector<bool> compared_;
  Judgement alone_;      // what shows of the case alone
  CrewOutcome outcome_;  // that raised the suspicion
  std::size_t accused_ = 0;
  CauseRun seen_;
  int crews_ = 0;
  int crews_differing_ = 0;
  std::array<Rate, 2> rates_;
};

}  // namespace fusediff
