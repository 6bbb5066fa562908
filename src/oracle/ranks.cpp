#include "oracle/ranks.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace fusediff {
namespace {

// One below all numbers, and one above: never equal to kNeverPicked, and negatable.
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min() + 2;
constexpr std::int64_t kGreatest = std::numeric_limits<std::int64_t>::max() - 1;

// Monotone in the value: negative floats count down from -1 (-0) or 0 when the zeros are equal.
std::int64_t float_key(std::uint64_t bits, std::uint64_t sign, bool zeros_equal) {
  if ((bits & sign) == 0) return static_cast<std::int64_t>(bits);
  const std::int64_t magnitude = static_cast<std::int64_t>(bits & (sign - 1));
  return zeros_equal ? -magnitude : -magnitude - 1;
}

struct KeyRule {
  DType dtype;
  bool largest, zeros_equal;
  std::int64_t nan_key;
};

std::int64_t nan_key(const DecideRule& rule, DType dtype, bool largest) {
  switch (rule.nan) {
    case NanOrder::kLeast:
      return largest ? kLeast : kGreatest;  // by value: the least number
    case NanOrder::kGreatest:
      return largest ? kGreatest : kLeast;
    case NanOrder::kNever:
      return kNeverPicked;
    case NanOrder::kAsMinusInf:
      break;
  }
  const int sign_bit = static_cast<int>(size_of(dtype)) * 8 - 1;
  const std::uint64_t sign = std::uint64_t{1} << sign_bit;
  const std::uint64_t infinity = round_to_bits(dtype, -std::numeric_limits<double>::infinity());
  if (is_nan(dtype, infinity)) return largest ? kLeast : kGreatest;  // a format without infinity
  const std::int64_t key = float_key(infinity, sign, rule.zeros_equal);
  return largest ? key : -key;
}

std::int64_t key_of(const KeyRule& rule, std::uint64_t bits) {
  if (!is_float(rule.dtype)) {
    // The complement turns the order around and overflows nowhere. Only the worst i64 shares the key of its neighbour.
    const std::int64_t value = integer_value(rule.dtype, bits);
    return std::max(rule.largest ? value : ~value, kNeverPicked + 1);
  }
  if (is_nan(rule.dtype, bits)) return rule.nan_key;
  const std::uint64_t sign = std::uint64_t{1} << (size_of(rule.dtype) * 8 - 1);
  const std::int64_t key = float_key(bits, sign, rule.zeros_equal);
  return rule.largest ? key : -key;
}

// f32, the usual case, in a form that compilers turn into vectors.
void float32_keys(const KeyRule& rule, const std::byte* data, std::int64_t columns, std::int64_t* keys) {
  const std::int64_t tie = rule.zeros_equal ? 0 : -1;
  const std::int64_t turn = rule.largest ? 1 : -1;
  for (std::int64_t i = 0; i < columns; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, data + i * 4, 4);
    const std::int64_t magnitude = static_cast<std::int64_t>(bits & 0x7FFFFFFFu);
    const std::int64_t key = (bits >> 31) != 0 ? tie - magnitude : magnitude;
    keys[i] = magnitude > 0x7F800000 ? rule.nan_key : turn * key;
  }
}

}  // namespace

std::int64_t candidates(const Decision& decision, std::int64_t row) {
  const std::int64_t columns = decision.by->shape.empty() ? 1 : decision.by->shape.back();
  if (decision.among_bytes.empty()) return columns;
  const std::size_t size = size_of(decision.among->dtype);
  const std::size_t rows = decision.among_bytes.size() / size;
  const std::size_t at = std::min(static_cast<std::size_t>(row), rows - 1) * size;
  return std::clamp<std::int64_t>(
      integer_value(decision.among->dtype, load_bits(decision.among->dtype, decision.among_bytes.data() + at)), 0,
      columns);
}

void rank_keys(const Decision& decision, std::int64_t row, std::vector<std::int64_t>& keys) {
  const DType dtype = decision.by->dtype;
  const std::int64_t columns = decision.by->shape.empty() ? 1 : decision.by->shape.back();
  keys.resize(static_cast<std::size_t>(columns));
  const KeyRule rule{dtype, decision.largest, decision.rule->zeros_equal,
                     is_float(dtype) ? nan_key(*decision.rule, dtype, decision.largest) : 0};
  const std::byte* data = decision.by_bytes.data() + static_cast<std::size_t>(row * columns) * size_of(dtype);
  if (dtype == DType::kF32) {
    float32_keys(rule, data, columns, keys.data());
  } else {
    for (std::int64_t i = 0; i < columns; ++i) {
      keys[static_cast<std::size_t>(i)] =
          key_of(rule, load_bits(dtype, data + static_cast<std::size_t>(i) * size_of(dtype)));
    }
  }
  std::fill(keys.begin() + candidates(decision, row), keys.end(), kNeverPicked);
}

}  // namespace fusediff
