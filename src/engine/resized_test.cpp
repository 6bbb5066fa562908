#include "engine/resized.h"

#include <algorithm>
#include <memory>

#include "engine/toy_target.h"
#include "model/values.h"

namespace fusediff {
namespace {

using namespace toy;

constexpr std::uint64_t kMax = 1 << 20;

class Resized : public testing::Test {
 protected:
  const Operator& op() const { return toy.target.schema.operators[0]; }

  // x of T by N elements 0, 1, 2, ..., captured in a file.
  Case captured(std::int64_t t, std::int64_t n) const {
    Case c = case_of(R"({"fusediff_case": 1, "op": "op", "dims": {"T": 1, "N": 1}, "dtypes": {"x": "f32"},
        "inputs": {"x": {"fill": {"constant": 0}}}})");
    c.dims = {{"T", t}, {"N", n}};
    Fill& fill = c.inputs["x"].fill;
    fill = {};
    fill.kind = FillKind::kBits;
    std::vector<std::byte> bytes(static_cast<std::size_t>(4 * t * n));
    for (std::size_t i = 0; i < bytes.size() / 4; ++i)
      store_bits(DType::kF32, round_to_bits(DType::kF32, static_cast<double>(i)), bytes.data() + 4 * i);
    fill.bits = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    fill.bits_file = "step.safetensors#x";
    fill.bits_dtype = DType::kF32;
    return c;
  }
  static std::vector<double> values(const Case& c) {
    const std::vector<std::byte>& bytes = *c.inputs.at("x").fill.bits;
    std::vector<double> read(bytes.size() / 4);
    widen(DType::kF32, bytes, read);
    return read;
  }

  Toy toy{R"({"name": "op", "paths": ["fused", "unfused"], "dims": {"T": {"range": [0, 9]}, "N": {"range": [0, 9]}},
      "inputs": [{"name": "x", "shape": ["T", "N"], "dtype": ["f32", "f16"], "layout": "any"}],
      "outputs": [{"name": "y", "shape": ["T", "N"], "dtype": "=x"}]})"};
};

TEST_F(Resized, CapturedBitsAreCutToTheirLeadingPart) {
  const Case c = captured(3, 4);
  EXPECT_EQ(values(resized(c, op(), {{"T", 2}}, kMax)), (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(values(resized(c, op(), {{"N", 2}}, kMax)), (std::vector<double>{0, 1, 4, 5, 8, 9}));
  EXPECT_EQ(values(resized(c, op(), {{"T", 2}, {"N", 1}}, kMax)), (std::vector<double>{0, 4}));
  EXPECT_EQ(values(resized(c, op(), {{"T", 0}}, kMax)), std::vector<double>());
}

TEST_F(Resized, WhatIsCutIsNoLongerThatOfTheFileButKeepsItsDtype) {
  const Fill cut = resized(captured(3, 4), op(), {{"N", 3}}, kMax).inputs.at("x").fill;
  EXPECT_EQ(cut.bits_file, "");
  EXPECT_EQ(cut.bits_dtype, DType::kF32);
  const Fill whole = resized(captured(3, 4), op(), {{"N", 4}}, kMax).inputs.at("x").fill;
  EXPECT_EQ(whole.bits_file, "step.safetensors#x");
}

TEST_F(Resized, BitsThatCannotBeCutStayAsTheyAre) {
  const Case c = captured(3, 4);
  EXPECT_EQ(resized(c, op(), {{"T", 5}}, kMax).inputs, c.inputs);             // larger: nothing is made up
  EXPECT_EQ(resized(c, op(), {{"T", 5}, {"N", 2}}, kMax).inputs, c.inputs);   // one of them larger
  EXPECT_EQ(resized(captured(3, 4), op(), {{"T", 10}}, 1).inputs, c.inputs);  // beyond the memory: not bound
  Case other = c;
  other.dims["N"] = 9;  // the bits never fitted
  EXPECT_EQ(resized(other, op(), {{"N", 2}}, kMax).inputs, c.inputs);
}

// Of a tensor that repeats one row the one row is stored.
TEST_F(Resized, RepeatedRowsAreCutWhereTheyAreStored) {
  Case c = captured(1, 4);
  c.dims["T"] = 3;
  c.layout["x"].stride = std::vector<std::int64_t>{0, 1};
  EXPECT_EQ(values(resized(c, op(), {{"T", 2}}, kMax)), (std::vector<double>{0, 1, 2, 3}));
  EXPECT_EQ(values(resized(c, op(), {{"N", 2}}, kMax)), (std::vector<double>{0, 1}));
}

TEST_F(Resized, OverridesAndPatchesMoveInside) {
  Case c = captured(3, 4);
  c.inputs["x"].set[11].real = 1;  // [2, 3]
  c.inputs["x"].patches.push_back({1, 2, 2, 3, {}});
  const InputValue value = resized(c, op(), {{"T", 2}, {"N", 3}}, kMax).inputs.at("x");
  ASSERT_EQ(value.set.size(), 1u);
  EXPECT_EQ(value.set.begin()->first, 5);  // [1, 2]
  ASSERT_EQ(value.patches.size(), 1u);
  EXPECT_EQ(value.patches[0].row_high, 1);
  EXPECT_EQ(value.patches[0].column_high, 2);
}

}  // namespace
}  // namespace fusediff
