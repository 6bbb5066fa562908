#include "engine/gradient_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "engine/adapt.h"
#include "engine/finding_of.h"

namespace fusediff {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kEveryElement = 64;  // of a gradient with no more than these
constexpr std::size_t kDirections = 2;
constexpr std::int64_t kNoDirections = 8;  // where the elements are so few that each is looked at anyway
constexpr int kSingles = 4;
constexpr int kSinglesWithoutDirections = 16;
constexpr std::size_t kWorstOfAPath = 3;
constexpr int kPerturbations = 4;
// Beyond it a function that goes in steps of 1 (a quantiser, whose backward is zero by right) looks like a slope.
constexpr double kHuge = 0x1p16;
// Of `natural`, in units of the gradient's own dtype: terms of that size may cancel within a path whose record states
// no bound.
constexpr double kOwnRoundings = 16;
constexpr double kShiftFactor = 4;         // as one side may be off against the other: the shift is of one rounding
constexpr double kPerturbation = 0x1p-20;  // relative: a straight line for what follows, far above f64's rounding
constexpr std::uint64_t kWork = std::uint64_t{1} << 25;
constexpr std::uint64_t kThoroughWork = std::uint64_t{1} << 28;
constexpr std::uint64_t kRunOverhead = 2048;  // elements that cost as much as a run of none

std::vector<double> values_of(const Tensor& tensor, const std::vector<std::byte>& bytes) {
  std::vector<double> values(bytes.size() / size_of(tensor.dtype));
  widen(tensor.dtype, bytes, values);
  return values;
}

}  // namespace

std::string why_nothing_was_judged(const GradientTally& tally) {
  if (tally.judged > 0) return "every gradient that was looked at is zero";
  std::string text;
  const auto add = [&](int count, const std::string& what) {
    if (count > 0) text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + what;
  };
  add(tally.unsettled, "at a kink or hidden by rounding");
  add(tally.not_finite, "not finite");
  add(tally.absent, "gradients without elements or without their input");
  if (tally.out_of_time) text += std::string(text.empty() ? "" : ", ") + "the time cap passed";
  return "no derivative could be judged: " + (text.empty() ? "the record names no gradient" : text);
}

// One output of the backward with all that is known of it.
struct GradientSearch::Gradient {
  std::size_t output = 0;
  int variable = -1;
  std::int64_t elements = 0;
  std::vector<double> truth;                   // empty: none
  std::array<std::vector<double>, 2> path;     // [side], empty: that side does not give it
  std::array<std::vector<double>, 2> allowed;  // [side] around the truth
  std::array<double, 2> allowed_alone{};
  std::vector<double> sensitivity;
  std::vector<double> saved_shift;  // how far the truth moves with the saved tensors as the paths get them
  std::vector<Probe> directions;
  std::vector<double> direction_sensitivity;
  std::set<std::int64_t> outside;  // elements in which a path is further from the truth than it may be
  std::set<std::int64_t> looked_at;
  bool direction_failed = false;
};

GradientSearch::GradientSearch(const Subject& subject, const std::array<const Execution*, 2>& executions,
                               const std::array<std::vector<bool>, 2>& given, Budget& budget)
    : subject_(subject),
      executions_(executions),
      given_(given),
      budget_(budget),
      wide_(widened(subject.prepared.call)) {}
GradientSearch::~GradientSearch() = default;

std::string GradientSearch::forward() const {
  return name_of_side(forward_->path()) + " of " + subject_.prepared.call.op->gradient->of;
}

// As saved tensors find their producer, with a reference path before unfused, as the truth does.
std::optional<Verdict> GradientSearch::find_forward() {
  const std::string& of = subject_.prepared.call.op->gradient->of;
  std::string why = "no target here offers it";
  Verdict::Kind kind = Verdict::Kind::kSkip;
  const Comparison& comparison = subject_.comparison;
  for (const Target* target : {comparison.sides[1].target, comparison.sides[0].target, comparison.fallback}) {
    if (target == nullptr) continue;
    for (const char* path : {"reference", "unfused"}) {
      const Operator* op = target->schema.find(of);
      if (op == nullptr || !op->has_path(path)) continue;
      Result<GradientForward> made = GradientForward::make({target, path}, *point_, subject_.options.max_bytes);
      if (!made.ok()) {
        why = target->name + ":" + path + ": " + made.error().what;
        continue;
      }
      forward_.emplace(*std::move(made));
      prober_.emplace(*forward_, subject_.runner, budget_);
      if (prober_->start()) return std::nullopt;
      why = target->name + ":" + path + ": " + prober_->why();
      if (!prober_->is_finite()) kind = Verdict::Kind::kVacuous;
    }
  }
  return Verdict{kind, "no derivative of " + of + " in f64: " + why, {}};
}

