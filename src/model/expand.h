// Between the stored elements of a tensor (one along a dimension of stride 0) and all its logical elements.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "model/tensor.h"

namespace fusediff {

std::vector<std::byte> expanded(const Tensor& tensor, std::span<const std::byte> stored_elements);
// The first of each repeated element. REQUIRES: full holds element_count(tensor) elements.
std::vector<std::byte> stored(const Tensor& tensor, std::span<const std::byte> full);

}  // namespace fusediff
