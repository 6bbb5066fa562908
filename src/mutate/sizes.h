// Draws that matter: sizes next to the edges where kernels change their path, and values of attributes. What a schema
// calls legal is not looked at here.
#pragma once

#include <cstdint>
#include <optional>

#include "base/rng.h"
#include "model/case.h"
#include "model/schema.h"
#include "mutate/scope.h"

namespace fusediff {

// A size in [low, high], mostly small: the ends, 0 and 1, one below, at and above multiples of 8 to 256 and powers of
// two. Every size in the range can come. REQUIRES: low <= high.
std::int64_t draw_size(Rng& rng, std::int64_t low, std::int64_t high);
// A typical size half of the time where there are any, else draw_size over the range.
std::int64_t draw_dim(const DimRule& rule, Rng& rng);
// A value of an attribute that stands in a case; nothing: left out, so that the default holds. Never for derived ones.
std::optional<AttrValue> draw_attr(const AttrRule& rule, Rng& rng);

// How many elements a case that was drawn may have: mostly few enough for a check of well under a millisecond, now and
// then many, rarely as many as the bytes allow.
std::uint64_t draw_element_budget(Rng& rng);

// Draws dims smaller until the case has at most `elements` and `bytes`; dims that do not matter stay. A dim never goes
// below its tried range, except where nothing else is left to shrink; false when even that was not enough.
bool shrink_dims(const Case& c, CaseScope& scope, std::uint64_t elements, std::uint64_t bytes, Rng& rng);

}  // namespace fusediff
