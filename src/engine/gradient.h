// The `gradient` experiment: the backward in each path and in f64 against difference quotients of its forward. What
// the two paths do alone (memory, endings, fills, rules) is judged as in pair; how they differ is left to pair.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/experiment.h"
#include "engine/gradient_search.h"
#include "engine/judge.h"
#include "engine/side.h"

namespace fusediff {

class GradientCheck : public ExperimentCheck {
 public:
  explicit GradientCheck(const Subject& subject);

  std::optional<Verdict> first_look() override;
  std::string suspicion() const override;
  Verdict explain() override;

  const std::vector<bool>& compared() const override { return compared_; }
  const Budget& budget() const override { return budget_; }

 private:
  std::optional<Verdict> not_asked() const;
  std::optional<Verdict> set_up();
  void judge_sides(Judgement& judgement) const;
  bool both_ok() const;
  void add_evidence(const GradientSearch& search, Judgement& judgement) const;
  std::optional<Side> accused_of(const GradientSearch& search, std::size_t output) const;
  std::vector<GradientSweep> sweeps_of(const GradientSearch& search, std::vector<std::string>& notes);
  Scene scene();

  const Subject subject_;
  const Call& call_;
  std::vector<std::span<const std::byte>> inputs_;
  std::array<std::unique_ptr<SideRun>, 2> sides_;
  std::array<const SideRun*, 2> side_pointers_{};
  std::array<const Execution*, 2> executions_{};
  std::array<Fills, 2> fills_ = {kFirstFills, kSecondFills};
  std::array<std::vector<bool>, 2> given_;  // [side][outputs]
  std::vector<bool> compared_;
  Judgement first_;
  Budget budget_;
};

}  // namespace fusediff