std::optional<Verdict> GradientSearch::set_up() {
  point_ = widened_point(subject_.prepared, wide_, subject_.comparison, subject_.options, subject_.runner);
  if (!point_) return Verdict{Verdict::Kind::kSkip, "the saved tensors cannot be computed in f64", {}};
  if (std::optional<Verdict> nothing = find_forward()) return nothing;
  truth_ = compute_truth(subject_.prepared, subject_.comparison, subject_.options, subject_.runner);
  measure_inputs();
  if (huge_) return Verdict{Verdict::Kind::kVacuous, "no derivative is judged at numbers of more than 65536", {}};
  take_gradients();
  measure_sensitivity();
  for (Gradient& gradient : gradients_) find_outside(gradient);
  return std::nullopt;
}

void GradientSearch::take_gradients() {
  const Call& call = subject_.prepared.call;
  Rng rng(subject_.c.experiment.seed);
  for (std::size_t o = 0; o < call.outputs.size(); ++o) {
    const Tensor& tensor = call.outputs[o];
    if (!call.op->gradient->wrt.contains(tensor.name)) continue;
    Gradient gradient;
    gradient.output = o;
    gradient.variable = forward_->variable_of(tensor.name);
    gradient.elements = element_count(tensor);
    if (gradient.variable < 0 || gradient.elements == 0 || forward_->tensor(gradient.variable).shape != tensor.shape) {
      ++tally_.absent;
      continue;
    }
    if (o < truth_.outputs.size()) gradient.truth = truth_.outputs[o].value;
    for (const Side side : kSides) {
      const std::size_t s = index_of(side);
      if (tensor.present && given_[s][o]) gradient.path[s] = values_of(tensor, executions_[s]->outputs[o]);
    }
    gradient.sensitivity.assign(gradient.truth.size(), 0);
    for (std::size_t d = 0; d < kDirections && gradient.elements > kNoDirections; ++d) {
      gradient.directions.push_back(prober_->direction(gradient.variable, rng));
    }
    gradient.direction_sensitivity.assign(gradient.directions.size(), 0);
    gradients_.push_back(std::move(gradient));
  }
}

// Every input of the f64 backward off by a little, saved ones apart from each other: how far its gradients then move.
void GradientSearch::measure_sensitivity() {
  if (truth_.by.target == nullptr) return;
  Rng rng(subject_.c.experiment.seed + 1);
  for (int p = 0; p < kPerturbations; ++p) measure_once(rng);
  measure_saved();
}

// The error that the forward left in the saved tensors is no fault of a backward that gets them.
void GradientSearch::measure_saved() {
  const Prepared& prepared = subject_.prepared;
  std::vector<Bytes> inputs = point_->inputs;
  const BackwardPoint narrow = point_of(prepared);
  bool any = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!prepared.computed[i] || wide_.inputs[i].dtype != DType::kF64) continue;
    any = true;
    round_all(DType::kF64, values_of(prepared.call.inputs[i], narrow.inputs[i]), inputs[i]);
  }
  const std::optional<Execution> run =
      any ? run_wide(truth_.by, wide_, inputs, subject_.runner) : std::optional<Execution>();
  if (run) budget_.count(*run);
  for (Gradient& gradient : gradients_) {
    gradient.saved_shift.assign(gradient.truth.size(), any && !run ? kInfinity : 0);
    if (!run) continue;
    const std::vector<double> moved = values_of(wide_.outputs[gradient.output], run->outputs[gradient.output]);
    for (std::size_t i = 0; i < moved.size(); ++i) {
      const double shift = std::abs(moved[i] - gradient.truth[i]);
      gradient.saved_shift[i] = std::isfinite(shift) ? shift : kInfinity;
    }
  }
}

