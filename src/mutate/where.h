// Meets the schema's `where` by moving one size or attribute at a time. Shapes, bytes and values are not looked at.
#pragma once

#include "base/rng.h"
#include "mutate/scope.h"

namespace fusediff {

// Does every expression of `where` hold?
bool where_holds(const CaseScope& scope);

// Changes dims and attributes, as few and as little as it can, until where_holds(). What it changes is random among the
// equally good, so that neither side of a rule always gives way. False, with the scope as it was, when it found
// nothing.
bool meet_where(CaseScope& scope, Rng& rng);

}  // namespace fusediff
