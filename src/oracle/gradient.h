// Judges a backward against difference quotients of the forward: how well a quotient is known, how far a gradient may
// be off, and whether the two contradict each other. Numbers only; who makes them is the engine's.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "model/call.h"
#include "model/finding.h"
#include "oracle/bound.h"

namespace fusediff {

// One central difference of L(x) = sum of <cotangent, output>, along an element or a direction.
struct DifferenceStep {
  double step = 0;       // half the distance of the two points
  double slope = 0;      // (L(x + step) - L(x - step)) / (2 step)
  double bend = 0;       // (L(x + step) - 2 L(x) + L(x - step)) / step: falls with step, except at a kink
  double bends = 0;      // the same of each term of L, magnitudes added: kinks of several terms may cancel in `bend`
  double magnitude = 0;  // sum of |cotangent * output|: an output that did not move may have hidden it
};
inline constexpr std::size_t kDifferenceSteps = 4;  // each half of the one before

// The derivative as the differences show it; error bounds what truncation, a kink and rounding can have made of it.
struct Quotient {
  double value = 0;
  double error = 0;
  // Does the sequence converge, so far as rounding lets one see? Stepping across something, it does not.
  bool converges = true;
  // The steepest slope that the steps could have shown: one that runs through more than all of L within one of them
  // belongs to a bend that they step across.
  double steepest = std::numeric_limits<double>::infinity();
};

// noise: what L moves by itself, measured. Nothing when a number is not finite. The value is Richardson's
// extrapolation of the last three steps (Ridders, Advances in Engineering Software 4, 1982); its truncation is taken
// from how far the entries of the tableau lie apart, four times; a kink from what is left of the bend when the step
// goes to zero; rounding from `noise` and from the unit roundoff of binary64 at `magnitude`, at the smallest step.
std::optional<Quotient> settle(std::span<const DifferenceStep, kDifferenceSteps> steps, double noise);

// Does the quotient say anything of gradients of this size? At a kink, where rounding covers it, and where the function
// bends on a shorter scale than the steps, it does not.
bool tells(const Quotient& quotient, double gradient);

// Is the gradient further from the quotient than both errors explain? A NaN contradicts nothing.
bool contradicts(double gradient, const Quotient& quotient, double allowed);

// A relative change of every input of the backward, saved ones apart from each other, that a definition may be off by:
// published formulas drop terms of about 1e-6 (mHC's eps), which is no wrong derivative. In units of sensitivity.
inline constexpr double kDefinitionSlack = 0x1p-16;

// Of `natural` (see below): half of the digits of f64, for what cancels inside a backward (1 - h / 2 where h is nearly
// 2) and is then multiplied.
inline constexpr double kInvisible = 0x1p-26;

// [elements] how far a path's gradient may be from the truth, absolute; infinite where nothing is said.
// Stated bound: that. Without: the target side 4 times the against side's worst error or 4 ULP, as for damage; the
// against side half of the dtype's digits of the largest gradient, and what eight roundings of each input, or of the
// forward's outputs, explain. sensitivity: [elements] change of the truth per relative change of the inputs. natural:
// [elements] sum of |cotangent * output| over the element's size, the gradient of a forward that is all in proportion.
std::vector<double> allowed_of_path(const Call& call, std::size_t output, Side side, std::span<const std::byte> against,
                                    const OutputTruth& truth, std::span<const double> sensitivity,
                                    std::span<const double> natural);

// The same where there is no truth: the bound at the largest magnitude of the path's own gradient where the inputs are
// what the forward gets; where a bound is missing or saved floats carry their own rounding, half of the digits.
// Roundings of the forward's outputs (see `natural`) are the caller's to add.
double roundings_of_inputs(const Call& call, std::size_t output);  // relative: eight of the coarsest
double allowed_without_truth(const Call& call, std::size_t output, std::span<const std::byte> path);

}  // namespace fusediff
