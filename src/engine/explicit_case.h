// A case whose inputs are written out, so that values survive a change of shape; and back to the shortest spelling.
// Calls within its experiment stay as they are: each is a case that may be written out by itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/call.h"
#include "model/case.h"

namespace fusediff {

// Elements of inputs that are not raw bits already: larger cases are made smaller by their recipes first.
inline constexpr std::int64_t kMaxExplicitElements = 1 << 16;

// The same bytes, every input that the case states as raw bits; nothing when it is too large or illegal.
std::optional<Case> written_out(const Case& c, const Operator& op, std::uint64_t max_bytes);

// Without the indices [first, first + count) along one dim, values of what stays kept. On an axis whose size is an
// expression that contains the dim, the leading part stays. The row that an experiment names is the same as before, or
// its next. decreased: another dim that falls by as much, or "".
// Nothing when the result is illegal. REQUIRES: c is written out.
std::optional<Case> without_slices(const Case& c, const Operator& op, const std::string& dim, std::int64_t first,
                                   std::int64_t count, const std::string& decreased, std::uint64_t max_bytes);

// The same bytes in the fewest words: a constant and single elements where that is shorter than raw bits.
Case in_short(const Case& c, const Operator& op, std::uint64_t max_bytes);

}  // namespace fusediff
