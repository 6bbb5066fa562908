#include "oracle/bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/number_text.h"
#include "oracle/bits.h"

namespace fusediff {
namespace {

constexpr const char* kNoTruth =
    "with no f64 truth, so nothing shows that it is rounding: let unfused (or reference) take f64 tensors";

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// ULP between a value of the dtype and the truth. 0 where the value is the truth rounded, infinities and NaN included.
// One ULP of an integer is 1.
double error_of(DType dtype, std::uint64_t bits, double truth, double scale) {
  if (!is_float(dtype)) {
    const double error = std::abs(static_cast<double>(integer_value(dtype, bits)) - truth);
    return std::isnan(error) ? kInfinity : error;
  }
  const double value = float_value(dtype, bits);
  if (std::isnan(value) && std::isnan(truth)) return 0;
  if (value == truth || bits == round_to_bits(dtype, truth)) {
    return std::isfinite(value) && std::isfinite(truth) ? std::abs(value - truth) / ulp_at(dtype, scale) : 0;
  }
  if (!std::isfinite(value) || !std::isfinite(truth)) return kInfinity;
  return std::abs(value - truth) / ulp_at(dtype, std::isfinite(scale) ? scale : float_format(dtype).max_finite);
}

struct Worst {
  std::array<double, 2> error{};
  bool not_finite = false;  // one side is not finite where the other and the truth are, or the reverse
};

Worst worst_errors(const Tensor& tensor, std::span<const std::byte> target, std::span<const std::byte> against,
                   const OutputTruth& truth, const std::vector<double>& scale, const std::vector<bool>& skip) {
  const std::size_t size = size_of(tensor.dtype);
  Worst worst;
  for (std::size_t i = 0; i < truth.value.size(); ++i) {
    if (!skip.empty() && skip[i]) continue;
    const std::array<std::uint64_t, 2> bits = {load_bits(tensor.dtype, target.data() + i * size),
                                               load_bits(tensor.dtype, against.data() + i * size)};
    const bool truth_finite = is_finite(tensor.dtype, round_to_bits(tensor.dtype, truth.value[i]));
    const std::array<bool, 2> finite = {is_finite(tensor.dtype, bits[0]), is_finite(tensor.dtype, bits[1])};
    if (finite[0] != finite[1]) worst.not_finite = true;
    if (bits[0] == bits[1] && !finite[0]) continue;  // both overflow alike: no part of what differs
    for (const std::size_t s : {0u, 1u}) {
      // Beside a side that is finite like the truth, infinity is no matter of ULP: the class is non_finite.
      if (finite[s] != truth_finite) {
        worst.error[s] = kInfinity;
        continue;
      }
      worst.error[s] = std::max(worst.error[s], error_of(tensor.dtype, bits[s], truth.value[i], scale[i]));
    }
  }
  return worst;
}

std::string ulps(double error) { return std::isinf(error) ? "not finite" : short_decimal(error) + " ULP"; }

void by_bound(Difference& d, double bound, const std::string& why, std::optional<Side>& accused) {
  const std::array<double, 2>& error = *d.error;
  d.bound = bound;
  const bool target_out = error[0] > bound;
  const bool against_out = error[1] > bound;
  d.cls = target_out || against_out ? FindingClass::kDamage : FindingClass::kRounding;
  if (target_out != against_out) accused = target_out ? Side::kTarget : Side::kAgainst;
  d.judged_by = std::string(d.cls == FindingClass::kRounding ? "both sides within" : "outside") +
                " the worst-case bound of " + short_decimal(bound) + " ULP" + (why.empty() ? "" : " (" + why + ")");
}

void by_unfused(Difference& d, const std::string& why_not_bound, std::optional<Side>& accused) {
  const std::array<double, 2>& error = *d.error;
  const double allowed = kRelativeToUnfused * std::max(error[1], 1.0);
  // An unfused side that is infinitely far off measures nothing.
  const bool rounding = error[0] <= allowed && std::isfinite(error[1]);
  d.cls = rounding ? FindingClass::kRounding : FindingClass::kDamage;
  if (!(error[0] <= allowed)) accused = Side::kTarget;
  d.judged_by = why_not_bound + "relative to unfused: " + ulps(error[0]) + " against " + ulps(error[1]) + ", " +
                short_decimal(allowed) + " ULP allowed";
}

// Both sides are runs of one path: neither measures the other.
void by_reference(Difference& d, double measure, const std::string& why_not_bound, std::optional<Side>& accused) {
  const std::array<double, 2>& error = *d.error;
  const double allowed = kRelativeToUnfused * std::max(measure, 1.0);
  const bool target_out = !(error[0] <= allowed), against_out = !(error[1] <= allowed);
  // A measure that is infinitely far off measures nothing.
  const bool rounding = !target_out && !against_out && std::isfinite(measure);
  d.cls = rounding ? FindingClass::kRounding : FindingClass::kDamage;
  if (target_out != against_out) accused = target_out ? Side::kTarget : Side::kAgainst;
  d.judged_by = why_not_bound + "relative to unfused: " + ulps(error[0]) + " and " + ulps(error[1]) + " against " +
                ulps(measure) + ", " + short_decimal(allowed) + " ULP allowed";
}

// [elements] `skip`, and where the sides have the same bits.
std::vector<bool> alike(const Tensor& tensor, std::span<const std::byte> target, std::span<const std::byte> against,
                        std::vector<bool> skip) {
  const std::size_t size = size_of(tensor.dtype);
  skip.resize(target.size() / size, false);
  for (std::size_t i = 0; i < skip.size(); ++i) {
    skip[i] = skip[i] ||
              load_bits(tensor.dtype, target.data() + i * size) == load_bits(tensor.dtype, against.data() + i * size);
  }
  return skip;
}

bool one_side_is_finite(const Tensor& tensor, std::span<const std::byte> target, std::span<const std::byte> against,
                        const std::vector<bool>& skip) {
  const std::size_t size = size_of(tensor.dtype);
  for (std::size_t i = 0; i * size < target.size(); ++i) {
    if (!skip.empty() && skip[i]) continue;
    const std::uint64_t a = load_bits(tensor.dtype, target.data() + i * size);
    const std::uint64_t b = load_bits(tensor.dtype, against.data() + i * size);
    if (is_finite(tensor.dtype, a) != is_finite(tensor.dtype, b)) return true;
  }
  return false;
}

DType dtype_of_bound(const Call& call, std::size_t output, const std::string& by) {
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.op->inputs[i].name == by) return call.inputs[i].dtype;
  }
  return call.outputs[output].dtype;
}

}  // namespace

