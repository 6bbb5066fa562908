// Between the index that a case writes (logical, row-major) and the elements that are stored: along a dimension of
// stride 0 there is one.
#pragma once

#include <cstdint>
#include <optional>

#include "model/tensor.h"

namespace fusediff {

// REQUIRES: stored in [0, stored_count(tensor)).
std::int64_t logical_index(const Tensor& tensor, std::int64_t stored);
// Nothing when the index is outside the tensor, or not 0 along a dimension of stride 0.
std::optional<std::int64_t> stored_index(const Tensor& tensor, std::int64_t logical);

// What a mask of this dtype holds beside zero: 1, or minus infinity in a float dtype.
std::uint64_t mask_bits(DType dtype);

}  // namespace fusediff
