#include "oracle/bits.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace fusediff {

ElementDifference compare_elements(DType dtype, std::uint64_t a, std::uint64_t b, std::uint64_t agreed) {
  if (a == b) return ElementDifference::kNone;
  if (is_nan(dtype, a) && is_nan(dtype, b)) return ElementDifference::kNanBits;
  if (is_finite(dtype, a) != is_finite(dtype, b)) return ElementDifference::kNotFinite;
  const std::uint64_t distance = ulp_distance(dtype, a, b);
  if (distance == 0) return agreed > 0 ? ElementDifference::kAgreed : ElementDifference::kZeroSign;
  return distance <= agreed ? ElementDifference::kAgreed : ElementDifference::kNumber;
}

std::optional<Difference> compare_output(const OutputRule& rule, const Tensor& tensor,
                                         std::span<const std::byte> target, std::span<const std::byte> against,
                                         const std::vector<bool>& skip) {
  if (target.size() == against.size() &&
      (target.empty() || std::memcmp(target.data(), against.data(), target.size()) == 0)) {
    return std::nullopt;
  }
  const std::size_t size = size_of(tensor.dtype);
  const std::size_t n = std::min(target.size(), against.size()) / size;
  const std::uint64_t agreed = rule.agree.allowed(tensor.dtype);
  std::vector<std::uint64_t> distances;
  ElementDifference worst = ElementDifference::kNone;
  Difference d;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t a = load_bits(tensor.dtype, target.data() + i * size);
    const std::uint64_t b = load_bits(tensor.dtype, against.data() + i * size);
    if (a == b || (!skip.empty() && skip[i])) continue;
    const ElementDifference kind = compare_elements(tensor.dtype, a, b, agreed);
    if (kind == ElementDifference::kAgreed || kind == ElementDifference::kNone) continue;
    if (!rule.nan_bits) {
      if (kind > worst && worst <= ElementDifference::kNanBits) {  // what came before was less than a difference
        distances.clear();
        d.max_ulp = 0;
      }
      if (kind == ElementDifference::kNanBits && worst > kind) continue;
    }
    worst = std::max(worst, kind);
    const std::uint64_t distance = ulp_distance(tensor.dtype, a, b);
    if (is_float(tensor.dtype) && is_finite(tensor.dtype, a) && is_finite(tensor.dtype, b)) {
      d.largest = std::max(d.largest, std::abs(float_value(tensor.dtype, a) - float_value(tensor.dtype, b)));
    }
    if (distances.empty()) {
      d.first = static_cast<std::int64_t>(i);
      d.first_bits = {a, b};
    }
    if (distances.empty() || distance > d.max_ulp) {
      d.max_ulp = distance;
      d.worst = static_cast<std::int64_t>(i);
      d.worst_bits = {a, b};
    }
    distances.push_back(distance);
  }
  if (distances.empty()) return std::nullopt;
  d.output = tensor.name;
  d.dtype = tensor.dtype;
  d.stage = rule.stage;
  d.elements = static_cast<std::int64_t>(n);
  d.differing = static_cast<std::int64_t>(distances.size());
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  d.median_ulp = *middle;
  d.cls = worst == ElementDifference::kNanBits    ? FindingClass::kNanBits
          : worst == ElementDifference::kZeroSign ? FindingClass::kZeroSign
                                                  : FindingClass::kDamage;
  return d;
}

std::uint64_t largest_distance(DType dtype, std::span<const std::byte> target, std::span<const std::byte> against) {
  if (target.size() != against.size()) return UINT64_MAX;
  if (target.empty() || std::memcmp(target.data(), against.data(), target.size()) == 0) return 0;
  const std::size_t size = size_of(dtype);
  std::uint64_t largest = 0;
  for (std::size_t at = 0; at < target.size(); at += size) {
    largest = std::max(
        largest, ulp_distance(dtype, load_bits(dtype, target.data() + at), load_bits(dtype, against.data() + at)));
  }
  return largest;
}

}  // namespace fusediff
