#include "model/role_check.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace fusediff {

namespace {

constexpr std::int64_t kMostIndex = (std::int64_t{1} << 31) - 1;  // of an index without a range
constexpr std::int64_t kMostOffset = std::int64_t{1} << 62;

// The whole numbers that a dtype holds without gaps.
IntegerRange whole_range(DType dtype) {
  if (!is_float(dtype)) return integer_range(dtype);
  const std::int64_t last = std::int64_t{1} << (float_format(dtype).mantissa_bits + 1);
  return {-last, last};
}

// The elements of a tensor, read where they lie.
class Elements {
 public:
  Elements(std::span<const std::byte> bytes, const Tensor& tensor)
      : bytes_(bytes), dtype_(tensor.dtype), rows_(row_count(tensor)), columns_(column_count(tensor)) {}

  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  std::int64_t count() const { return rows_ * columns_; }
  DType dtype() const { return dtype_; }
  std::uint64_t bits(std::int64_t i) const {
    return load_bits(dtype_, bytes_.data() + static_cast<std::size_t>(i) * size_of(dtype_));
  }
  double number(std::int64_t i) const {
    const std::uint64_t element = bits(i);
    return is_float(dtype_) ? float_value(dtype_, element) : static_cast<double>(integer_value(dtype_, element));
  }
  // Nothing when a float is not whole.
  std::optional<std::int64_t> whole(std::int64_t i) const {
    if (!is_float(dtype_)) return integer_value(dtype_, bits(i));
    const double value = number(i);
    if (!(value >= -0x1p62 && value <= 0x1p62)) return std::nullopt;
    const auto cut = static_cast<std::int64_t>(value);
    return static_cast<double>(cut) == value ? std::optional(cut) : std::nullopt;
  }
  std::string text(std::int64_t i) const {
    return is_float(dtype_) ? shortest(number(i)) : std::to_string(integer_value(dtype_, bits(i)));
  }

 private:
  std::span<const std::byte> bytes_;
  DType dtype_;
  std::int64_t rows_;
  std::int64_t columns_;
};

using Found = std::optional<Violation>;

Found at(std::int64_t element, std::string what) { return Violation{element, -1, false, std::move(what)}; }
Found in_row(std::int64_t first, std::string what) { return Violation{first, -1, true, std::move(what)}; }

std::string range_text(const RoleLimits& limits) {
  return std::to_string(limits.low) + ".." + std::to_string(limits.high);
}

bool is_sentinel(const RoleLimits& limits, std::int64_t value) {
  return std::find(limits.also.begin(), limits.also.end(), value) != limits.also.end();
}

std::string outside(const std::string& found, const RoleLimits& limits) {
  std::string what = found + " is outside " + range_text(limits);
  for (const std::int64_t sentinel : limits.also) what += " and not " + std::to_string(sentinel);
  return what;
}

Found check_distinct_row(const Elements& elements, const RoleLimits& limits, std::int64_t first) {
  std::vector<std::pair<std::int64_t, std::int64_t>> seen;
  for (std::int64_t i = first; i < first + elements.columns(); ++i) {
    const std::int64_t value = *elements.whole(i);
    if (!is_sentinel(limits, value)) seen.emplace_back(value, i);
  }
  std::sort(seen.begin(), seen.end());
  for (std::size_t j = 1; j < seen.size(); ++j) {
    if (seen[j].first != seen[j - 1].first) continue;
    return Violation{seen[j].second, seen[j - 1].second, false,
                     std::to_string(seen[j].first) + " stands twice in a row, at columns " +
                         std::to_string(seen[j - 1].second - first) + " and " + std::to_string(seen[j].second - first) +
                         ": legal are distinct values"};
  }
  return std::nullopt;
}

Found check_index(const Elements& elements, const RoleLimits& limits) {
  for (std::int64_t i = 0; i < elements.count(); ++i) {
    const std::optional<std::int64_t> value = elements.whole(i);
    const bool legal = value && ((*value >= limits.low && *value <= limits.high) || is_sentinel(limits, *value));
    if (!legal) return at(i, outside(elements.text(i), limits));
  }
  for (std::int64_t row = 0; row < elements.rows(); ++row) {
    const std::int64_t first = row * elements.columns();
    if (limits.distinct) {
      if (Found found = check_distinct_row(elements, limits, first)) return found;
    }
    for (std::int64_t i = first + 1; limits.sorted && i < first + elements.columns(); ++i) {
      if (*elements.whole(i - 1) <= *elements.whole(i)) continue;
      return Violation{i, i - 1, false,
                       elements.text(i) + " comes after " + elements.text(i - 1) + ": legal is ascending in a row"};
    }
  }
  return std::nullopt;
}

Found check_counts(const Elements& elements, const RoleLimits& limits) {
  for (std::int64_t row = 0; row < elements.rows(); ++row) {
    const std::int64_t first = row * elements.columns();
    __extension__ __int128 sum = 0;
    for (std::int64_t i = first; i < first + elements.columns(); ++i) {
      const std::optional<std::int64_t> value = elements.whole(i);
      if (!value || *value < limits.low || *value > limits.high) return at(i, outside(elements.text(i), limits));
      sum += *value;
    }
    if (!limits.sum || elements.columns() == 0 || sum == *limits.sum) continue;
    const bool fits = sum <= kMostOffset;
    return in_row(first, "counts sum to " + (fits ? std::to_string(static_cast<std::int64_t>(sum)) : "over 2^62") +
                             ": legal is " + std::to_string(*limits.sum));
  }
  return std::nullopt;
}

Found check_offsets(const Elements& elements, const RoleLimits& limits) {
  for (std::int64_t row = 0; row < elements.rows(); ++row) {
    const std::int64_t first = row * elements.columns(), end = first + elements.columns();
    for (std::int64_t i = first; i < end; ++i) {
      const std::optional<std::int64_t> value = elements.whole(i);
      if (!value) return at(i, elements.text(i) + " is no offset: legal is a whole number");
      if (i == first && *value != 0) return at(i, "offsets begin with " + elements.text(i) + ": legal is 0");
      if (i > first && *value < *elements.whole(i - 1)) {
        return Violation{i, i - 1, false,
                         elements.text(i) + " comes after " + elements.text(i - 1) + ": offsets never fall"};
      }
    }
    if (limits.sum && end > first && *elements.whole(end - 1) != *limits.sum) {
      return at(end - 1, "offsets end with " + elements.text(end - 1) + ": legal is " + std::to_string(*limits.sum));
    }
  }
  return std::nullopt;
}

Found check_mask(const Elements& elements) {
  const DType dtype = elements.dtype();
  for (std::int64_t i = 0; i < elements.count(); ++i) {
    const std::uint64_t bits = elements.bits(i);
    if (!is_float(dtype)) {
      if (bits > 1) return at(i, elements.text(i) + " is no mask value: legal are 0 and 1");
      continue;
    }
    const bool minus_infinity = !is_nan(dtype, bits) && !is_finite(dtype, bits) && elements.number(i) < 0;
    if (!is_zero(dtype, bits) && !minus_infinity) {
      return at(i, elements.text(i) + " is no mask value: legal are 0 and -inf");
    }
  }
  return std::nullopt;
}

Found check_scale(const Elements& elements) {
  for (std::int64_t i = 0; i < elements.count(); ++i) {
    const bool positive = is_finite(elements.dtype(), elements.bits(i)) && elements.number(i) > 0;
    if (!positive) return at(i, elements.text(i) + " is no scale: legal is a positive finite number");
  }
  return std::nullopt;
}

double probability_slack(DType dtype, std::int64_t n) {
  constexpr double kSingle = 0x1p-24;  // the unit roundoff of f32
  const FloatFormat& format = float_format(dtype);
  const double each = kSingle + format.min_denormal / 2;
  return 4 * std::max(format.unit_roundoff, kSingle) + static_cast<double>(n) * each;
}

Found check_probability(const Elements& elements) {
  const double slack = probability_slack(elements.dtype(), elements.columns());
  for (std::int64_t row = 0; row < elements.rows(); ++row) {
    const std::int64_t first = row * elements.columns();
    double sum = 0;
    for (std::int64_t i = first; i < first + elements.columns(); ++i) {
      const double value = elements.number(i);
      if (!(value >= 0 && value <= 1 + slack)) {
        return at(i, elements.text(i) + " is no probability: legal is 0 to 1");
      }
      sum += value;
    }
    if (elements.columns() == 0 || (sum >= 1 - slack && sum <= 1 + slack)) continue;
    return in_row(first, "row " + std::to_string(row) + " sums to " + shortest(sum) + ": legal is 1, give or take " +
                             shortest(slack));
  }
  return std::nullopt;
}

Found check_bools(const Elements& elements) {
  for (std::int64_t i = 0; i < elements.count(); ++i) {
    if (elements.bits(i) > 1) return at(i, elements.text(i) + " is no bool: legal are the bytes 0 and 1");
  }
  return std::nullopt;
}

}  // namespace

