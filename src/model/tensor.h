// A tensor of a call: name, shape, dtype and where its elements lie. Logical bytes are kept apart, dense and row-major:
// the layout decides only where the runner puts them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/dtype.h"

namespace fusediff {

enum class Place { kEnd, kStart, kMiddle };  // which guard page the tensor leans on; kMiddle leaves 64-byte alignment

struct Tensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;   // [rank], each >= 0
  std::vector<std::int64_t> stride;  // [rank], elements; 0 repeats one element
  std::int64_t align = 1;            // bytes; at least the element
  std::int64_t offset = 0;           // elements from the place's end; 0 with Place::kEnd
  Place place = Place::kEnd;
  int on = -1;          // outputs: index of the input that this output lies on, or -1
  bool present = true;  // inputs: false: absent. outputs: false: not wanted

  bool operator==(const Tensor&) const = default;
};

// Product of the shape. REQUIRES: it fits (bind() in model/call.h has checked it).
std::int64_t element_count(const Tensor& tensor);
// The shape with every dimension of stride 0 cut to at most one element: what is stored, drawn and compared.
std::vector<std::int64_t> stored_shape(const Tensor& tensor);
std::int64_t stored_count(const Tensor& tensor);
std::size_t stored_bytes(const Tensor& tensor);
// From the first element to behind the last, in elements: the memory that a call may touch. 0 when empty.
std::int64_t extent(const Tensor& tensor);
// Row-major strides without gaps; a dimension of size 0 counts as 1.
std::vector<std::int64_t> dense_strides(const std::vector<std::int64_t>& shape);
// No gaps and no repeats, in row-major order; strides along dimensions of size 1, and of empty tensors, do not matter.
bool is_dense(const Tensor& tensor);
// Flattened leading dims, and the last dim (1 at rank 0), of the stored shape: what "rows" and "columns" mean
// everywhere.
std::int64_t row_count(const Tensor& tensor);
std::int64_t column_count(const Tensor& tensor);

}  // namespace fusediff
