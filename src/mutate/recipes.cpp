#include "mutate/recipes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "mutate/roles.h"

namespace fusediff {
namespace {

constexpr std::int64_t kMaxBitsBytes = 256;  // of a fill that spells its elements: a case must stay readable

struct Range {
  double low, high;
};
constexpr std::array<Range, 8> kRanges = {
    {{-1, 1}, {0, 1}, {-0.1, 0.1}, {-8, 8}, {-100, 100}, {-1e-3, 1e-3}, {0, 1e4}, {-1e-30, 1e-30}}};
constexpr std::array<Range, 6> kPositiveRanges = {{{0.5, 2}, {0.9, 1.1}, {1e-3, 1}, {1, 100}, {1e-6, 1e-5}, {1, 1e4}}};
constexpr std::array<Range, 5> kIntegerRanges = {{{0, 2}, {0, 16}, {-4, 5}, {0, 100}, {-100, 100}}};
constexpr std::array<Range, 6> kNormals = {{{0, 1}, {0, 0.1}, {0, 10}, {1, 1e-3}, {0, 1e-4}, {0, 1e3}}};
constexpr std::array<double, 7> kConstants = {0, 1, -1, 0.5, 2, -0.0, 100};

Range draw_range(const InputRule& rule, DType dtype, Rng& rng) {
  if (rule.role == Role::kScale || rule.role == Role::kProbability) return rng.pick(kPositiveRanges);
  if (rule.role == Role::kMask) return {0, 2};
  if (!is_float(dtype)) {
    Range range = rng.pick(kIntegerRanges);
    if (dtype == DType::kU8) range.low = std::max(range.low, 0.0);
    return dtype == DType::kBool ? Range{0, 2} : range;
  }
  // The first is what people expect of an input; half of the draws.
  return rng.one_in(2) ? kRanges.front() : rng.pick(kRanges);
}

Literal real(double value) { return Literal{Literal::Kind::kReal, value, 0, 0}; }
Literal integer(std::int64_t value) { return Literal{Literal::Kind::kInteger, 0, value, 0}; }

Literal draw_constant(const InputRule& rule, DType dtype, Rng& rng) {
  if (rule.role == Role::kMask) {
    if (!is_float(dtype)) return integer(static_cast<std::int64_t>(rng.below(2)));
    return rng.one_in(2) ? real(0) : real(-std::numeric_limits<double>::infinity());
  }
  if (rule.role == Role::kScale || rule.role == Role::kProbability) {
    if (!is_float(dtype)) return integer(1);
    constexpr std::array<double, 4> kPositive = {1, 0.5, 2, 0.0078125};
    return real(rng.pick(kPositive));
  }
  if (!is_float(dtype)) return integer(static_cast<std::int64_t>(rng.below(3)));
  return rng.one_in(3) ? draw_special(dtype, rng) : real(rng.pick(kConstants));
}

void draw_parameters(Fill& fill, const InputRule& rule, DType dtype, Rng& rng) {
  switch (fill.kind) {
    case FillKind::kNormal:
    case FillKind::kNegative: {
      const Range normal = rng.one_in(2) ? kNormals.front() : rng.pick(kNormals);
      fill.a = normal.low;
      fill.b = normal.high;
      break;
    }
    case FillKind::kUniform:
    case FillKind::kGrid:
    case FillKind::kRamp: {
      const Range range = draw_range(rule, dtype, rng);
      fill.a = range.low;
      fill.b = range.high;
      if (fill.kind == FillKind::kGrid) fill.count = rng.between(2, 9);
      break;
    }
    case FillKind::kConstant:
      fill.constant = draw_constant(rule, dtype, rng);
      break;
    case FillKind::kShifted:
      fill.a = static_cast<double>(rng.between(0, 6));
      fill.b = static_cast<double>(rng.between(0, 6));
      break;
    default:
      break;
  }
}

Fill draw_bits(const Tensor& tensor, Rng& rng) {
  Fill fill;
  fill.kind = FillKind::kBits;
  std::vector<std::byte> bytes(stored_bytes(tensor));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.below(256));
  if (tensor.dtype == DType::kBool) {
    for (std::byte& byte : bytes) byte &= std::byte{1};
  }
  fill.bits = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return fill;
}

// Bits of float specials, in the dtype's own format: no arithmetic that could round.
std::uint64_t draw_special_bits(DType dtype, Rng& rng) {
  const FloatFormat& format = float_format(dtype);
  const double inf = std::numeric_limits<double>::infinity();
  const std::array<double, 20> values = {0.0,
                                         -0.0,
                                         inf,
                                         -inf,
                                         format.max_finite,
                                         -format.max_finite,
                                         format.min_normal,
                                         -format.min_normal,
                                         format.min_denormal,
                                         -format.min_denormal,
                                         format.min_normal - format.min_denormal,
                                         1.0,
                                         -1.0,
                                         17.0,      // from here on the f32 sigmoid is 1
                                         11.09375,  // exp overflows f16 above, f32 above the next, f64 the one after
                                         88.75,
                                         709.78271484375,
                                         -103.984375,  // below, the f32 exp is 0
                                         0.5,
                                         16777216.0};
  const std::uint64_t bits = round_to_bits(dtype, rng.pick(values));
  return rng.one_in(3) ? step_bits(dtype, bits, rng.one_in(2) ? 1 : -1) : bits;
}

std::uint64_t draw_nan_bits(DType dtype, Rng& rng) {
  std::uint64_t bits = round_to_bits(dtype, std::numeric_limits<double>::quiet_NaN());
  const int width = static_cast<int>(size_of(dtype) * 8);
  if (rng.one_in(2)) bits |= std::uint64_t{1} << (width - 1);
  if (rng.one_in(2)) bits |= 1;
  return bits;
}

}  // namespace

