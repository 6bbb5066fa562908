#include "mutate/sizes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace fusediff {
namespace {

constexpr std::array<std::int64_t, 6> kTiles = {8, 16, 32, 64, 128, 256};
constexpr std::int64_t kSmall = 16;

// In [1, limit], each power of two as likely as the next. REQUIRES: limit >= 1.
std::int64_t draw_log(Rng& rng, std::int64_t limit) {
  const int widest = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(limit)));
  const int width = static_cast<int>(rng.between(1, widest));
  const std::int64_t low = std::int64_t{1} << (width - 1);
  return rng.between(low, std::min(limit, low + (low - 1)));
}

// Not bounded below or above.
std::int64_t draw_any_size(Rng& rng, std::int64_t low, std::int64_t high) {
  switch (rng.below(16)) {
    case 0:
    case 1:
      return low;
    case 2:
      return high;
    case 3:
      return 1;
    case 4:
    case 5:
    case 6:
    case 7:
      return rng.between(1, kSmall);
    case 8:
    case 9:
    case 10:
    case 11: {
      const std::int64_t tile = rng.pick(kTiles);
      return tile * draw_log(rng, std::max<std::int64_t>(1, high / tile)) + rng.between(-1, 1);
    }
    case 12:
    case 13: {
      const int widest = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(high, 1))));
      return (std::int64_t{1} << rng.below(static_cast<std::uint64_t>(widest))) + rng.between(-1, 1);
    }
    default:
      return draw_log(rng, std::max<std::int64_t>(high, 1));
  }
}

double draw_float(const AttrRule& rule, Rng& rng) {
  switch (rng.below(6)) {
    case 0:
      return rule.float_low;
    case 1:
      return rule.float_high;
    default:
      break;
  }
  double value = 0;
  if (rule.log_scale && rule.float_low > 0) {
    const int low = std::ilogb(rule.float_low);
    const int high = std::ilogb(rule.float_high);
    // Half of the time a power of two: short in a report, and exact in every float type.
    value = std::ldexp(rng.one_in(2) ? 1.0 : 1.0 + rng.unit(), static_cast<int>(rng.between(low, high)));
  } else {
    // Sixteenths half of the time, for the same reasons.
    const double share = rng.one_in(2) ? static_cast<double>(rng.below(17)) / 16.0 : rng.unit();
    value = rule.float_low + (rule.float_high - rule.float_low) * share;
  }
  return std::clamp(value, rule.float_low, rule.float_high);
}

}  // namespace

std::int64_t draw_size(Rng& rng, std::int64_t low, std::int64_t high) {
  constexpr int kTries = 8;
  for (int i = 0; i < kTries; ++i) {
    const std::int64_t size = draw_any_size(rng, low, high);
    if (size >= low && size <= high) return size;
  }
  return rng.between(low, high);
}

std::int64_t draw_dim(const DimRule& rule, Rng& rng) {
  if (!rule.typical.empty() && rng.one_in(2)) return rng.pick(rule.typical);
  return draw_size(rng, rule.low, std::max(rule.low, rule.high));
}

std::optional<AttrValue> draw_attr(const AttrRule& rule, Rng& rng) {
  if (rule.standard && rng.one_in(4)) return std::nullopt;
  if (!rule.also.empty() && rng.one_in(4)) return rng.pick(rule.also);
  switch (rule.kind) {
    case AttrKind::kInt:
      return AttrValue(draw_size(rng, rule.int_low, std::max(rule.int_low, rule.int_high)));
    case AttrKind::kBool:
      return AttrValue(static_cast<std::int64_t>(rng.below(2)));
    case AttrKind::kChoice:
      if (rule.choices.empty()) return std::nullopt;
      return AttrValue(rng.pick(rule.choices));
    case AttrKind::kFloat:
      return AttrValue(draw_float(rule, rng));
  }
  return std::nullopt;
}

std::uint64_t draw_element_budget(Rng& rng) {
  constexpr std::uint64_t kUsual = 1 << 14;
  constexpr std::uint64_t kLarge = 1 << 16;
  constexpr std::uint64_t kHuge = 1 << 20;
  const std::uint64_t draw = rng.below(1024);
  if (draw == 0) return std::numeric_limits<std::uint64_t>::max();
  if (draw < 8) return kHuge;
  return draw < 256 ? kLarge : kUsual;
}

bool shrink_dims(const Case& c, CaseScope& scope, std::uint64_t elements, std::uint64_t bytes, Rng& rng) {
  const std::vector<DimRule>& rules = scope.op().dims;
  const auto weight = [&]() -> std::uint64_t {
    const std::optional<Volume> volume = volume_of(c, scope);
    if (!volume) return std::numeric_limits<std::uint64_t>::max();
    if (volume->elements <= elements && volume->bytes <= bytes) return 0;
    return std::max(volume->bytes, volume->elements);
  };
  for (const bool below_range : {false, true}) {
    std::uint64_t now = weight();
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < rules.size(); ++i) open.push_back(i);
    while (now != 0 && !open.empty()) {
      const std::size_t at = static_cast<std::size_t>(rng.below(open.size()));
      std::int64_t& dim = scope.dims()[open[at]];
      const std::int64_t floor = below_range ? 0 : std::max<std::int64_t>(rules[open[at]].low, 1);
      const std::int64_t old = dim;
      if (dim > floor) {
        dim = draw_size(rng, std::max(floor, dim / 4), std::max(floor, dim / 2));
      }
      const std::uint64_t then = weight();
      if (dim == old || then >= now) {
        // No change, or none that helps: a dim that no shape follows stays as it was. A shape in error may need
        // several.
        if (now != std::numeric_limits<std::uint64_t>::max()) dim = old;
        if (dim == old || dim <= floor) open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
        continue;
      }
      now = then;
    }
    if (now == 0) return true;
  }
  return false;
}

}  // namespace fusediff
