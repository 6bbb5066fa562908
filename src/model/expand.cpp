#include "model/expand.h"

#include <algorithm>
#include <cstdint>

namespace fusediff {
namespace {

// Calls copy(logical element, stored element) in logical order.
template <typename Copy>
void each_element(const Tensor& tensor, Copy copy) {
  const std::vector<std::int64_t> shape = stored_shape(tensor);
  const std::vector<std::int64_t> stride = dense_strides(shape);
  std::vector<std::int64_t> at(tensor.shape.size(), 0);
  const std::int64_t count = element_count(tensor);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t from = 0;
    for (std::size_t d = 0; d < at.size(); ++d) from += std::min(at[d], shape[d] - 1) * stride[d];
    copy(static_cast<std::size_t>(i), static_cast<std::size_t>(from));
    for (std::size_t d = at.size(); d-- > 0 && ++at[d] == tensor.shape[d];) at[d] = 0;
  }
}

}  // namespace

std::vector<std::byte> expanded(const Tensor& tensor, std::span<const std::byte> stored_elements) {
  if (stored_count(tensor) == element_count(tensor)) return {stored_elements.begin(), stored_elements.end()};
  const std::size_t size = size_of(tensor.dtype);
  std::vector<std::byte> full(static_cast<std::size_t>(element_count(tensor)) * size);
  each_element(tensor, [&](std::size_t logical, std::size_t from) {
    std::copy_n(stored_elements.data() + from * size, size, full.data() + logical * size);
  });
  return full;
}

std::vector<std::byte> stored(const Tensor& tensor, std::span<const std::byte> full) {
  if (stored_count(tensor) == element_count(tensor)) return {full.begin(), full.end()};
  const std::size_t size = size_of(tensor.dtype);
  std::vector<std::byte> kept(stored_bytes(tensor));
  std::vector<bool> seen(static_cast<std::size_t>(stored_count(tensor)), false);
  each_element(tensor, [&](std::size_t logical, std::size_t to) {
    if (seen[to]) return;
    seen[to] = true;
    std::copy_n(full.data() + logical * size, size, kept.data() + to * size);
  });
  return kept;
}

}  // namespace fusediff
