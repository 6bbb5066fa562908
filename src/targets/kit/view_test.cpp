#include "kit/view.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <vector>

#include "kit/call.h"

namespace fusediff::kit {
namespace {

// A 2 x 3 tensor of floats over memory that counts upwards.
struct Fixture {
  std::vector<float> memory = std::vector<float>(16);
  std::array<int64_t, 2> shape{2, 3};
  std::array<int64_t, 2> stride{4, 1};
  Fixture() { std::iota(memory.begin(), memory.end(), 0.0f); }
  fusediff_tensor raw(int32_t dtype = FUSEDIFF_F32) {
    return {"x", shape.data(), stride.data(), memory.data(), 2, dtype};
  }
};

fusediff_status status_of(void (*f)(const fusediff_tensor&), const fusediff_tensor& raw) {
  try {
    f(raw);
  } catch (const Failure& failure) {
    return failure.status();
  }
  return FUSEDIFF_OK;
}

TEST(ViewTest, FollowsStridesAndFixesIndices) {
  Fixture f;
  const fusediff_tensor raw = f.raw();
  const auto view = Tensor(raw).view<const float, 2>();
  EXPECT_EQ(view(1, 2), 6.0f);
  EXPECT_EQ(view.at(1)(2), 6.0f);
  EXPECT_EQ(view.at(1, 2)(), 6.0f);
  EXPECT_EQ(view.at(1).part(1, 2)(1), 6.0f);
  f.stride = {0, 2};
  const auto repeated = Tensor(raw).view<const float, 2>();
  EXPECT_EQ(repeated(1, 2), 4.0f);
}

TEST(ViewTest, LoadsAndStoresAnyStride) {
  Fixture f;
  f.stride = {1, 5};
  const fusediff_tensor raw = f.raw();
  const auto row = Tensor(raw).view<float, 2>().at(1);
  double got[3];
  load(row, got);
  EXPECT_EQ(got[0] + got[1] + got[2], 1.0 + 6.0 + 11.0);
  const double put[3] = {-1, -2, -3};
  store(row, put);
  EXPECT_EQ(f.memory[11], -3.0f);
  EXPECT_EQ(f.memory[10], 10.0f);
  store(Row<float>{}, put);
}

TEST(ViewTest, DenseGivesTheRowsOwnMemoryWherePossible) {
  Fixture f;
  const fusediff_tensor raw = f.raw();
  float scratch[3];
  double wide[3];
  EXPECT_EQ(dense(Tensor(raw).view<const float, 2>().at(0), scratch), f.memory.data());
  EXPECT_EQ(dense(Tensor(raw).view<const float, 2>().at(0), wide), wide);
  f.stride = {1, 5};
  EXPECT_EQ(dense(Tensor(raw).view<const float, 2>().at(0), scratch), scratch);
  EXPECT_EQ(scratch[2], 10.0f);
}

TEST(ViewTest, RefusesAnotherDtypeRankOrShape) {
  Fixture f;
  EXPECT_EQ(status_of([](const auto& raw) { Tensor(raw).view<Half, 2>(); }, f.raw()), FUSEDIFF_UNSUPPORTED);
  EXPECT_EQ(status_of([](const auto& raw) { Tensor(raw).view<float, 1>(); }, f.raw()), FUSEDIFF_REJECTED);
  EXPECT_EQ(status_of([](const auto& raw) { Tensor(raw).require_shape({2, 4}); }, f.raw()), FUSEDIFF_REJECTED);
  EXPECT_EQ(status_of([](const auto& raw) { Tensor(raw).require_shape({2, 3}); }, f.raw()), FUSEDIFF_OK);
  fusediff_tensor absent = f.raw();
  absent.data = nullptr;
  EXPECT_EQ(status_of([](const auto& raw) { Tensor(raw).view<float, 2>(); }, absent), FUSEDIFF_REJECTED);
  EXPECT_EQ(status_of([](const auto& raw) { Tensor(raw).optional_view<float, 2>(); }, absent), FUSEDIFF_OK);
  f.shape = {0, 3};
  EXPECT_EQ(status_of([](const auto& raw) { Tensor(raw).view<float, 2>(); }, absent), FUSEDIFF_OK);
}

TEST(TensorTest, DenseGivesPointerAndCount) {
  std::vector<float> memory(24);
  const auto tensor = [&](const std::array<int64_t, 2>& shape, const std::array<int64_t, 2>& stride) {
    return fusediff_tensor{"x", shape.data(), stride.data(), memory.data(), 2, FUSEDIFF_F32};
  };
  const std::array<int64_t, 2> shape{4, 3};
  const std::array<int64_t, 2> row_major{3, 1};
  const fusediff_tensor dense = tensor(shape, row_major);
  EXPECT_EQ(Tensor(dense).dense<const float>().data(), memory.data());
  EXPECT_EQ(Tensor(dense).dense<float>().size(), 12u);
  EXPECT_EQ(status_of([](const auto& raw) { Tensor(raw).dense<double>(); }, dense), FUSEDIFF_UNSUPPORTED);
  for (const std::array<int64_t, 2> stride : {std::array<int64_t, 2>{4, 1}, {1, 4}, {0, 1}, {3, 2}}) {
    EXPECT_EQ(status_of([](const auto& raw) { Tensor(raw).dense<float>(); }, tensor(shape, stride)),
              FUSEDIFF_UNSUPPORTED);
  }
  // A stride along one element, or of an empty tensor, moves nothing.
  const std::array<int64_t, 2> one_row{1, 3};
  const std::array<int64_t, 2> far{99, 1};
  EXPECT_EQ(Tensor(tensor(one_row, far)).dense<float>().size(), 3u);
  const std::array<int64_t, 2> empty{0, 3};
  EXPECT_EQ(Tensor(tensor(empty, far)).dense<float>().size(), 0u);
  const fusediff_tensor scalar{"s", nullptr, nullptr, memory.data(), 0, FUSEDIFF_F32};
  EXPECT_EQ(Tensor(scalar).dense<float>().size(), 1u);
  fusediff_tensor absent = dense;
  absent.data = nullptr;
  EXPECT_EQ(status_of([](const auto& raw) { Tensor(raw).dense<float>(); }, absent), FUSEDIFF_REJECTED);
}

TEST(RowsTest, VisitsEveryRowOfAnyRank) {
  std::vector<float> memory(24);
  std::iota(memory.begin(), memory.end(), 0.0f);
  std::vector<float> out(24, -1.0f);
  const std::array<int64_t, 3> shape{2, 3, 4};
  const std::array<int64_t, 3> forward{12, 4, 1};
  const std::array<int64_t, 3> backward{1, 2, 6};
  const fusediff_tensor x{"x", shape.data(), forward.data(), memory.data(), 3, FUSEDIFF_F32};
  const fusediff_tensor y{"y", shape.data(), backward.data(), out.data(), 3, FUSEDIFF_F32};
  int rows = 0;
  for_each_row<float>(std::array{Tensor(y), Tensor(x)}, [&](const auto& row) {
    ++rows;
    for (int64_t i = 0; i < row[0].shape[0]; ++i) {
      row[0](i) = row[1](i);
    }
  });
  EXPECT_EQ(rows, 6);
  EXPECT_EQ(out[1 * 1 + 2 * 2 + 3 * 6], 23.0f);
  EXPECT_EQ(out[0 * 1 + 1 * 2 + 2 * 6], 6.0f);
  const fusediff_tensor scalar{"s", nullptr, nullptr, memory.data(), 0, FUSEDIFF_F32};
  for_each_row<float>(std::array{Tensor(scalar)}, [&](const auto& row) { EXPECT_EQ(row[0].shape[0], 1); });
}

TEST(CarverTest, CountsWhatItWouldTake) {
  Carver count;
  EXPECT_EQ(count.take<float>(3), nullptr);
  EXPECT_EQ(count.take<double>(9), nullptr);
  EXPECT_EQ(count.bytes(), 64u + 128u);
  alignas(64) std::byte memory[192];
  Carver carver(memory, sizeof(memory));
  EXPECT_EQ(static_cast<void*>(carver.take<float>(3)), memory);
  EXPECT_EQ(static_cast<void*>(carver.take<double>(9)), memory + 64);
  EXPECT_THROW(carver.take<float>(1), Failure);
}

}  // namespace
}  // namespace fusediff::kit
