#include "engine/gradient_probe.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace fusediff {
namespace {

// First steps in units of the element's scale. The largest leaves a truncation of about its sixth power; functions
// that bend on a shorter scale than their argument has (softmax of large logits) need the smaller ones.
constexpr std::array kFirstSteps = {0x1p-7, 0x1p-12, 0x1p-17};
constexpr std::array kOtherFirstSteps = {0x1.8p-9, 0x1.8p-14, 0x1.8p-18};
// So small that the forward is a straight line there: what is left of its second difference is noise.
constexpr std::array kNoiseSteps = {0x1p-36, 0x1.4p-37, 0x1.8p-39, 0x1p-40};

double power_of_two_above(double value) {
  int exponent = 0;
  std::frexp(value, &exponent);
  return std::ldexp(1.0, std::clamp(exponent, -1000, 1000));
}

double median_size(const std::vector<double>& values) {
  std::vector<double> sizes;
  for (const double value : values) {
    if (std::isfinite(value) && value != 0) sizes.push_back(std::abs(value));
  }
  if (sizes.empty()) return 0;
  const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  return *middle;
}

}  // namespace

std::vector<double> step_scales(const std::vector<double>& values) {
  const double median = median_size(values);
  std::vector<double> scales;
  scales.reserve(values.size());
  for (const double value : values) {
    const double size = std::max(std::isfinite(value) ? std::abs(value) : 0, median);
    scales.push_back(size == 0 ? 1 : power_of_two_above(size));
  }
  return scales;
}

bool GradientProber::start() {
  ++runs_;
  const bool ok = forward_.run(runner_, budget_, base_, why_);
  total_ = 0;
  for (std::size_t t = 0; ok && t < base_.size(); ++t) total_ += std::abs(forward_.cotangents()[t] * base_[t]);
  finite_ = ok || why_ != GradientForward::kNotFinite;
  return ok;
}

Probe GradientProber::direction(int variable, Rng& rng) const {
  Probe probe{variable, -1, step_scales(forward_.point(variable))};
  for (double& d : probe.direction) {
    if (rng.one_in(2)) d = -d;
  }
  return probe;
}