void GradientSearch::measure_once(Rng& rng) {
  std::vector<Bytes> inputs = point_->inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (wide_.inputs[i].dtype != DType::kF64) continue;
    std::vector<double> values = values_of(wide_.inputs[i], inputs[i]);
    for (double& value : values) value *= rng.one_in(2) ? 1 + kPerturbation : 1 - kPerturbation;
    round_all(DType::kF64, values, inputs[i]);
  }
  const std::optional<Execution> run = run_wide(truth_.by, wide_, inputs, subject_.runner);
  if (run) budget_.count(*run);
  for (Gradient& gradient : gradients_) {
    std::vector<double> moved(gradient.truth.size(), kInfinity);
    if (run) moved = values_of(wide_.outputs[gradient.output], run->outputs[gradient.output]);
    std::vector<double> along(gradient.directions.size(), 0);
    for (std::size_t i = 0; i < gradient.truth.size(); ++i) {
      const double change = (moved[i] - gradient.truth[i]) / kPerturbation;
      const double size = std::isfinite(change) ? std::abs(change) : kInfinity;
      gradient.sensitivity[i] = std::max(gradient.sensitivity[i], size);
      for (std::size_t d = 0; d < along.size(); ++d) along[d] += change * gradient.directions[d].direction[i];
    }
    for (std::size_t d = 0; d < along.size(); ++d) {
      const double size = std::isfinite(along[d]) ? std::abs(along[d]) : kInfinity;
      gradient.direction_sensitivity[d] = std::max(gradient.direction_sensitivity[d], size);
    }
  }
}

// Fourth powers of the largest of each input (squares in the narrow formats) must stay in its dtype's range, else a
// path may overflow and underflow where the f64 backward does not; and numbers must not swallow each other in f64.
void GradientSearch::measure_inputs() {
  const Call& call = subject_.prepared.call;
  const auto measure = [&](const std::vector<Tensor>& tensors, const std::vector<Tensor>& wide,
                           const std::vector<Bytes>& bytes) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (!tensors[i].present || !is_float(tensors[i].dtype)) continue;
      const FloatFormat& format = float_format(tensors[i].dtype);
      const double root = format.exponent_bits >= 8 ? 4 : 2;
      double largest = 0;
      for (const double value : values_of(wide[i], bytes[i])) largest = std::max(largest, std::abs(value));
      huge_ = huge_ || !(largest <= kHuge);
      const bool in_range =
          largest <= std::pow(format.max_finite, 1 / root) && largest >= std::pow(format.min_normal, 1 / root);
      ordinary_ = ordinary_ && (largest == 0 || in_range);
    }
  };
  measure(call.inputs, wide_.inputs, point_->inputs);
  measure(call.givens, wide_.givens, point_->givens);
}

void GradientSearch::find_outside(Gradient& gradient) {
  const Call& call = subject_.prepared.call;
  const std::size_t o = gradient.output;
  std::vector<double> natural;
  for (std::int64_t i = 0; i < gradient.elements; ++i) natural.push_back(prober_->natural(gradient.variable, i));
  for (const Side side : kSides) {
    const std::size_t s = index_of(side);
    if (gradient.path[s].empty()) continue;
    gradient.allowed[s].assign(gradient.truth.size(), kInfinity);
    gradient.allowed_alone[s] = kInfinity;
    if (!ordinary_) continue;
    gradient.allowed_alone[s] = allowed_without_truth(call, o, executions_[s]->outputs[o]) +
                                roundings_of_inputs(call, o) * *std::max_element(natural.begin(), natural.end());
    if (gradient.truth.empty()) continue;
    const std::span<const std::byte> against =
        gradient.path[1].empty() ? std::span<const std::byte>() : executions_[1]->outputs[o];
    gradient.allowed[s] = allowed_of_path(call, o, side, against, truth_.outputs[o], gradient.sensitivity, natural);
    for (std::size_t i = 0; i < gradient.truth.size(); ++i)
      gradient.allowed[s][i] += kShiftFactor * gradient.saved_shift[i];
    std::vector<std::pair<double, std::int64_t>> worst;
    for (std::size_t i = 0; i < gradient.truth.size(); ++i) {
      const double off = std::abs(gradient.path[s][i] - gradient.truth[i]) / gradient.allowed[s][i];
      if (off > 1 && std::isfinite(gradient.path[s][i])) worst.emplace_back(-off, static_cast<std::int64_t>(i));
    }
    const std::size_t taken = std::min(worst.size(), kWorstOfAPath);
    std::partial_sort(worst.begin(), worst.begin() + static_cast<std::ptrdiff_t>(taken), worst.end());
    for (std::size_t w = 0; w < taken; ++w) gradient.outside.insert(worst[w].second);
  }
}

