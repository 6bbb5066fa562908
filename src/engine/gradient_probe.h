// Difference quotients of a forward operator around a point. Takes them, judges nothing.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "engine/gradient_forward.h"
#include "oracle/gradient.h"

namespace fusediff {

// Where a derivative is taken: along one element of an input of the forward, or along a direction of it.
struct Probe {
  int variable = -1;
  std::int64_t index = -1;        // logical row-major; -1: along `direction`
  std::vector<double> direction;  // [elements] a step of 1 moves each so far: a power of two of about its size
};

class GradientProber {
 public:
  // REQUIRES: all outlive this.
  GradientProber(GradientForward& forward, Runner& runner, Budget& budget)
      : forward_(forward), runner_(runner), budget_(budget) {}

  // Runs the forward where the case has it. False: there is no derivative to take; why() says so.
  bool start();
  const std::string& why() const { return why_; }
  bool is_finite() const { return finite_; }  // false: start() ran, and L is not finite

  // Random signs, every element moved.
  Probe direction(int variable, Rng& rng) const;
  // Steps are tried from large to small until the error is below `enough`; the best is returned. Nothing: not finite,
  // or a run failed. Of a direction: per step of 1.
  std::optional<Quotient> quotient(const Probe& probe, double enough);
  // The same once for each scale that the forward may bend on: the element's own, the tensor's, 1, and smaller parts of
  // a direction. A derivative is what all of them show: what one alone shows is that it steps across something.
  std::vector<std::optional<Quotient>> on_every_scale(const Probe& probe, double enough);

  // Sum of |cotangent * output| over the element's size: see oracle/gradient.h.
  double natural(int variable, std::int64_t index);
  double total() const { return total_; }  // the same per step of 1 of a direction

  // {eps, quotient} of an element with eps from large to small, until the rounding of the outputs hides it.
  std::vector<std::array<double, 2>> sweep(int variable, std::int64_t index);

  std::uint64_t runs() const { return runs_; }

 private:
  using Steps = std::array<DifferenceStep, kDifferenceSteps>;
  bool run_at(const Probe& probe, double step, std::vector<double>& outputs, double& moved);
  std::optional<DifferenceStep> difference(const Probe& probe, double step);
  double noise_of(int variable);
  double noise_of_rounding();
  double size_of(const Probe& probe);
  std::optional<Quotient> best_of(const Probe& probe, std::span<const double> firsts, double enough);

  GradientForward& forward_;
  Runner& runner_;
  Budget& budget_;
  std::vector<double> base_, above_, below_;
  std::map<int, double> noise_;
  std::map<int, std::vector<double>> scales_;
  std::optional<double> rounding_;
  double total_ = 0;  // sum of |cotangent * output|
  std::string why_;
  bool finite_ = true;
  std::uint64_t runs_ = 0;
};

// [elements] powers of two of about each element's size, not less than the median of those that are not zero: a few
// huge ones among them say nothing of the others.
std::vector<double> step_scales(const std::vector<double>& values);

}  // namespace fusediff
