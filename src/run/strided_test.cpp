#include "run/strided.h"

#include <gtest/gtest.h>

#include <vector>

#include "run/fake_target.h"

namespace fusediff {
namespace {

// Offset of the n-th element, by the definition of a stride.
std::size_t offset_of(const Tensor& tensor, std::int64_t n) {
  std::int64_t at = 0;
  for (std::size_t dim = tensor.shape.size(); dim-- > 0;) {
    at += n % tensor.shape[dim] * tensor.stride[dim];
    n /= tensor.shape[dim];
  }
  return static_cast<std::size_t>(at);
}

struct Layout {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> stride;
  bool dense;
};
const Layout kLayouts[] = {
    {{}, {}, true},
    {{6}, {1}, true},
    {{2, 3, 4}, {12, 4, 1}, true},
    {{2, 1, 4}, {4, 99, 1}, true},  // the stride of a single element says nothing
    {{6}, {3}, false},
    {{3, 4}, {5, 1}, false},
    {{3, 4}, {1, 3}, false},  // transposed
    {{2, 2}, {3, 2}, false},  // interleaved
    {{2, 3, 4}, {24, 8, 2}, false},
    {{2, 3, 4}, {1, 20, 5}, false},
};

TEST(Strided, ScatterGatherAndFillFollowTheStrides) {
  for (const Layout& layout : kLayouts) {
    for (const DType dtype : {DType::kU8, DType::kI16, DType::kF32, DType::kF64}) {
      Tensor tensor = fake::tensor("x", layout.shape, dtype);
      tensor.stride = layout.stride;
      const std::size_t element = size_of(dtype);
      const auto count = static_cast<std::size_t>(element_count(tensor));
      const std::vector<std::byte> dense = fake::ramp(count * element);
      Strided strided;
      strided.assign(tensor, false);
      EXPECT_EQ(strided.dense(), layout.dense);
      std::vector<std::byte> expected(static_cast<std::size_t>(extent(tensor)) * element, std::byte{0xAA});
      std::vector<std::byte> filled = expected;
      for (std::size_t i = 0; i < count * element; ++i) {
        const std::size_t at = offset_of(tensor, static_cast<std::int64_t>(i / element)) * element + i % element;
        expected[at] = dense[i];
        filled[at] = std::byte{0xBB};
      }
      std::vector<std::byte> memory(expected.size(), std::byte{0xAA});
      strided.scatter(dense.data(), memory.data());
      EXPECT_EQ(memory, expected);
      std::vector<std::byte> back(dense.size());
      strided.gather(memory.data(), back.data());
      EXPECT_EQ(back, dense);
      strided.fill(memory.data(), std::byte{0xBB});
      EXPECT_EQ(memory, filled);
    }
  }
}

TEST(Strided, RepeatsAreStoredOnceAndReadManyTimes) {
  Tensor tensor = fake::tensor("x", {2, 3}, DType::kU8);
  tensor.stride = {0, 1};
  const std::vector<std::byte> stored = fake::ramp(3);
  Strided strided;
  strided.assign(tensor, false);
  EXPECT_TRUE(strided.dense());
  strided.assign(tensor, true);
  EXPECT_FALSE(strided.dense());
  std::vector<std::byte> logical(6);
  strided.gather(stored.data(), logical.data());
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(logical[i], stored[i % 3]);
}

TEST(Strided, NothingIsTouchedWithoutElements) {
  Tensor tensor = fake::tensor("x", {3, 0, 2});
  Strided strided;
  strided.assign(tensor, true);
  strided.scatter(nullptr, nullptr);
  strided.gather(nullptr, nullptr);
  strided.fill(nullptr, std::byte{1});
}

}  // namespace
}  // namespace fusediff
