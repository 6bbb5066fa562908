// A strided view that a kernel may hold: the address, shape and strides of a kit::View, by value. Owns nothing and
// checks nothing.
#pragma once

#include <cstdint>

#include "cuda/arithmetic.h"
#include "kit/view.h"

namespace fusediff::cuda {

template <class T, int kRank>
struct Strided {
  T* data = nullptr;
  int64_t shape[kRank] = {};
  int64_t stride[kRank] = {};

  Strided() = default;
  Strided(const kit::View<T, kRank>& view) : data(view.data) {  // NOLINT: a view is one, for the host and the device
    for (size_t d = 0; d < static_cast<size_t>(kRank); ++d) {
      shape[d] = view.shape[d];
      stride[d] = view.stride[d];
    }
  }

  template <class... Index>
  FUSEDIFF_HD T& operator()(Index... index) const {
    static_assert(sizeof...(Index) == kRank);
    int64_t offset = 0;
    int dim = 0;
    ((offset += static_cast<int64_t>(index) * stride[dim++]), ...);
    return data[offset];
  }

  FUSEDIFF_HD bool present() const { return data != nullptr; }
};

}  // namespace fusediff::cuda
