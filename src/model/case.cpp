#include "model/case.h"

#include <bit>
#include <cmath>

namespace fusediff {

namespace {

bool same(double a, double b) {
  if (std::isnan(a) && std::isnan(b)) return std::signbit(a) == std::signbit(b);
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

bool same_bits(const Fill& a, const Fill& b) {
  if (a.bits_file != b.bits_file) return false;
  if (a.bits == nullptr || b.bits == nullptr) return a.bits == b.bits;
  return *a.bits == *b.bits;
}

}  // namespace

bool draws(FillKind kind) { return kind != FillKind::kConstant && kind != FillKind::kRamp && kind != FillKind::kBits; }

bool Literal::operator==(const Literal& other) const {
  if (kind != other.kind) return false;
  switch (kind) {
    case Kind::kReal:
      return same(real, other.real);
    case Kind::kInteger:
      return integer == other.integer;
    case Kind::kBits:
      break;
  }
  return bits == other.bits;
}

bool Fill::operator==(const Fill& other) const {
  if (kind != other.kind || (draws(kind) && seed != other.seed)) return false;
  switch (kind) {
    case FillKind::kConstant:
      return constant == other.constant;
    case FillKind::kBits:
      return same_bits(*this, other);
    case FillKind::kGrid:
      return count == other.count && same(a, other.a) && same(b, other.b);
    case FillKind::kNormal:
    case FillKind::kUniform:
    case FillKind::kShifted:
    case FillKind::kNegative:
    case FillKind::kRamp:
      return same(a, other.a) && same(b, other.b);
    default:
      return true;
  }
}

}  // namespace fusediff
