// The `pair` experiment: both paths once on the same input bytes, and, when something shows, the reruns that explain
// it.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/experiment.h"
#include "engine/judge.h"
#include "engine/prepare.h"
#include "engine/side.h"
#include "run/runner.h"

namespace fusediff {

class PairCheck : public ExperimentCheck {
 public:
  explicit PairCheck(const Subject& subject);

  std::optional<Verdict> first_look() override;
  std::string suspicion() const override;
  Verdict explain() override;

  const std::vector<bool>& compared() const override { return compared_; }
  const Budget& budget() const override { return budget_; }

 private:
  std::optional<Verdict> set_up();
  void run_both();
  void ask_for_every_output();
  Scene scene();
  std::vector<bool> gives(Side side) const;
  bool both_ok() const;
  bool same_bits() const;
  // same: same_bits(), which costs a pass over every output.
  void judge_sides(bool same, Judgement& judgement) const;

  const Case& case_;
  const Prepared& prepared_;
  const Call* call_;            // prepared_.call, or the fuller one
  std::optional<Call> fuller_;  // the same with every output asked for
  const Comparison& comparison_;
  const CheckOptions& options_;
  bool outside_;  // this call breaks `where`
  Runner& runner_;
  std::array<Execution, 2>& executions_;
  std::vector<std::span<const std::byte>> inputs_;
  std::array<std::unique_ptr<SideRun>, 2> sides_;
  std::array<const SideRun*, 2> side_pointers_{};
  std::array<const Execution*, 2> execution_pointers_{};
  std::array<Fills, 2> fills_ = {kFirstFills, kSecondFills};
  std::vector<bool> compared_;
  Judgement first_;
  std::vector<std::string> notes_;
  Budget budget_;
};

}  // namespace fusediff