bool GradientSearch::affordable(bool first_of_all) {
  const std::uint64_t spent = prober_->runs() * (static_cast<std::uint64_t>(forward_->elements()) + kRunOverhead);
  if (!budget_.left()) tally_.out_of_time = true;
  return budget_.left() && (first_of_all || spent < work_);
}

std::vector<std::int64_t> GradientSearch::singles_of(const Gradient& gradient, bool thorough, Rng& rng) const {
  std::vector<std::int64_t> singles;
  if (gradient.elements <= kEveryElement) {
    for (std::int64_t i = 0; i < gradient.elements; ++i) singles.push_back(i);
    return singles;
  }
  const int wanted = thorough                    ? static_cast<int>(kEveryElement)
                     : gradient.direction_failed ? kSinglesWithoutDirections
                                                 : kSingles;
  for (int i = 0; i < wanted; ++i) singles.push_back(rng.between(0, gradient.elements - 1));
  return singles;
}

void GradientSearch::search(bool thorough) {
  work_ = thorough ? kThoroughWork : kWork;
  for (Gradient& gradient : gradients_) {
    for (const std::int64_t index : gradient.outside) {
      if (affordable(true)) probe_element(gradient, index);
    }
    for (std::size_t d = 0; d < gradient.directions.size(); ++d) {
      if (affordable(d == 0)) probe_direction(gradient, d);
    }
  }
  Rng rng(subject_.c.experiment.seed + 2);
  std::vector<std::vector<std::int64_t>> singles;
  std::size_t most = 0;
  for (const Gradient& gradient : gradients_) {
    singles.push_back(singles_of(gradient, thorough, rng));
    most = std::max(most, singles.back().size());
  }
  for (std::size_t i = 0; i < most; ++i) {
    for (std::size_t g = 0; g < gradients_.size(); ++g) {
      if (i < singles[g].size() && affordable(false)) probe_element(gradients_[g], singles[g][i]);
    }
  }
  if (thorough) drop_lonely_directions();
  std::stable_sort(contradictions_.begin(), contradictions_.end(),
                   [](const Contradiction& a, const Contradiction& b) { return a.off > b.off; });
}

void GradientSearch::probe_element(Gradient& gradient, std::int64_t index) {
  if (!gradient.looked_at.insert(index).second) return;
  const std::size_t i = static_cast<std::size_t>(index);
  GradientSweep facts;
  facts.output = subject_.prepared.call.outputs[gradient.output].name;
  facts.index = index;
  if (!gradient.truth.empty()) facts.truth = gradient.truth[i];
  for (const std::size_t s : {0u, 1u}) {
    if (!gradient.path[s].empty()) facts.path[s] = gradient.path[s][i];
  }
  judge(gradient, {gradient.variable, index, {}}, std::move(facts),
        gradient.truth.empty() ? 0 : gradient.sensitivity[i], 1);
}

void GradientSearch::probe_direction(Gradient& gradient, std::size_t which) {
  const std::vector<double>& direction = gradient.directions[which].direction;
  GradientSweep facts;
  facts.output = subject_.prepared.call.outputs[gradient.output].name;
  double reach = 0;
  for (const double d : direction) reach += std::abs(d);
  const auto along = [&](const std::vector<double>& values) -> std::optional<double> {
    if (values.empty()) return std::nullopt;
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += values[i] * direction[i];
    return sum;
  };
  facts.truth = along(gradient.truth);
  for (const std::size_t s : {0u, 1u}) facts.path[s] = along(gradient.path[s]);
  const int before = tally_.judged;
  judge(gradient, gradient.directions[which], std::move(facts), gradient.direction_sensitivity[which], reach);
  gradient.direction_failed = gradient.direction_failed || tally_.judged == before;
}

