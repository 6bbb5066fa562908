#include "oracle/gradient.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fusediff {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kTruncationFactor = 4;  // an entry of the tableau is closer than its neighbours lie apart; times this
constexpr double kNoiseFactor = 8;       // four samples see about half of the largest; twice for what cancels
constexpr double kRoundingsOfATerm = 4;  // of each output: its own, its product, two of the sum
constexpr double kExtrapolation = 2;     // Richardson's weights add up to 1.9 in the last difference
constexpr double kTellingShare = 16;     // an error of more than this part of the gradient says too little
constexpr double kInputRoundings = 8;
constexpr double kNothing = 0x1p-900;

// Half of the digits of the largest: 2^-(p / 2) of it for a precision of p bits; near zero a few of the smallest steps.
double gross(DType dtype, double largest) {
  return std::max(std::sqrt(float_format(dtype).unit_roundoff) * largest, kRelativeToUnfused * ulp_at(dtype, largest));
}

double coarsest_input(const Call& call, DType dtype) {
  double u = float_format(dtype).unit_roundoff;
  for (const Tensor& input : call.inputs) {
    if (input.present && is_float(input.dtype)) u = std::max(u, float_format(input.dtype).unit_roundoff);
  }
  return u;
}

double largest_finite(std::span<const double> values) {
  double largest = 0;
  for (const double value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

std::vector<double> widened_values(DType dtype, std::span<const std::byte> bytes) {
  std::vector<double> values(bytes.size() / size_of(dtype));
  widen(dtype, bytes, values);
  return values;
}

double ulp_or_infinity(DType dtype, double scale) { return std::isfinite(scale) ? ulp_at(dtype, scale) : kInfinity; }

// The largest error of the against side, ULP of the element.
double worst_error(DType dtype, const std::vector<double>& values, const OutputTruth& truth) {
  double worst = 0;
  for (std::size_t i = 0; i < truth.value.size(); ++i) {
    if (!std::isfinite(truth.value[i])) continue;
    if (!std::isfinite(values[i])) return kInfinity;
    worst = std::max(worst, std::abs(values[i] - truth.value[i]) / ulp_at(dtype, truth.value[i]));
  }
  return worst;
}

}  // namespace

std::optional<Quotient> settle(std::span<const DifferenceStep, kDifferenceSteps> steps, double noise) {
  std::array<double, kDifferenceSteps> first{};  // [k] from slopes k - 1 and k
  for (std::size_t k = 1; k < kDifferenceSteps; ++k) first[k] = (4 * steps[k].slope - steps[k - 1].slope) / 3;
  const double before = (16 * first[2] - first[1]) / 15;
  const double value = (16 * first[3] - first[2]) / 15;
  const double truncation = kTruncationFactor * std::max(std::abs(value - before), std::abs(value - first[3]));
  // The bend is odd in the step: with its first and third power gone, what is left is the jump of the slope at a kink.
  std::array<double, kDifferenceSteps> bend{};
  for (std::size_t k = 1; k < kDifferenceSteps; ++k) bend[k] = 2 * steps[k].bends - steps[k - 1].bends;
  const double kink = std::max(std::abs(8 * bend[3] - bend[2]), std::abs(8 * bend[2] - bend[1])) / 7;
  const double smallest = steps[3].step;
  const double rounding =
      kExtrapolation *
      (kNoiseFactor * noise + kRoundingsOfATerm * float_format(DType::kF64).unit_roundoff * steps[3].magnitude +
       float_format(DType::kF64).min_normal) /
      smallest;
  const double settling = truncation + kink;
  const bool converges = settling <= std::max(std::abs(value) / kTellingShare, kNoiseFactor * rounding);
  const Quotient quotient{value, settling + rounding, converges, steps[3].magnitude / (kTellingShare * smallest)};
  if (!std::isfinite(quotient.value) || !std::isfinite(quotient.error)) return std::nullopt;
  return quotient;
}

bool tells(const Quotient& quotient, double gradient) {
  if (!quotient.converges || std::abs(gradient) > quotient.steepest) return false;
  return quotient.error < kNothing ||
         kTellingShare * quotient.error < std::max(std::abs(quotient.value), std::abs(gradient));
}

bool contradicts(double gradient, const Quotient& quotient, double allowed) {
  return std::isfinite(gradient) && std::abs(gradient - quotient.value) > quotient.error + allowed;
}

std::vector<double> allowed_of_path(const Call& call, std::size_t output, Side side, std::span<const std::byte> against,
                                    const OutputTruth& truth, std::span<const double> sensitivity,
                                    std::span<const double> natural) {
  const Tensor& tensor = call.outputs[output];
  std::vector<double> allowed(truth.value.size(), kInfinity);
  if (const std::optional<double> bound = stated_bound(call, output, !truth.absolute.empty())) {
    const std::vector<double> scale = bound_scales(tensor, call.op->outputs[output].bound->of, truth);
    for (std::size_t i = 0; i < allowed.size(); ++i) allowed[i] = *bound * ulp_or_infinity(tensor.dtype, scale[i]);
    return allowed;
  }
  if (side == Side::kTarget) {
    const std::vector<double> values = widened_values(tensor.dtype, against);
    if (values.size() != allowed.size()) return allowed;
    const double ulps = kRelativeToUnfused * std::max(1.0, worst_error(tensor.dtype, values, truth));
    if (!std::isfinite(ulps)) return allowed;
    for (std::size_t i = 0; i < allowed.size(); ++i) allowed[i] = ulps * ulp_or_infinity(tensor.dtype, truth.value[i]);
    return allowed;
  }
  const double digits = gross(tensor.dtype, largest_finite(truth.value));
  const double input = roundings_of_inputs(call, output);
  for (std::size_t i = 0; i < allowed.size(); ++i)
    allowed[i] = std::max(digits, input * std::max(sensitivity[i], natural[i]));
  return allowed;
}

double roundings_of_inputs(const Call& call, std::size_t output) {
  return kInputRoundings * coarsest_input(call, call.outputs[output].dtype);
}

double allowed_without_truth(const Call& call, std::size_t output, std::span<const std::byte> path) {
  const Tensor& tensor = call.outputs[output];
  const double largest = largest_finite(widened_values(tensor.dtype, path));
  bool saved = false;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    saved = saved || (call.op->inputs[i].saved && call.inputs[i].present && is_float(call.inputs[i].dtype));
  }
  const std::optional<double> bound = stated_bound(call, output, false);
  if (bound && !saved) return *bound * ulp_at(tensor.dtype, largest);
  return gross(tensor.dtype, largest);
}

}  // namespace fusediff
