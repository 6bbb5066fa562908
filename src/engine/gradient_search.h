// Looks for elements of a backward's gradients that difference quotients of its forward contradict: in the f64
// backward, and in each path outside what its rounding explains. Runs the forward and the f64 backward; the paths'
// executions it is given.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/experiment.h"
#include "engine/gradient_forward.h"
#include "engine/gradient_probe.h"
#include "engine/truth.h"
#include "model/finding.h"
#include "oracle/gradient.h"

namespace fusediff {

struct Contradiction {
  std::size_t output = 0;    // of the backward's call
  std::optional<Side> side;  // absent: the f64 backward itself
  double off = 0;            // how far from the quotient, in units of what both errors explain
  double allowed = 0;        // beside the quotient's own error
  GradientSweep facts;       // without `own`
};

// What became of the probes. Every one is counted.
struct GradientTally {
  int judged = 0;
  int zeros = 0;       // of judged: the quotient and the gradient are zero
  int unsettled = 0;   // at a kink, or hidden by rounding
  int not_finite = 0;  // of the point, the forward or the backward
  int absent = 0;      // gradients without elements, or of an input that is not there
  bool out_of_time = false;
};
std::string why_nothing_was_judged(const GradientTally& tally);

class GradientSearch {
 public:
  // executions: of the paths, [side]; given: [side][outputs] whether that side gave it. REQUIRES: all outlive this,
  // c.op has a gradient rule.
  GradientSearch(const Subject& subject, const std::array<const Execution*, 2>& executions,
                 const std::array<std::vector<bool>, 2>& given, Budget& budget);
  ~GradientSearch();

  // Why there is no difference to take (a skip, or vacuous where the forward is not finite); nothing: there is.
  std::optional<Verdict> set_up();
  // thorough: more single elements, and no direction without an element or a second direction that shows the same.
  void search(bool thorough);

  const std::vector<Contradiction>& contradictions() const { return contradictions_; }  // the furthest off first
  const GradientTally& tally() const { return tally_; }
  std::string truth() const { return truth_.path; }  // "" when there is no f64 backward
  const PathOf& truth_path() const { return truth_.by; }
  std::string forward() const;  // "builtin:unfused of mhc_pre_sinkhorn"

 private:
  struct Gradient;
  std::optional<Verdict> find_forward();
  void take_gradients();
  void measure_sensitivity();
  void measure_once(Rng& rng);
  void measure_saved();
  void find_outside(Gradient& gradient);
  void probe_element(Gradient& gradient, std::int64_t index);
  void probe_direction(Gradient& gradient, std::size_t which);
  void judge(Gradient& gradient, const Probe& probe, GradientSweep facts, double sensitivity, double reach);
  void judge_paths(const Gradient& gradient, const GradientSweep& facts, const Quotient& quotient, double slack,
                   double reach, bool truth_is_wrong, std::vector<Contradiction>& found) const;
  bool is_confirmed(const Probe& probe, double gradient_size, double slack, const std::vector<Contradiction>& found);
  void measure_inputs();
  std::vector<std::int64_t> singles_of(const Gradient& gradient, bool thorough, Rng& rng) const;
  void drop_lonely_directions();
  bool affordable(bool first_of_all);

  const Subject& subject_;
  std::array<const Execution*, 2> executions_;
  std::array<std::vector<bool>, 2> given_;
  Budget& budget_;
  Call wide_;
  std::optional<BackwardPoint> point_;
  std::optional<GradientForward> forward_;
  std::optional<GradientProber> prober_;
  Truth truth_;
  std::vector<Gradient> gradients_;
  std::vector<Contradiction> contradictions_;
  GradientTally tally_;
  bool ordinary_ = true;
  bool huge_ = false;
  std::uint64_t work_ = 0;  // elements that runs of the forward may still pass through
};

}  // namespace fusediff