// moved: what the step became, in the unit of the quotient: of the element, or of the direction.
bool GradientProber::run_at(const Probe& probe, double step, std::vector<double>& outputs, double& moved) {
  const std::vector<double>& point = forward_.point(probe.variable);
  if (probe.index >= 0) {
    const double from = point[static_cast<std::size_t>(probe.index)];
    moved = forward_.move(probe.variable, probe.index, from + step) - from;
    ++runs_;
    const bool ok = forward_.run(runner_, budget_, outputs, why_);
    forward_.move(probe.variable, probe.index, from);
    return ok;
  }
  std::vector<double> values(point.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = point[i] + step * probe.direction[i];
  moved = step;
  forward_.move_all(probe.variable, values);
  ++runs_;
  const bool ok = forward_.run(runner_, budget_, outputs, why_);
  forward_.move_back(probe.variable);
  return ok;
}

// What cancels inside the forward has about the size of what is moved, whatever is left of it.
double GradientProber::size_of(const Probe& probe) {
  const auto known = scales_.find(probe.variable);
  const std::vector<double>& scales =
      known != scales_.end() ? known->second : scales_[probe.variable] = step_scales(forward_.point(probe.variable));
  if (probe.index >= 0) return scales[static_cast<std::size_t>(probe.index)];
  return scales.empty() ? 0 : *std::min_element(scales.begin(), scales.end());
}

double GradientProber::natural(int variable, std::int64_t index) { return total_ / size_of({variable, index, {}}); }

std::optional<DifferenceStep> GradientProber::difference(const Probe& probe, double step) {
  double up = 0, down = 0;
  if (!run_at(probe, step, above_, up) || !run_at(probe, -step, below_, down)) return std::nullopt;
  const std::vector<double>& weight = forward_.cotangents();
  DifferenceStep d;
  d.step = (up - down) / 2;
  const double size = size_of(probe);
  if (!(d.step > 0)) return std::nullopt;
  double change = 0, bend = 0, bends = 0;
  for (std::size_t t = 0; t < weight.size(); ++t) {
    change += weight[t] * (above_[t] - below_[t]);
    const double of_term = weight[t] * ((above_[t] - base_[t]) - (base_[t] - below_[t]));
    bend += of_term;
    bends += std::abs(of_term);
    d.magnitude += std::abs(weight[t]) * std::max({std::abs(above_[t]), std::abs(base_[t]), std::abs(below_[t]), size});
  }
  d.slope = change / (2 * d.step);
  d.bend = bend / d.step;
  d.bends = bends / d.step;
  return d;
}

// A forward in f64 is at best as good as one that gets each input rounded: how far that moves L. Seen at a size where
// inputs that swallow each other (1e12 + 1) show it, and brought back to one rounding.
double GradientProber::noise_of_rounding() {
  if (rounding_) return *rounding_;
  constexpr int kTimes = 4;
  constexpr double kSeenAt = 0x1p-40;
  Rng rng(1);
  double furthest = 0;
  for (int i = 0; i < kTimes; ++i) {
    forward_.jitter(kSeenAt, rng);
    ++runs_;
    const bool ok = forward_.run(runner_, budget_, above_, why_);
    double change = 0;
    for (std::size_t t = 0; ok && t < base_.size(); ++t) change += forward_.cotangents()[t] * (above_[t] - base_[t]);
    furthest = std::max(furthest, ok ? std::abs(change) : std::numeric_limits<double>::infinity());
  }
  forward_.settle_down();
  rounding_ = furthest * (float_format(DType::kF64).unit_roundoff / kSeenAt);
  return *rounding_;
}

double GradientProber::noise_of(int variable) {
  const auto known = noise_.find(variable);
  if (known != noise_.end()) return known->second;
  Rng rng(static_cast<std::uint64_t>(variable));
  double noise = noise_of_rounding();
  for (const double step : kNoiseSteps) {
    const std::optional<DifferenceStep> d = difference(direction(variable, rng), step);
    if (d) noise = std::max(noise, std::abs(d->bend * d->step));
  }
  return noise_[variable] = noise;
}

// firsts: the largest steps to start from, in the unit of the probe.
std::optional<Quotient> GradientProber::best_of(const Probe& probe, std::span<const double> firsts, double enough) {
  const double noise = noise_of(probe.variable);
  std::optional<Quotient> best;
  for (const double first : firsts) {
    Steps steps;
    bool complete = true;
    for (std::size_t k = 0; k < kDifferenceSteps && complete; ++k) {
      const std::optional<DifferenceStep> d = difference(probe, std::ldexp(first, -static_cast<int>(k)));
      complete = d.has_value();
      if (complete) steps[k] = *d;
    }
    if (!complete) continue;
    const std::optional<Quotient> quotient = settle(steps, noise);
    const auto rank = [](const Quotient& q) { return std::make_pair(!q.converges, q.error); };
    if (quotient && (!best || rank(*quotient) < rank(*best))) best = quotient;
    if (best && best->converges && best->error <= std::max(enough, 0x1p-24 * std::abs(best->value))) break;
  }
  return best;
}

std::optional<Quotient> GradientProber::quotient(const Probe& probe, double enough) {
  const std::vector<double>& point = forward_.point(probe.variable);
  double scale = 1;
  if (probe.index >= 0) {
    if (!std::isfinite(point[static_cast<std::size_t>(probe.index)])) return std::nullopt;
    scale = size_of(probe);
  }
  std::array<double, kFirstSteps.size()> firsts = kFirstSteps;
  for (double& first : firsts) first *= scale;
  return best_of(probe, firsts, enough);
}

std::vector<std::optional<Quotient>> GradientProber::on_every_scale(const Probe& probe, double enough) {
  std::vector<double> scales = {1};
  if (probe.index >= 0) {
    const std::vector<double>& point = forward_.point(probe.variable);
    const double value = std::abs(point[static_cast<std::size_t>(probe.index)]);
    scales.push_back(size_of(probe));
    if (value > 0) scales.push_back(power_of_two_above(value));
    std::sort(scales.begin(), scales.end());
    scales.erase(std::unique(scales.begin(), scales.end()), scales.end());
  } else {
    scales.push_back(0x1p-10);
  }
  std::vector<std::optional<Quotient>> quotients;
  for (const double scale : scales) {
    std::array<double, kOtherFirstSteps.size()> firsts = kOtherFirstSteps;
    for (double& first : firsts) first *= scale;
    quotients.push_back(best_of(probe, firsts, enough));
  }
  return quotients;
}

std::vector<std::array<double, 2>> GradientProber::sweep(int variable, std::int64_t index) {
  constexpr int kMostPoints = 15;
  constexpr int kAlways = 6;  // down to 0.005
  constexpr std::array kMantissas = {2.0, 1.0, 0.5};
  const std::vector<double>& weight = forward_.cotangents();
  const double size = median_size(forward_.point(variable));
  // From 0.2 down for values of about 1; from a power of ten of their size for others.
  const double decade = size > 0 ? std::round(std::log10(size)) : 0;
  const double unit = std::abs(decade) <= 1 ? 0.1 : 0.1 * std::pow(10.0, decade);
  const Probe probe{variable, index, {}};
  std::vector<std::array<double, 2>> points;
  for (int p = 0; p < kMostPoints; ++p) {
    const double eps = unit * kMantissas[static_cast<std::size_t>(p % 3)] * std::pow(10.0, -(p / 3));
    double up = 0, down = 0;
    if (!run_at(probe, eps, above_, up) || !run_at(probe, -eps, below_, down) || !(up > down)) break;
    double change = 0, rounding = 0;
    for (std::size_t t = 0; t < weight.size(); ++t) {
      if (above_[t] == below_[t]) continue;
      change += weight[t] * (above_[t] - below_[t]);
      rounding += std::pow(weight[t] * above_[t] * forward_.roundoff(), 2);
    }
    const double quotient = change / (up - down);
    points.push_back({eps, quotient});
    if (p + 1 >= kAlways && std::sqrt(rounding) / (up - down) > std::abs(quotient) / 4) break;
  }
  return points;
}

}  // namespace fusediff
