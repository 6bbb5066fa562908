// Copies between dense, row-major elements and the places where a layout puts them. Knows sizes and strides only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/tensor.h"

namespace fusediff {

// The dims of a tensor with neighbours joined where they lie in one run. Reusable: assign() keeps its memory.
class Strided {
 public:
  // repeats: keep dims of stride 0 (logical elements), or cut them to one element (stored elements).
  void assign(const Tensor& tensor, bool repeats);

  // Whether the elements lie in one run, in row-major order.
  bool dense() const { return axes_.empty() || (axes_.size() == 1 && axes_[0].stride == 1); }

  // REQUIRES: dense_bytes as large as all elements, first[..] as large as the extent.
  void scatter(const std::byte* dense_bytes, std::byte* first) const;
  void gather(const std::byte* first, std::byte* dense_bytes) const;
  // Every byte of every element becomes `value`; gaps stay.
  void fill(std::byte* first, std::byte value) const;

 private:
  struct Axis {
    std::int64_t count;
    std::int64_t stride;  // elements
  };
  template <typename Copy>
  void each_run(std::size_t axis, std::int64_t at, std::int64_t& done, Copy copy) const;

  std::vector<Axis> axes_;  // outermost first; counts above 1
  std::size_t element_ = 1;
  bool empty_ = false;
};

}  // namespace fusediff
