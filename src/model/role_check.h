// What the role of an input asks of its elements, and the first element that breaks it. Drawing: model/values.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "model/call.h"
#include "model/role_recipes.h"

namespace fusediff {

// Evaluates range and sum. Without a range an index is legal up to 2^31 - 1, counts and offsets up to 2^62; all are cut
// to the whole numbers that the dtype holds without gaps.
Result<RoleLimits> role_limits(const InputRule& rule, const Tensor& tensor, const Call& call);

struct Violation {
  std::int64_t element = 0;  // stored index
  std::int64_t other = -1;   // the other one of a pair, or -1
  bool whole_row = false;    // no single element is wrong, the row of `element` is
  std::string what;          // what is there and what is legal
};

// index: inside the range or a sentinel; distinct and ascending in a row where asked (sentinels need not be distinct).
// counts: not negative, inside the range, summing to sum in each row.
// offsets: each row 0 first, never falling, sum last.
// mask: 0 or 1; in a float dtype a zero of either sign or -inf.
// scale: positive and finite.
// probability: finite, not negative, at most 1 + slack, and each row of n (summed in binary64 from left to right)
// within slack of 1. slack = 4 max(u, 2^-24) + n * (2^-24 + d / 2), u the unit roundoff and d the least denormal of the
// dtype: a softmax in f32 or better, summed in any order, then rounded to the dtype, is inside. bool in any role: the
// byte is 0 or 1.
std::optional<Violation> find_violation(std::span<const std::byte> bytes, Role role, const RoleLimits& limits,
                                        const Tensor& tensor);

}  // namespace fusediff