Fill draw_fill(const InputRule& rule, const Tensor& tensor, Rng& rng) {
  const std::size_t bytes = stored_bytes(tensor);
  if (takes_any_value(rule) && bytes > 0 && bytes <= kMaxBitsBytes && rng.one_in(24)) return draw_bits(tensor, rng);
  Fill fill;
  const std::span<const FillKind> kinds = recipes_of(rule, tensor.dtype);
  const std::size_t usual = usual_recipes(rule, tensor.dtype);
  fill.kind = kinds[static_cast<std::size_t>(rng.below(rng.one_in(2) ? usual : kinds.size()))];
  fill.seed = rng.below(std::uint64_t{1} << 32);
  draw_parameters(fill, rule, tensor.dtype, rng);
  return fill;
}

Fill plain_fill(const InputRule& rule, DType dtype, std::uint64_t seed) {
  Fill fill;
  fill.kind = recipes_of(rule, dtype).front();
  fill.seed = seed;
  if (fill.kind == FillKind::kNormal) fill.b = 1;
  if (fill.kind == FillKind::kUniform) {
    const bool positive = rule.role == Role::kScale || rule.role == Role::kProbability;
    fill.a = positive ? 0.5 : 0;
    fill.b = 2;
  }
  return fill;
}

Literal literal_of(DType dtype, std::uint64_t bits) {
  if (!is_float(dtype)) return integer(integer_value(dtype, bits));
  if (is_nan(dtype, bits)) return Literal{Literal::Kind::kBits, 0, 0, bits};
  return real(float_value(dtype, bits));
}

Literal draw_special(DType dtype, Rng& rng) {
  if (is_float(dtype)) {
    const bool nan = rng.one_in(8);
    return literal_of(dtype, nan ? draw_nan_bits(dtype, rng) : draw_special_bits(dtype, rng));
  }
  if (dtype == DType::kBool) return integer(static_cast<std::int64_t>(rng.below(2)));
  const int width = static_cast<int>(size_of(dtype) * 8);
  const std::int64_t top = dtype == DType::kU8 ? 255 : static_cast<std::int64_t>((std::uint64_t{1} << (width - 1)) - 1);
  const std::int64_t bottom = dtype == DType::kU8 ? 0 : -top - 1;
  const std::array<std::int64_t, 5> values = {bottom, top, 0, 1, std::max<std::int64_t>(bottom, -1)};
  return integer(rng.pick(values));
}

std::optional<std::int64_t> draw_in_range(const InputRule& rule, const Call& call, Rng& rng) {
  if (!rule.also.empty() && rng.one_in(4)) return rng.pick(rule.also);
  if (!rule.range) return rng.between(0, 8);
  const Result<std::int64_t> low = call.evaluate(rule.range->first);
  const Result<std::int64_t> high = call.evaluate(rule.range->second);
  if (!low.ok() || !high.ok() || *low > *high) return std::nullopt;
  switch (rng.below(4)) {
    case 0:
      return *low;
    case 1:
      return *high;
    case 2:
      return std::clamp(rng.one_in(2) ? *low + 1 : *high - 1, *low, *high);
    default:
      return rng.between(*low, *high);
  }
}

std::int64_t draw_position(std::int64_t size, Rng& rng) {
  switch (rng.below(4)) {
    case 0:
      return rng.one_in(2) ? 0 : size - 1;
    case 1: {
      const std::int64_t tile = std::int64_t{8} << rng.below(5);
      const std::int64_t at = tile * rng.between(0, size / tile) + rng.between(-1, 1);
      return std::clamp<std::int64_t>(at, 0, size - 1);
    }
    default:
      return rng.between(0, size - 1);
  }
}

std::vector<Source> drawn_sources(const Call& call) {
  std::vector<Source> sources;
  const auto add = [&](const std::vector<InputRule>& rules, const std::vector<Tensor>& tensors) {
    for (std::size_t i = 0; i < rules.size(); ++i) {
      if (tensors[i].present && is_drawn(rules[i])) sources.push_back({&rules[i], &tensors[i]});
    }
  };
  add(call.op->inputs, call.inputs);
  add(call.op->given, call.givens);
  return sources;
}

}  // namespace fusediff