Result<RoleLimits> role_limits(const InputRule& rule, const Tensor& tensor, const Call& call) {
  RoleLimits limits;
  if (rule.role != Role::kIndex && rule.role != Role::kCounts && rule.role != Role::kOffsets) return limits;
  limits.distinct = rule.distinct;
  limits.sorted = rule.sorted;
  limits.also = rule.also;
  if (rule.sum) {
    const Result<std::int64_t> sum = call.evaluate(*rule.sum);
    if (!sum.ok()) return sum.error();
    limits.sum = *sum;
  }
  const IntegerRange holds = whole_range(tensor.dtype);
  limits.high = rule.role == Role::kIndex ? kMostIndex : kMostOffset;
  if (rule.range) {
    const Result<std::int64_t> low = call.evaluate(rule.range->first);
    if (!low.ok()) return low.error();
    const Result<std::int64_t> high = call.evaluate(rule.range->second);
    if (!high.ok()) return high.error();
    limits.low = *low;
    limits.high = *high;
  }
  limits.low = std::max({limits.low, holds.low, rule.role == Role::kIndex ? -kMostOffset : 0});
  limits.high = std::min({limits.high, holds.high, kMostOffset});
  return limits;
}

std::optional<Violation> find_violation(std::span<const std::byte> bytes, Role role, const RoleLimits& limits,
                                        const Tensor& tensor) {
  const Elements elements(bytes, tensor);
  if (tensor.dtype == DType::kBool) {
    if (Found found = check_bools(elements)) return found;
  }
  switch (role) {
    case Role::kIndex:
      return check_index(elements, limits);
    case Role::kCounts:
      return check_counts(elements, limits);
    case Role::kOffsets:
      return check_offsets(elements, limits);
    case Role::kMask:
      return check_mask(elements);
    case Role::kScale:
      return check_scale(elements);
    case Role::kProbability:
      return check_probability(elements);
    default:
      return std::nullopt;
  }
}

}  // namespace fusediff
