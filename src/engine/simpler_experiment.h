// Simpler experiments to try in place of a case's own: fewer calls, a plainer kind, fewer runs. Whether the finding
// survives is not asked here, nor whether a candidate is legal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/case.h"
#include "model/schema.h"

namespace fusediff {

// Same operator, sizes and dtypes: what is bound to the shape is bound to that of the other, too.
bool is_same_shape(const Case& a, const Case& b);

// The case as a plainer experiment, the plainest first: pair, then its calls before it, then again and again.
std::vector<Case> with_plainer_kind(const Case& c);
// Without its calls; with either half of them; without each. Then, of threads, with each call in the case's own place.
std::vector<Case> with_fewer_calls(const Case& c);
// With call `at` a nearer relative of the case, the nearest first: the case's shape with other values; where it is of
// another operator, the case at other sizes.
std::vector<Case> with_plainer_call(const Case& c, std::size_t at, const Operator& op, std::uint64_t max_bytes);
// Fewer threads, rounds or repeats; each from the fewest on.
std::vector<Case> with_fewer_runs(const Case& c);
// An earlier row; the seed 0.
std::vector<Case> with_plainer_parameters(const Case& c);
// The calls of the same shape as `before` follow it to the sizes, dtypes, attributes, layouts and absent inputs of
// `after`, which has none of its own; the others stay.
std::vector<Case> follow(const std::vector<Case>& calls, const Case& before, const Case& after, const Operator& op,
                         std::uint64_t max_bytes);

}  // namespace fusediff