// reach: sum of the direction's steps, 1 for an element.
void GradientSearch::judge(Gradient& gradient, const Probe& probe, GradientSweep facts, double sensitivity,
                           double reach) {
  const double natural = probe.index >= 0 ? prober_->natural(probe.variable, probe.index) : prober_->total();
  const double slack = kDefinitionSlack * sensitivity + kInvisible * natural;
  const bool backward_is_finite = facts.truth ? std::isfinite(*facts.truth) && std::isfinite(slack)
                                              : std::isfinite(facts.path[0].value_or(0) + facts.path[1].value_or(0));
  const std::optional<Quotient> quotient =
      backward_is_finite ? prober_->quotient(probe, slack / 4) : std::optional<Quotient>();
  if (!quotient) {
    ++tally_.not_finite;
    return;
  }
  facts.quotient = quotient->value;
  facts.quotient_error = quotient->error;
  const double gradient_size = facts.truth ? *facts.truth : facts.path[0].value_or(facts.path[1].value_or(0));
  if (!tells(*quotient, gradient_size)) {
    ++tally_.unsettled;
    return;
  }
  const bool truth_is_wrong = facts.truth && contradicts(*facts.truth, *quotient, slack);
  std::vector<Contradiction> found;
  if (truth_is_wrong) {
    const double off = std::abs(*facts.truth - quotient->value) / (quotient->error + slack);
    found.push_back({gradient.output, std::nullopt, off, slack, facts});
  }
  const OutputRule& rule = subject_.prepared.call.op->outputs[gradient.output];
  const DType dtype = subject_.prepared.call.outputs[gradient.output].dtype;
  // Terms are as large as the element itself is small, whatever size its step has.
  const double at =
      probe.index < 0 ? 0 : std::abs(forward_->point(probe.variable)[static_cast<std::size_t>(probe.index)]);
  const double terms = at > 0 ? std::max(natural, prober_->total() / at) : natural;
  const double own = rule.bound || !is_float(dtype) ? 0 : kOwnRoundings * float_format(dtype).unit_roundoff * terms;
  judge_paths(gradient, facts, *quotient, slack + own, reach, truth_is_wrong, found);
  if (!found.empty() && !is_confirmed(probe, gradient_size, slack, found)) {
    ++tally_.unsettled;
    return;
  }
  for (Contradiction& contradiction : found) contradictions_.push_back(std::move(contradiction));
  ++tally_.judged;
  if (quotient->value == 0 && gradient_size == 0) ++tally_.zeros;
}

// A kink that one family of steps straddles unseen, and a bend on a scale that it is too coarse for, show in another.
bool GradientSearch::is_confirmed(const Probe& probe, double gradient_size, double slack,
                                  const std::vector<Contradiction>& found) {
  const std::vector<std::optional<Quotient>> quotients = prober_->on_every_scale(probe, slack / 4);
  return std::all_of(quotients.begin(), quotients.end(), [&](const std::optional<Quotient>& again) {
    if (!again || !tells(*again, gradient_size)) return false;
    return std::all_of(found.begin(), found.end(), [&](const Contradiction& c) {
      const double value = c.side ? *c.facts.path[index_of(*c.side)] : *c.facts.truth;
      return contradicts(value, *again, c.allowed);
    });
  });
}

// Beside a truth that is right, a path is looked at where it is further from it than it may be; otherwise the quotient
// alone judges it.
void GradientSearch::judge_paths(const Gradient& gradient, const GradientSweep& facts, const Quotient& quotient,
                                 double slack, double reach, bool truth_is_wrong,
                                 std::vector<Contradiction>& found) const {
  const bool by_truth = facts.truth && !truth_is_wrong;
  for (const Side side : kSides) {
    const std::size_t s = index_of(side);
    if (!facts.path[s]) continue;
    double allowed = gradient.allowed_alone[s] * reach;
    if (by_truth) {
      if (facts.index < 0) continue;
      allowed = gradient.allowed[s][static_cast<std::size_t>(facts.index)];
      if (!(std::abs(*facts.path[s] - *facts.truth) > allowed)) continue;
    }
    if (!contradicts(*facts.path[s], quotient, allowed + slack)) continue;
    const double off = std::abs(*facts.path[s] - quotient.value) / (quotient.error + allowed + slack);
    found.push_back({gradient.output, side, off, allowed + slack, facts});
  }
}

// Along a direction many kinks may look like a smooth bend. What is wrong shows in an element, or in both directions.
void GradientSearch::drop_lonely_directions() {
  const auto supported = [&](const Contradiction& lonely) {
    if (lonely.facts.index >= 0) return true;
    std::size_t directions = 0;
    std::int64_t elements = 0;
    for (const Contradiction& other : contradictions_) {
      if (other.output != lonely.output || other.side != lonely.side) continue;
      if (other.facts.index >= 0) return true;
      ++directions;
    }
    for (const Gradient& gradient : gradients_) {
      if (gradient.output == lonely.output) elements = gradient.elements;
    }
    return directions == kDirections && elements > kEveryElement;
  };
  std::vector<Contradiction> kept;
  for (const Contradiction& contradiction : contradictions_) {
    if (supported(contradiction)) kept.push_back(contradiction);
  }
  contradictions_ = std::move(kept);
}

}  // namespace fusediff
