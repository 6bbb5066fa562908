// What the role of an input leaves free: which recipes, which layouts, which single values. The last word is
// draw_values'; this says what is worth trying.
#pragma once

#include <span>

#include "model/case.h"
#include "model/schema.h"

namespace fusediff {

// Does the case make its values (a saved tensor is computed)?
bool is_drawn(const InputRule& rule);
// Any value of the dtype is legal anywhere.
bool takes_any_value(const InputRule& rule);
// The recipes of an input of this role and dtype, the usual ones first; kBits stands apart.
std::span<const FillKind> recipes_of(const InputRule& rule, DType dtype);
// How many at the front of recipes_of() are usual: half of the draws.
std::size_t usual_recipes(const InputRule& rule, DType dtype);
// Can only the tensor itself (a range that is empty, a sum that no counts have) keep this value from being drawn? Its
// literals fit the dtype and its blocks the shape.
bool obeys_by_construction(const InputValue& value, const InputRule& rule);
// May a patch, a single value, a dimension of stride 0 (the last one too) stand in a tensor of this role?
bool may_patch(const InputRule& rule);
bool may_set(const InputRule& rule);
bool may_repeat(const InputRule& rule);
bool may_repeat_last(const InputRule& rule);

}  // namespace fusediff
