#include "model/draw_block.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "model/values.h"

namespace fusediff {

namespace {

constexpr std::array kOfNumbers = {FillKind::kNormal,   FillKind::kUniform,  FillKind::kGrid,
                                   FillKind::kConstant, FillKind::kSpecial,  FillKind::kFiniteSpecial,
                                   FillKind::kShifted,  FillKind::kNegative, FillKind::kRamp,
                                   FillKind::kOneHot,   FillKind::kBits};
constexpr std::array kOfProbability = {FillKind::kNormal,   FillKind::kUniform, FillKind::kGrid,
                                       FillKind::kConstant, FillKind::kShifted, FillKind::kNegative,
                                       FillKind::kRamp,     FillKind::kOneHot,  FillKind::kBits};
constexpr std::array kOfScale = {FillKind::kNormal,   FillKind::kUniform,       FillKind::kGrid,
                                 FillKind::kConstant, FillKind::kFiniteSpecial, FillKind::kShifted,
                                 FillKind::kNegative, FillKind::kRamp,          FillKind::kBits};
constexpr std::array kOfMask = {FillKind::kIndexUniform, FillKind::kSkewed, FillKind::kUnused, FillKind::kPermutation,
                                FillKind::kConstant,     FillKind::kOneHot, FillKind::kBits};
constexpr std::array kOfIndex = {FillKind::kIndexUniform, FillKind::kSkewed, FillKind::kUnused, FillKind::kPermutation,
                                 FillKind::kConstant,     FillKind::kRamp,   FillKind::kBits};
constexpr std::array kOfCountsPatch = {FillKind::kConstant, FillKind::kRamp, FillKind::kBits};
constexpr std::array kOfSaved = {FillKind::kBits};

constexpr std::size_t kChunk = 512;  // doubles at a time: they stay in the first-level cache

Status check_legal(const Fill& fill, const BlockPlace& place) {
  const std::span<const FillKind> legal = legal_fills(place.role, place.patch);
  if (std::find(legal.begin(), legal.end(), fill.kind) != legal.end()) return {};
  std::string names;
  for (const FillKind kind : legal) names += (names.empty() ? "" : ", ") + std::string(name_of(kind));
  const bool by_role = fill.kind >= FillKind::kIndexUniform;
  std::string found = (by_role ? "the role recipe " : "") + std::string(name_of(fill.kind));
  return user_error(found + " is not for values of this role: legal are " + names);
}

Status copy_bits(const Fill& fill, std::span<std::byte> out) {
  const std::size_t found = fill.bits ? fill.bits->size() : 0;
  if (found != out.size()) {
    return user_error("bits of " + std::to_string(found) + " bytes: legal is " + std::to_string(out.size()));
  }
  if (found != 0) std::memcpy(out.data(), fill.bits->data(), found);
  return {};
}

Status repeat_constant(const Fill& fill, DType dtype, std::span<std::byte> out) {
  const Result<std::uint64_t> bits = literal_bits(fill.constant, dtype);
  if (!bits.ok()) return bits.error();
  const std::size_t size = size_of(dtype);
  for (std::size_t at = 0; at < out.size(); at += size) store_bits(dtype, *bits, out.data() + at);
  return {};
}

void store_whole(DType dtype, std::span<const std::int64_t> values, std::span<std::byte> out) {
  std::byte* element = out.data();
  for (const std::int64_t value : values) {
    const bool floating = is_float(dtype);
    store_bits(dtype, floating ? round_to_bits(dtype, static_cast<double>(value)) : static_cast<std::uint64_t>(value),
               element);
    element += size_of(dtype);
  }
}

// The magnitude; 0 becomes 1, what is not finite the largest number.
void make_scales(DType dtype, std::span<std::byte> out) {
  const std::size_t size = size_of(dtype);
  const std::uint64_t one = round_to_bits(dtype, 1.0);
  for (std::size_t at = 0; at < out.size(); at += size) {
    std::uint64_t bits = load_bits(dtype, out.data() + at);
    if (is_float(dtype)) {
      const std::uint64_t sign = round_to_bits(dtype, -0.0);
      bits &= ~sign;
      if (!is_finite(dtype, bits)) bits = round_to_bits(dtype, float_format(dtype).max_finite);
    }
    if (is_zero(dtype, bits)) bits = one;
    store_bits(dtype, bits, out.data() + at);
  }
}

Status draw_rounded(const Fill& fill, const BlockPlace& place, std::span<std::byte> out) {
  const Result<NumberFill> plan = plan_numbers(fill, place.dtype, place.block);
  if (!plan.ok()) return plan.error();
  std::array<double, kChunk> buffer;
  const std::size_t size = size_of(place.dtype);
  const auto count = static_cast<std::size_t>(place.block.count());
  // An integer has no other magnitude than the number had, but for the least one, which has none.
  const bool integer_scale = place.role == Role::kScale && !is_float(place.dtype);
  const bool whole = place.role == Role::kIndex || place.role == Role::kCounts || place.role == Role::kOffsets;
  for (std::size_t first = 0; first < count; first += kChunk) {
    const std::span values = std::span(buffer).first(std::min(kChunk, count - first));
    draw_numbers(*plan, static_cast<std::int64_t>(first), values);
    for (double& value : values) {
      if (integer_scale && value < 0) value = -value;
      if (whole) value = static_cast<double>(integer_value(DType::kI64, round_to_bits(DType::kI64, value)));
    }
    round_all(place.dtype, values, out.subspan(first * size, values.size() * size));
  }
  if (place.role == Role::kScale) make_scales(place.dtype, out);
  return {};
}

Status draw_kept(const Fill& fill, const BlockPlace& place, std::span<std::byte> out) {
  std::vector<std::int64_t> kept;
  if (fill.kind == FillKind::kOneHot) {
    const Result<NumberFill> plan = plan_numbers(fill, place.dtype, place.block);
    if (!plan.ok()) return plan.error();
    std::vector<double> hot(static_cast<std::size_t>(place.block.count()));
    if (!hot.empty()) draw_numbers(*plan, 0, hot);
    kept.assign(hot.begin(), hot.end());
  } else {
    kept = draw_mask(fill, place.block);
  }
  if (!is_float(place.dtype)) {
    store_whole(place.dtype, kept, out);
    return {};
  }
  if (!float_format(place.dtype).has_infinity) {
    return user_error("a mask needs -inf, which " + std::string(name_of(place.dtype)) +
                      " has not: legal are bits and constant");
  }
  const std::uint64_t minus_infinity = round_to_bits(place.dtype, -std::bit_cast<double>(std::uint64_t{0x7FF} << 52));
  for (std::size_t i = 0; i < kept.size(); ++i) {
    store_bits(place.dtype, kept[i] != 0 ? 0 : minus_infinity, out.data() + i * size_of(place.dtype));
  }
  return {};
}

Status draw_whole(const Fill& fill, const BlockPlace& place, const RoleLimits& limits, std::span<std::byte> out) {
  const Result<std::vector<std::int64_t>> values = place.role == Role::kIndex ? draw_index(fill, limits, place.block)
                                                   : place.role == Role::kCounts
                                                       ? draw_counts(fill, limits, place.block)
                                                       : draw_offsets(fill, limits, place.block);
  if (!values.ok()) return values.error();
  store_whole(place.dtype, *values, out);
  return {};
}

}  // namespace

std::span<const FillKind> legal_fills(Role role, bool patch) {
  switch (role) {
    case Role::kProbability:
      return kOfProbability;
    case Role::kScale:
      return kOfScale;
    case Role::kMask:
      return kOfMask;
    case Role::kIndex:
      return kOfIndex;
    case Role::kCounts:
    case Role::kOffsets:
      return patch ? std::span<const FillKind>(kOfCountsPatch) : std::span<const FillKind>(kOfIndex);
    case Role::kSaved:
      return kOfSaved;
    default:
      return kOfNumbers;
  }
}

std::string_view name_of(FillKind kind) {
  constexpr std::array<std::string_view, 15> kNames = {
      "normal", "uniform", "grid", "constant", "special", "finite_special", "shifted",    "negative",
      "ramp",   "one_hot", "bits", "uniform",  "skewed",  "unused",         "permutation"};
  return kNames[static_cast<std::size_t>(kind)];
}

Status draw_block(const Fill& fill, const BlockPlace& place, const RoleLimits& limits, std::span<std::byte> out) {
  if (Status status = check_legal(fill, place); !status.ok()) return status;
  if (fill.kind == FillKind::kBits) return copy_bits(fill, out);
  if (fill.kind == FillKind::kConstant) return repeat_constant(fill, place.dtype, out);
  if (place.role == Role::kMask) return draw_kept(fill, place, out);
  if (fill.kind >= FillKind::kIndexUniform) return draw_whole(fill, place, limits, out);
  return draw_rounded(fill, place, out);
}

Status draw_doubles(const Fill& fill, const BlockPlace& place, std::span<double> out) {
  if (Status status = check_legal(fill, place); !status.ok()) return status;
  if (fill.kind == FillKind::kBits || fill.kind == FillKind::kConstant) {
    std::vector<std::byte> bytes(out.size() * size_of(place.dtype));
    const Status status =
        fill.kind == FillKind::kBits ? copy_bits(fill, bytes) : repeat_constant(fill, place.dtype, bytes);
    if (status.ok()) widen(place.dtype, bytes, out);
    return status;
  }
  // Not rounded to odd, as for f64: here the doubles themselves go into arithmetic.
  const Result<NumberFill> plan = plan_numbers(fill, DType::kF64, place.block);
  if (!plan.ok()) return plan.error();
  if (!out.empty()) draw_numbers(*plan, 0, out);
  return {};
}

}  // namespace fusediff
