// Elements of tensors of the emulation, whatever dtype and strides. Slow and plain.
#pragma once

#include <array>
#include <cstring>

#include "aclnn/emulation/objects.h"

namespace fusediff::emulated {

// The value at an offset in elements, and back, rounded once to nearest even.
inline float value_at(const Tensor& t, int64_t offset) {
  const std::byte* at = t.data + static_cast<size_t>(offset) * aclnn::element_bytes(t.type);
  const auto as = [at](auto value) {
    std::memcpy(&value, at, sizeof(value));
    return value;
  };
  switch (t.type) {
    case aclnn::kFloat:
      return as(float{});
    case aclnn::kFloat16:
      return kit::decode(as(kit::Half{}));
    case aclnn::kBfloat16:
      return kit::decode(as(kit::BFloat16{}));
    default:
      kit::reject("floats are needed, not dtype ", t.type);
  }
}

inline void put(const Tensor& t, int64_t offset, float value) {
  std::byte* at = t.data + static_cast<size_t>(offset) * aclnn::element_bytes(t.type);
  const auto store = [at](auto bits) { std::memcpy(at, &bits, sizeof(bits)); };
  switch (t.type) {
    case aclnn::kFloat:
      return store(value);
    case aclnn::kFloat16:
      return store(kit::encode<kit::Half>(value));
    case aclnn::kBfloat16:
      return store(kit::encode<kit::BFloat16>(value));
    default:
      kit::reject("floats are needed, not dtype ", t.type);
  }
}

// The tensor repeated along dims that it lacks or that have size 1; REJECTED where it does not fit.
inline Tensor broadcast(const Tensor& t, const std::vector<int64_t>& shape) {
  kit::require(t.shape.size() <= shape.size(), "a tensor has more dims than what it is broadcast to");
  Tensor made = t;
  made.shape = shape;
  made.stride.assign(shape.size(), 0);
  const size_t lacking = shape.size() - t.shape.size();
  for (size_t d = 0; d < t.shape.size(); ++d) {
    kit::require(t.shape[d] == shape[lacking + d] || t.shape[d] == 1, "shapes do not fit each other");
    made.stride[lacking + d] = t.shape[d] == 1 ? 0 : t.stride[d];
  }
  return made;
}

// Calls f(offsets) for each element of tensors of one shape, in row-major order.
template <size_t kCount, class F>
void for_each_element(const std::array<const Tensor*, kCount>& tensors, F&& f) {
  const std::vector<int64_t>& shape = tensors[0]->shape;
  std::vector<int64_t> index(shape.size(), 0);
  std::array<int64_t, kCount> offset{};
  for (int64_t left = tensors[0]->count(); left > 0; --left) {
    f(offset);
    for (size_t d = shape.size(); d-- > 0;) {
      const bool carry = ++index[d] == shape[d];
      for (size_t t = 0; t < kCount; ++t) {
        offset[t] += carry ? tensors[t]->stride[d] * (1 - shape[d]) : tensors[t]->stride[d];
      }
      index[d] = carry ? 0 : index[d];
      if (!carry) {
        break;
      }
    }
  }
}

}  // namespace fusediff::emulated
