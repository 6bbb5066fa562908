// Values that were captured somewhere, kept while a case changes its sizes and dtypes. No recipe is drawn here.
#pragma once

#include <span>

#include "mutate/mutate.h"

namespace fusediff {

// Inputs of c that hold bits, made to fit the sizes and dtypes that c has now: the leading part of what was there,
// repeated where it became larger, each value rounded where the dtype is another. `before`: cases that the bits came
// from, which say the shape that they had. What would be too long to spell, or came from none of them, gets a plain
// recipe where its dtype no longer fits, and stays as it is for repair() otherwise. Mends the sizes of c first.
void refit_bits(Case& c, std::span<const Case* const> before, MutateContext& context);

}  // namespace fusediff
