#include "model/tensor.h"

#include <gtest/gtest.h>

namespace fusediff {
namespace {

Tensor tensor_of(std::vector<std::int64_t> shape, std::vector<std::int64_t> stride, DType dtype = DType::kF32) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  tensor.stride = std::move(stride);
  return tensor;
}

TEST(Tensor, DenseMatrix) {
  const Tensor tensor = tensor_of({3, 5}, {5, 1});
  EXPECT_EQ(element_count(tensor), 15);
  EXPECT_EQ(stored_count(tensor), 15);
  EXPECT_EQ(stored_bytes(tensor), 60u);
  EXPECT_EQ(extent(tensor), 15);
  EXPECT_EQ(row_count(tensor), 3);
  EXPECT_EQ(column_count(tensor), 5);
  EXPECT_TRUE(is_dense(tensor));
}

TEST(Tensor, GapsCountForTheExtentOnly) {
  const Tensor tensor = tensor_of({3, 5}, {8, 1}, DType::kBF16);
  EXPECT_EQ(stored_bytes(tensor), 30u);
  EXPECT_EQ(extent(tensor), 21);
  EXPECT_FALSE(is_dense(tensor));
  EXPECT_FALSE(is_dense(tensor_of({3, 5}, {1, 3})));
}

TEST(Tensor, StrideZeroStoresOneElement) {
  const Tensor rows = tensor_of({2, 3, 5}, {5, 0, 1});
  EXPECT_EQ(element_count(rows), 30);
  EXPECT_EQ(stored_shape(rows), (std::vector<std::int64_t>{2, 1, 5}));
  EXPECT_EQ(stored_count(rows), 10);
  EXPECT_EQ(extent(rows), 10);
  EXPECT_EQ(row_count(rows), 2);
  EXPECT_EQ(column_count(rows), 5);
  EXPECT_FALSE(is_dense(rows));
  const Tensor columns = tensor_of({4, 5}, {1, 0});
  EXPECT_EQ(row_count(columns), 4);
  EXPECT_EQ(column_count(columns), 1);
  EXPECT_EQ(stored_count(columns), 4);
}

TEST(Tensor, RankZeroIsOneElement) {
  const Tensor scalar = tensor_of({}, {});
  EXPECT_EQ(element_count(scalar), 1);
  EXPECT_EQ(stored_count(scalar), 1);
  EXPECT_EQ(extent(scalar), 1);
  EXPECT_EQ(row_count(scalar), 1);
  EXPECT_EQ(column_count(scalar), 1);
  EXPECT_TRUE(is_dense(scalar));
  EXPECT_TRUE(dense_strides({}).empty());
}

TEST(Tensor, EmptyHasNoExtent) {
  for (const Tensor& empty : {tensor_of({0, 5}, {5, 1}), tensor_of({5, 0}, {1, 1}), tensor_of({0, 5}, {0, 0})}) {
    EXPECT_EQ(element_count(empty), 0);
    EXPECT_EQ(stored_count(empty), 0);
    EXPECT_EQ(stored_bytes(empty), 0u);
    EXPECT_EQ(extent(empty), 0);
    EXPECT_TRUE(is_dense(empty));
    EXPECT_EQ(row_count(empty) * column_count(empty), 0);
  }
  EXPECT_EQ(stored_shape(tensor_of({0, 5}, {0, 0})), (std::vector<std::int64_t>{0, 1}));
}

TEST(Tensor, StridesOfDimensionsOfSizeOneDoNotMatter) {
  EXPECT_TRUE(is_dense(tensor_of({1, 5}, {77, 1})));
  EXPECT_TRUE(is_dense(tensor_of({5, 1}, {1, 0})));
  EXPECT_FALSE(is_dense(tensor_of({5, 2}, {1, 0})));
}

TEST(Tensor, DenseStrides) {
  EXPECT_EQ(dense_strides({2, 3, 5}), (std::vector<std::int64_t>{15, 5, 1}));
  EXPECT_EQ(dense_strides({2, 0, 5}), (std::vector<std::int64_t>{5, 5, 1}));
  EXPECT_EQ(dense_strides({7}), (std::vector<std::int64_t>{1}));
  EXPECT_TRUE(is_dense(tensor_of({2, 3, 5}, dense_strides({2, 3, 5}))));
}

}  // namespace
}  // namespace fusediff
