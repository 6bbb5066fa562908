// Draws the bytes of an input from its recipe: counter-based, integer arithmetic and exact scaling, one rounding to
// nearest even into the dtype; no libm, no <random>. The same recipe gives the same bits on every machine. Each recipe
// is written down above its function so that someone else can get the same bits.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/status.h"
#include "model/call.h"
#include "model/case.h"

namespace fusediff {

// The stored elements (model/tensor.h), dense and row-major, of input or given `tensor`, whose rule is `rule`.
// ENSURES: values obey the rule's role (range, distinct, sorted, sum, probability rows, 0/1 masks); a recipe, patch or
// override that cannot is an error with a JSON pointer below /inputs/<name>.
Result<std::vector<std::byte>> draw_values(const InputValue& value, const InputRule& rule, const Tensor& tensor,
                                           const Call& call);

// Is there a role rule that the stored elements break? For values that did not come from draw_values.
Status check_values(std::span<const std::byte> bytes, const InputRule& rule, const Tensor& tensor, const Call& call);

}  // namespace fusediff
