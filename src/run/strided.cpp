#include "run/strided.h"

#include <cstring>

#include "model/dtype.h"

namespace fusediff {
namespace {

template <typename Element>
void copy_strided(const std::byte* from, std::int64_t from_step, std::byte* to, std::int64_t to_step,
                  std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    Element element;
    std::memcpy(&element, from, sizeof(Element));
    std::memcpy(to, &element, sizeof(Element));
    from += from_step;
    to += to_step;
  }
}

// Steps in bytes.
void copy_elements(std::size_t element, const std::byte* from, std::int64_t from_step, std::byte* to,
                   std::int64_t to_step, std::int64_t count) {
  switch (element) {
    case 1:
      return copy_strided<std::uint8_t>(from, from_step, to, to_step, count);
    case 2:
      return copy_strided<std::uint16_t>(from, from_step, to, to_step, count);
    case 4:
      return copy_strided<std::uint32_t>(from, from_step, to, to_step, count);
    default:
      return copy_strided<std::uint64_t>(from, from_step, to, to_step, count);
  }
}

}  // namespace

void Strided::assign(const Tensor& tensor, bool repeats) {
  axes_.clear();
  element_ = size_of(tensor.dtype);
  empty_ = false;
  for (std::size_t dim = 0; dim < tensor.shape.size(); ++dim) {
    const std::int64_t count = tensor.shape[dim];
    const std::int64_t stride = tensor.stride[dim];
    empty_ = empty_ || count == 0;
    if (count <= 1 || (stride == 0 && !repeats)) continue;
    if (!axes_.empty() && axes_.back().stride == count * stride) {
      axes_.back() = {axes_.back().count * count, stride};
    } else {
      axes_.push_back({count, stride});
    }
  }
}

// copy(offset of the run's first element, index of it among the dense ones, count, stride)
template <typename Copy>
void Strided::each_run(std::size_t axis, std::int64_t at, std::int64_t& done, Copy copy) const {
  if (axis + 1 >= axes_.size()) {
    const Axis run = axes_.empty() ? Axis{1, 1} : axes_[axis];
    copy(at, done, run.count, run.stride);
    done += run.count;
    return;
  }
  for (std::int64_t i = 0; i < axes_[axis].count; ++i) each_run(axis + 1, at + i * axes_[axis].stride, done, copy);
}

void Strided::scatter(const std::byte* dense_bytes, std::byte* first) const {
  if (empty_) return;
  const auto size = static_cast<std::int64_t>(element_);
  std::int64_t done = 0;
  each_run(0, 0, done, [&](std::int64_t at, std::int64_t index, std::int64_t count, std::int64_t stride) {
    if (stride == 1) {
      std::memcpy(first + at * size, dense_bytes + index * size, static_cast<std::size_t>(count * size));
    } else {
      copy_elements(element_, dense_bytes + index * size, size, first + at * size, stride * size, count);
    }
  });
}

void Strided::gather(const std::byte* first, std::byte* dense_bytes) const {
  if (empty_) return;
  const auto size = static_cast<std::int64_t>(element_);
  std::int64_t done = 0;
  each_run(0, 0, done, [&](std::int64_t at, std::int64_t index, std::int64_t count, std::int64_t stride) {
    if (stride == 1) {
      std::memcpy(dense_bytes + index * size, first + at * size, static_cast<std::size_t>(count * size));
    } else {
      copy_elements(element_, first + at * size, stride * size, dense_bytes + index * size, size, count);
    }
  });
}

void Strided::fill(std::byte* first, std::byte value) const {
  if (empty_) return;
  const auto size = static_cast<std::int64_t>(element_);
  std::byte pattern[8];
  std::memset(pattern, std::to_integer<int>(value), sizeof(pattern));
  std::int64_t done = 0;
  each_run(0, 0, done, [&](std::int64_t at, std::int64_t, std::int64_t count, std::int64_t stride) {
    if (stride == 1) {
      std::memset(first + at * size, std::to_integer<int>(value), static_cast<std::size_t>(count * size));
    } else {
      copy_elements(element_, pattern, 0, first + at * size, stride * size, count);
    }
  });
}

}  // namespace fusediff
