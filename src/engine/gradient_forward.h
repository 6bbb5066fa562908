// The forward operator of a backward, at the point that a case of the backward gives: L(x) = sum of
// <cotangent, output>. Runs it, judges nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/status.h"
#include "engine/check.h"
#include "engine/investigate.h"
#include "engine/prepare.h"
#include "run/runner.h"

namespace fusediff {

// A backward's inputs and givens, all logical elements, in the order of its call.
struct BackwardPoint {
  const Call* call = nullptr;  // shapes and dtypes of the bytes
  std::vector<Bytes> inputs;
  std::vector<Bytes> givens;
};

// As the case has them, in its own dtypes; and every float in f64, saved ones computed anew in f64 (nothing when a
// producer does not offer that). REQUIRES: prepared outlives the point; wide: widened(prepared.call).
BackwardPoint point_of(const Prepared& prepared);
std::optional<BackwardPoint> widened_point(const Prepared& prepared, const Call& wide, const Comparison& comparison,
                                           const CheckOptions& options, Runner& runner);

class GradientForward {
 public:
  static constexpr const char* kNotFinite = "its outputs are not finite";

  // Binds op.gradient->of of path.target's record: inputs are those tensors of the backward that a saved rule or their
  // name says, attributes those of equal name, else their default. f64 is asked for whether or not the record lists it.
  // REQUIRES: path.target outlives this. An error says what is missing.
  static Result<GradientForward> make(const PathOf& path, const BackwardPoint& at, std::uint64_t max_bytes);

  // The forward input that a gradient output belongs to, or -1: absent here, or not a float.
  int variable_of(const std::string& gradient) const;
  const std::vector<double>& point(int variable) const { return points_[static_cast<std::size_t>(variable)]; }
  const Tensor& tensor(int variable) const { return call_.inputs[static_cast<std::size_t>(variable)]; }
  // Moves one element, or all of them; values are rounded to the dtype, and what they became is returned or written.
  double move(int variable, std::int64_t index, double value);
  void move_all(int variable, std::vector<double>& values);
  void move_back(int variable);
  // Every float input off by `relative`, up or down as rng says; and back. REQUIRES: f64 throughout.
  void jitter(double relative, Rng& rng);
  void settle_down();

  // The outputs that L sees (those with a cotangent that is not zero), [terms]. False: the run did not succeed, or one
  // of them is not finite.
  bool run(Runner& runner, Budget& budget, std::vector<double>& outputs, std::string& why) const;
  const std::vector<double>& cotangents() const { return cotangents_; }  // [terms]
  double roundoff() const { return roundoff_; }                          // the coarsest of these outputs
  std::int64_t elements() const { return elements_; }                    // of all tensors: what a run costs
  const PathOf& path() const { return path_; }

 private:
  Status bind_to(const BackwardPoint& at, std::uint64_t max_bytes);
  void take_cotangents(const BackwardPoint& at);

  PathOf path_;
  const Operator* backward_ = nullptr;
  Call call_;
  std::vector<Bytes> inputs_;
  std::vector<std::vector<double>> points_;               // [inputs], empty where not a float
  std::vector<std::vector<std::int64_t>> term_elements_;  // [outputs] elements that L sees
  std::vector<double> cotangents_;
  std::int64_t elements_ = 0;
  double roundoff_ = 0;
};

}  // namespace fusediff
