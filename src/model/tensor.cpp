#include "model/tensor.h"

namespace fusediff {

std::int64_t element_count(const Tensor& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.shape) count *= size;
  return count;
}

std::vector<std::int64_t> stored_shape(const Tensor& tensor) {
  std::vector<std::int64_t> shape = tensor.shape;
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    if (tensor.stride[dim] == 0 && shape[dim] > 1) shape[dim] = 1;
  }
  return shape;
}

std::int64_t stored_count(const Tensor& tensor) {
  std::int64_t count = 1;
  for (std::size_t dim = 0; dim < tensor.shape.size(); ++dim) {
    const std::int64_t size = tensor.shape[dim];
    count *= tensor.stride[dim] == 0 && size > 1 ? 1 : size;
  }
  return count;
}

std::size_t stored_bytes(const Tensor& tensor) {
  return static_cast<std::size_t>(stored_count(tensor)) * size_of(tensor.dtype);
}

std::int64_t extent(const Tensor& tensor) {
  std::int64_t last = 0;
  for (std::size_t dim = 0; dim < tensor.shape.size(); ++dim) {
    if (tensor.shape[dim] == 0) return 0;
    last += (tensor.shape[dim] - 1) * tensor.stride[dim];
  }
  return last + 1;
}

std::vector<std::int64_t> dense_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> stride(shape.size());
  std::int64_t step = 1;
  for (std::size_t dim = shape.size(); dim-- > 0;) {
    stride[dim] = step;
    step *= shape[dim] > 1 ? shape[dim] : 1;
  }
  return stride;
}

bool is_dense(const Tensor& tensor) {
  std::int64_t step = 1;
  for (const std::int64_t size : tensor.shape) {
    if (size == 0) return true;
  }
  for (std::size_t dim = tensor.shape.size(); dim-- > 0;) {
    if (tensor.shape[dim] > 1 && tensor.stride[dim] != step) return false;
    step *= tensor.shape[dim];
  }
  return true;
}

std::int64_t row_count(const Tensor& tensor) {
  std::int64_t rows = 1;
  for (std::size_t dim = 0; dim + 1 < tensor.shape.size(); ++dim) {
    const std::int64_t size = tensor.shape[dim];
    rows *= tensor.stride[dim] == 0 && size > 1 ? 1 : size;
  }
  return rows;
}

std::int64_t column_count(const Tensor& tensor) {
  if (tensor.shape.empty()) return 1;
  const std::int64_t size = tensor.shape.back();
  return tensor.stride.back() == 0 && size > 1 ? 1 : size;
}

}  // namespace fusediff