std::vector<double> bound_scales(const Tensor& tensor, BoundScale of, const OutputTruth& truth) {
  std::vector<double> scale(truth.value.size());
  for (std::size_t i = 0; i < scale.size(); ++i) scale[i] = std::abs(truth.value[i]);
  if (of == BoundScale::kElement) return scale;
  if (made_of_inputs(of)) {
    for (std::size_t i = 0; i < scale.size(); ++i) scale[i] = std::max(scale[i], std::abs(truth.absolute[i]));
    return scale;
  }
  const std::size_t columns = tensor.shape.empty() ? 1 : static_cast<std::size_t>(tensor.shape.back());
  for (std::size_t row = 0; row + columns <= scale.size(); row += columns) {
    double whole = 0;
    for (std::size_t i = row; i < row + columns; ++i) {
      if (!std::isfinite(scale[i])) continue;
      whole = of == BoundScale::kRowMax ? std::max(whole, scale[i]) : whole + scale[i];
    }
    std::fill_n(scale.begin() + static_cast<std::ptrdiff_t>(row), columns, whole);
  }
  return scale;
}

std::optional<double> stated_bound(const Call& call, std::size_t output, bool has_absolute, std::string* why) {
  const auto none = [&](const std::string& reason) {
    if (why != nullptr) *why = reason;
    return std::nullopt;
  };
  const std::optional<BoundRule>& rule = call.op->outputs[output].bound;
  if (!rule) return none("no bound stated; ");
  const DType dtype = dtype_of_bound(call, output, rule->by);
  const auto of_dtype = rule->by_dtype.find(dtype);
  const Expr* ulp = rule->by_dtype.empty() ? &rule->ulp : &of_dtype->second;
  if (!rule->by_dtype.empty() && of_dtype == rule->by_dtype.end())
    return none("no bound stated for " + std::string(name_of(dtype)) + "; ");
  if (made_of_inputs(rule->of) && !has_absolute) return none("no truth on absolute inputs for the bound; ");
  const Result<std::int64_t> bound = call.evaluate(*ulp);
  if (!bound.ok()) return none("the bound cannot be evaluated (" + bound.error().what + "); ");
  return static_cast<double>(*bound);
}

void classify(Difference& d, const Call& call, std::size_t output, std::span<const std::byte> target,
              std::span<const std::byte> against, const OutputTruth& truth, const std::vector<bool>& skip,
              std::optional<Side>& accused) {
  if (d.cls != FindingClass::kDamage) return;
  const Tensor& tensor = call.outputs[output];
  const OutputRule& rule = call.op->outputs[output];
  if (!is_float(tensor.dtype) && !rule.bound) {
    const bool may_differ = rule.agree.allowed(tensor.dtype) > 0;
    d.judged_by =
        may_differ ? "an integer output, further apart than it may be" : "an integer output that must be equal";
    return;
  }
  if (truth.value.empty()) {
    if (one_side_is_finite(tensor, target, against, skip)) {
      d.cls = FindingClass::kNonFinite;
      d.judged_by = "one side is not finite where the other is; there is no f64 truth to say which is wrong";
      return;
    }
    d.judged_by = kNoTruth;
    return;
  }
  std::string no_bound;
  const std::optional<double> bound = stated_bound(call, output, !truth.absolute.empty(), &no_bound);
  const BoundScale of = bound ? rule.bound->of : BoundScale::kElement;
  const std::vector<double> scale = bound_scales(tensor, of, truth);
  const Worst worst = worst_errors(tensor, target, against, truth, scale, skip);
  d.error = worst.error;
  if (worst.not_finite) {
    d.cls = FindingClass::kNonFinite;
    if (std::isinf(worst.error[0]) != std::isinf(worst.error[1])) {
      accused = std::isinf(worst.error[0]) ? Side::kTarget : Side::kAgainst;
    }
    d.judged_by = "one side is not finite where the other is";
    return;
  }
  const auto without_bound = [&](const std::string& why) {
    if (truth.reference.empty()) return by_unfused(d, why, accused);
    const Worst measure = worst_errors(tensor, truth.reference, truth.reference, truth, scale, skip);
    by_reference(d, measure.error[0], why, accused);
  };
  if (!bound) return without_bound(no_bound);
  // Where both sides give the same nobody is accused here, however far off that is: it is no difference.
  d.error = worst_errors(tensor, target, against, truth, scale, alike(tensor, target, against, skip)).error;
  by_bound(d, *bound, rule.bound->why, accused);
}

}  // namespace fusediff
