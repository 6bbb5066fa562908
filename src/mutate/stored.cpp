#include "mutate/stored.h"

#include <cstddef>
#include <limits>
#include <vector>

namespace fusediff {

std::int64_t logical_index(const Tensor& tensor, std::int64_t stored) {
  std::int64_t logical = 0, step = 1;
  for (std::size_t dim = tensor.shape.size(); dim-- > 0;) {
    const std::int64_t size = tensor.shape[dim];
    if (tensor.stride[dim] != 0 || size <= 1) {
      logical += stored % size * step;
      stored /= size;
    }
    step *= size;
  }
  return logical;
}

std::optional<std::int64_t> stored_index(const Tensor& tensor, std::int64_t logical) {
  if (logical < 0 || logical >= element_count(tensor)) return std::nullopt;
  std::int64_t stored = 0, step = 1;
  for (std::size_t dim = tensor.shape.size(); dim-- > 0;) {
    const std::int64_t size = tensor.shape[dim];
    const std::int64_t at = logical % size;
    logical /= size;
    if (tensor.stride[dim] == 0) {
      if (at != 0) return std::nullopt;
      continue;
    }
    stored += at * step;
    step *= size;
  }
  return stored;
}

std::uint64_t mask_bits(DType dtype) {
  return is_float(dtype) ? round_to_bits(dtype, -std::numeric_limits<double>::infinity()) : 1;
}

}  // namespace fusediff
