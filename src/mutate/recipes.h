// Draws recipes: a fill with its parameters and seed, a block for a patch, a single value. Which of them an input takes
// is in mutate/roles.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/rng.h"
#include "model/call.h"
#include "model/case.h"

namespace fusediff {

// An input or given whose values the case makes, present. The pointers are into the call and its operator.
struct Source {
  const InputRule* rule;
  const Tensor* tensor;
};
std::vector<Source> drawn_sources(const Call& call);

// A recipe that suits the rule's role; usual ones half of the time. kBits only for small tensors of any-value roles.
Fill draw_fill(const InputRule& rule, const Tensor& tensor, Rng& rng);
// The recipe that is legal for this role whatever the tensor: where nothing better is known.
Fill plain_fill(const InputRule& rule, DType dtype, std::uint64_t seed);

// A value that kernels get wrong: zeros, infinities, NaN of several payloads, denormals, the largest finite, the
// neighbours of 1, the overflow of exp; of an integer dtype its ends, 0, 1, -1.
Literal draw_special(DType dtype, Rng& rng);
// Any value as it is: exact, NaN and negative zero included.
Literal literal_of(DType dtype, std::uint64_t bits);

// A value that an input with a range may hold: an end, beside an end, a sentinel, any; nothing where the range is
// empty.
std::optional<std::int64_t> draw_in_range(const InputRule& rule, const Call& call, Rng& rng);

// Of [0, size): often the ends or next to a multiple of 8 to 128. REQUIRES: size > 0.
std::int64_t draw_position(std::int64_t size, Rng& rng);

}  // namespace fusediff
