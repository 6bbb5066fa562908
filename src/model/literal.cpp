#include <bit>
#include <charconv>
#include <cstdio>

#include "model/fill_numbers.h"

namespace fusediff {

namespace {

// The double that rounds once into any narrower format as the integer itself would: its last bit is set when the
// integer has more bits than fit (rounding to odd).
double odd_double(std::int64_t value) {
  const bool negative = value < 0;
  std::uint64_t magnitude = negative ? -static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  int shift = 0;
  while ((magnitude >> shift) >= (std::uint64_t{1} << 53)) ++shift;
  const bool lost = (magnitude & ((std::uint64_t{1} << shift) - 1)) != 0;
  magnitude = ((magnitude >> shift) | (lost ? 1 : 0)) << shift;
  const auto exact = static_cast<double>(magnitude);
  return negative ? -exact : exact;
}

Error not_in_dtype(const Literal& literal, DType dtype) {
  const IntegerRange range = integer_range(dtype);
  return user_error(literal_text(literal) + " is no " + std::string(name_of(dtype)) +
                    ": legal is a whole number from " + std::to_string(range.low) + " to " +
                    std::to_string(range.high));
}

Result<std::uint64_t> whole_bits(const Literal& literal, std::int64_t value, DType dtype) {
  const IntegerRange range = integer_range(dtype);
  if (value < range.low || value > range.high) return not_in_dtype(literal, dtype);
  const int unused = static_cast<int>(64 - 8 * size_of(dtype));
  return (static_cast<std::uint64_t>(value) << unused) >> unused;
}

Result<std::uint64_t> real_bits(const Literal& literal, DType dtype) {
  if (is_float(dtype)) return round_to_bits(dtype, literal.real);
  if (!(literal.real >= -0x1p63 && literal.real < 0x1p63)) return not_in_dtype(literal, dtype);
  const auto whole = static_cast<std::int64_t>(literal.real);
  if (static_cast<double>(whole) != literal.real) return not_in_dtype(literal, dtype);
  return whole_bits(literal, whole, dtype);
}

Result<std::uint64_t> raw_bits(const Literal& literal, DType dtype) {
  const std::size_t size = 8 * size_of(dtype);
  if (size < 64 && (literal.bits >> size) != 0) {
    return user_error(literal_text(literal) + " does not fit " + std::string(name_of(dtype)) + ": legal are " +
                      std::to_string(size) + " bits");
  }
  if (dtype == DType::kBool && literal.bits > 1) return not_in_dtype(literal, dtype);
  return literal.bits;
}

}  // namespace

std::string shortest(double value) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

std::string literal_text(const Literal& literal) {
  if (literal.kind == Literal::Kind::kReal) return shortest(literal.real);
  if (literal.kind == Literal::Kind::kInteger) return std::to_string(literal.integer);
  char text[32];
  std::snprintf(text, sizeof text, "bits:0x%llx", static_cast<unsigned long long>(literal.bits));
  return text;
}

Result<std::uint64_t> literal_bits(const Literal& literal, DType dtype) {
  if (literal.kind == Literal::Kind::kBits) return raw_bits(literal, dtype);
  if (literal.kind == Literal::Kind::kReal) return real_bits(literal, dtype);
  if (!is_float(dtype)) return whole_bits(literal, literal.integer, dtype);
  if (dtype == DType::kF64) return std::bit_cast<std::uint64_t>(static_cast<double>(literal.integer));
  return round_to_bits(dtype, odd_double(literal.integer));
}

}  // namespace fusediff
