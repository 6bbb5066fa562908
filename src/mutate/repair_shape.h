// The parts of repair() that look at a case before it can be bound: names, sizes, attributes, dtypes, presence,
// layouts. Each keeps what is legal and mends or drops the rest.
#pragma once

#include "mutate/mutate.h"
#include "mutate/scope.h"

namespace fusediff {

// Dims, attributes and dtypes of the operator and no others, each a value that the schema names; then `where` and the
// byte limit (dense tensors). False when these two could not be met.
bool repair_sizes(Case& c, MutateContext& context);
// Required inputs there, others only where the schema lets them; only optional outputs unwanted.
void repair_presence(Case& c, MutateContext& context);
// Layouts of the tensors that are there, strides that fit their shape, outputs only on inputs that allow it.
void repair_layouts(Case& c, const CaseScope& scope);

}  // namespace fusediff
