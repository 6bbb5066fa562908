// The recipes of ordinary numbers (normal, uniform, grid, special, finite_special, shifted, negative, ramp, one_hot) as
// doubles that round once into a dtype, and the value of a literal. Roles, patches and overrides: model/values.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/case.h"
#include "model/counter_hash.h"

namespace fusediff {

// What a fill covers: a whole tensor as its stored rows and columns, or the block of a patch.
struct Block {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t count() const { return rows * columns; }
};

// Parameters beyond this magnitude are refused: inside of it no recipe overflows.
inline constexpr double kLargestParameter = 1e288;
// Of a grid.
inline constexpr std::int64_t kMostGridValues = std::int64_t{1} << 24;

// A recipe ready to draw: what its parameters make of one hash.
struct NumberFill {
  FillKind kind = FillKind::kNormal;
  CounterHash hash{0};
  double origin = 0;  // added to step times a drawn integer
  double step = 0;    // 24 significant bits, odd
  double from = 0;    // kGrid, kRamp
  double to = 0;
  std::int64_t last = 0;  // index of the last grid or ramp value
  std::int64_t columns = 1;
  std::vector<double> picks;  // kSpecial, kFiniteSpecial
  bool round_to_odd = true;   // false for f64, where the double is the result
};

// REQUIRES: fill is none of kConstant, kBits and the recipes of roles. An error names the parameter and what is legal.
Result<NumberFill> plan_numbers(const Fill& fill, DType dtype, const Block& block);
// Elements first, first + 1, ... of the block in row-major order: out[i] rounds once, by round_to_bits or round_all,
// into the dtype of the plan.
void draw_numbers(const NumberFill& plan, std::int64_t first, std::span<double> out);

// The element that a literal spells: a real number is rounded once into a float dtype (beyond its range as
// round_to_bits says) and must be whole and inside of an integer dtype; an integer likewise; bits must fit the size.
Result<std::uint64_t> literal_bits(const Literal& literal, DType dtype);
// "9", "0.1" or "bits:0x7fc00001".
std::string literal_text(const Literal& literal);
// The shortest text that reads back to the same double.
std::string shortest(double value);

}  // namespace fusediff
