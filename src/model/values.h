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

// The recipes that are legal for a role: of a whole tensor, or of a patch (offsets and counts take fewer there).
std::span<const FillKind> legal_fills(Role role, bool patch = false);
// As a case spells it: "normal", "finite_special", ...; the recipes of roles by their bare name.
std::string_view name_of(FillKind kind);

// The stored elements (model/tensor.h), dense and row-major, of input or given `tensor`, whose rule is `rule`.
// ENSURES: values obey the rule's role (range, distinct, sorted, sum, probability rows, 0/1 masks); a recipe, patch or
// override that cannot is an error with a JSON pointer below /inputs/<name>.
// Element i of the tensor, in stored row-major order, is drawn by counter i; a patch is drawn like a tensor of its own
// rows and columns. Every float is rounded once; a recipe of numbers in an integer dtype goes to the nearest whole
// number (ties to even), clamped; in bool to 1 unless that is 0. Roles change the numbers so:
// - probability: |value| / row sum of |value|, both in binary64, summed from left to right, after the patches; a row of
//   zeros gives 1 / columns; then rounded. `bits` of a whole tensor are taken as they are.
// - scale: |value|, rounded; then 0 becomes 1 and what overflowed the largest finite number. `bits` and `constant` are
//   taken as they are.
// - index, counts, offsets: a ramp goes to the nearest whole numbers in a float dtype too.
// - mask: recipes give kept or masked: 1 or 0, in a float dtype 0 or -inf; one_hot keeps one column.
// Overrides come last and are exact; whatever they and patches, bits, constants and ramps give must obey the role.
Result<std::vector<std::byte>> draw_values(const InputValue& value, const InputRule& rule, const Tensor& tensor,
                                           const Call& call);

// Is there a role rule that the stored elements break? For values that did not come from draw_values.
Status check_values(std::span<const std::byte> bytes, const InputRule& rule, const Tensor& tensor, const Call& call);

}  // namespace fusediff
