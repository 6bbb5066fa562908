// The `pair` experiment: both paths once on the same input bytes, and, when something shows, the reruns that explain
// it.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/check.h"
#include "engine/investigate.h"
#include "engine/judge.h"
#include "engine/prepare.h"
#include "engine/side.h"
#include "run/runner.h"

namespace fusediff {

class PairCheck {
 public:
  // REQUIRES: all outlive this. executions: memory to reuse, [side].
  PairCheck(const Case& c, const Prepared& prepared, const Comparison& comparison, const CheckOptions& options,
            Runner& runner, std::array<Execution, 2>& executions);

  // Runs both sides once. Returns the verdict when nothing shows, or nothing can: pass, skip, vacuous, harness error.
  // Nothing: there is something to explain; suspicion() names it.
  std::optional<Verdict> first_look();
  // The finding as the first look alone would name it: a key for what has been explained before.
  std::string suspicion() const;
  // Reruns until it is clear what it is.
  Verdict explain();

  const std::vector<bool>& compared() const { return compared_; }
  const Budget& budget() const { return budget_; }

 private:
  std::optional<Verdict> set_up();
  std::optional<Verdict> ended_early() const;
  std::optional<Verdict> unsupported() const;
  void run_both();
  void ask_for_every_output();
  Scene scene();
  Finding finding_from(const Judgement& judgement) const;
  void add_hashes(Finding& finding) const;
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
