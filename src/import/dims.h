// Sizes of an operator from what is known of a call: shapes of tensors, attributes that state a size, words of the
// user. Symbols alone are bound, expressions in one unknown are searched, the rest is checked.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/expr.h"
#include "model/schema.h"

namespace fusediff {

// An expression over dims and what it comes to.
struct SizeClaim {
  Expr expr;
  std::int64_t value = 0;
  std::string where;  // who says so, for messages: "axis 1 of \"x\""
};

struct SolvedDims {
  std::map<std::string, std::int64_t> dims;  // every dim of the operator
  std::vector<std::string> notes;            // of dims that nothing states: what they got
};

// Claims that contradict each other, or that no size fulfils, are errors that name both. A dim that nothing states gets
// its first typical size, else the least that is tried above zero.
Result<SolvedDims> solve_dims(const Operator& op, const std::vector<SizeClaim>& claims);

// The shape with that rank and the same elements in the same order: leading axes are joined, or ones are put in front.
// Nothing where that is impossible.
std::optional<std::vector<std::int64_t>> with_rank(const std::vector<std::int64_t>& shape, std::size_t rank);

std::string shape_text(const std::vector<std::int64_t>& shape);  // "[2, 64]"

}  // namespace fusediff
