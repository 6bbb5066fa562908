#include "engine/explicit_case.h"

#include <cmath>

#include "engine/resized.h"
#include "engine/toy_target.h"
#include "model/values.h"

namespace fusediff {
namespace {

using namespace toy;

constexpr std::uint64_t kMax = 1 << 20;

class ExplicitCase : public testing::Test {
 protected:
  const Operator& op() const { return toy.target.schema.operators[0]; }
  std::vector<double> values(const Case& of, const std::string& input) const {
    const Result<Call> call = bind(of, op(), kMax);
    if (!call.ok()) {
      ADD_FAILURE() << call.error().what;
      return {};
    }
    for (std::size_t i = 0; i < op().inputs.size(); ++i) {
      if (op().inputs[i].name != input) continue;
      const auto bytes = draw_values(of.inputs.at(input), op().inputs[i], call->inputs[i], *call);
      if (!bytes.ok()) {
        ADD_FAILURE() << bytes.error().what;
        return {};
      }
      std::vector<double> read(bytes->size() / size_of(call->inputs[i].dtype));
      widen(call->inputs[i].dtype, *bytes, read);
      return read;
    }
    return {};
  }

  Toy toy{R"({"name": "op", "paths": ["fused", "unfused"], "dims": {"T": {"range": [0, 9]}, "N": {"range": [0, 9]}},
      "where": ["T <= N"],
      "inputs": [{"name": "x", "shape": ["T", "N"], "dtype": ["f32", "f16"], "layout": "any"},
                 {"name": "at", "shape": ["2 * N"], "dtype": "i32", "role": "index", "range": [0, "N - 1"]}],
      "outputs": [{"name": "y", "shape": ["T", "N"], "dtype": "=x"}]})"};
  Case c = case_of(R"({"fusediff_case": 1, "op": "op", "dims": {"T": 2, "N": 3}, "dtypes": {"x": "f32"},
      "inputs": {"x": {"fill": {"ramp": [0, 5]}, "set": {"4": "nan", "0": "-0x0p+0"}}, "at": {"fill": {"constant": 0}, "set": {"1": 1}}}})");
};

TEST_F(ExplicitCase, WrittenOutHoldsTheSameBytes) {
  const std::optional<Case> out = written_out(c, op(), kMax);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->inputs.at("x").fill.kind, FillKind::kBits);
  EXPECT_TRUE(out->inputs.at("x").set.empty());
  EXPECT_EQ(values(*out, "at"), values(c, "at"));
  EXPECT_EQ(values(*out, "x")[5], 5);
  EXPECT_TRUE(std::isnan(values(*out, "x")[4]));
}

TEST_F(ExplicitCase, WithoutARowOrColumnTheRestKeepsItsValues) {
  const Case out = *written_out(c, op(), kMax);
  const std::optional<Case> no_row = without_slices(out, op(), "T", 0, 1, "", kMax);
  ASSERT_TRUE(no_row);
  EXPECT_EQ(no_row->dims.at("T"), 1);
  EXPECT_EQ(values(*no_row, "x")[0], 3);
  EXPECT_EQ(values(*no_row, "x")[2], 5);
  const std::optional<Case> no_column = without_slices(out, op(), "N", 1, 1, "", kMax);
  ASSERT_TRUE(no_column);
  EXPECT_EQ(values(*no_column, "x"), (std::vector<double>{0, 2, 3, 5}));
  EXPECT_EQ(values(*no_column, "at"), (std::vector<double>{0, 1, 0, 0}));  // the leading part stays
}

TEST_F(ExplicitCase, WhatWouldBeIllegalIsNothing) {
  const Case out = *written_out(c, op(), kMax);
  EXPECT_FALSE(without_slices(out, op(), "N", 0, 2, "", kMax));  // T <= N
  EXPECT_FALSE(written_out(c, op(), 16));
}

TEST_F(ExplicitCase, RepeatedElementsAreDroppedWithTheirStoredOnes) {
  Case strided = c;
  strided.inputs["x"].set.clear();
  strided.layout["x"].stride = std::vector<std::int64_t>{0, 1};
  const Case out = *written_out(strided, op(), kMax);
  const std::optional<Case> no_row = without_slices(out, op(), "T", 1, 1, "", kMax);
  ASSERT_TRUE(no_row);
  EXPECT_EQ(values(*no_row, "x"), values(out, "x"));  // one row is stored before and after
}

TEST_F(ExplicitCase, TheRowOfAnExperimentStaysTheSameOneOrMovesInside) {
  Toy rows(R"({"name": "op", "paths": ["fused", "unfused"], "dims": {"T": {"range": [0, 9]}, "N": {"range": [0, 9]}},
      "inputs": [{"name": "x", "shape": ["T", "N"], "dtype": "f32"}],
      "outputs": [{"name": "y", "shape": ["T", "N"], "dtype": "f32"}],
      "rows": {"dim": "T", "inputs": ["x"], "outputs": "all"}})");
  const Operator& with_rows = rows.target.schema.operators[0];
  Case of_row = case_of(R"({"fusediff_case": 1, "op": "op", "dims": {"T": 8, "N": 2},
      "inputs": {"x": {"fill": {"ramp": [0, 15]}}}, "experiment": {"relation": {"row_alone": {"row": 5}}}})");
  EXPECT_EQ(resized(of_row, with_rows, {{"T", 7}}, kMax).experiment.row, 5);
  EXPECT_EQ(resized(of_row, with_rows, {{"T", 3}}, kMax).experiment.row, 2);
  EXPECT_EQ(resized(of_row, with_rows, {{"T", 0}}, kMax).experiment.row, 0);
  EXPECT_EQ(resized(of_row, with_rows, {{"N", 1}}, kMax).experiment.row, 5);
  const Case out = *written_out(of_row, with_rows, kMax);
  EXPECT_EQ(out.experiment, of_row.experiment);
  const auto row_without = [&](std::int64_t first, std::int64_t count) {
    return without_slices(out, with_rows, "T", first, count, "", kMax)->experiment.row;
  };
  EXPECT_EQ(row_without(0, 3), 2);  // the same row, moved up
  EXPECT_EQ(row_without(6, 2), 5);
  EXPECT_EQ(row_without(5, 2), 5);  // the next one in its place
  EXPECT_EQ(row_without(4, 4), 3);  // the last that is left
  EXPECT_EQ(without_slices(out, with_rows, "N", 0, 1, "", kMax)->experiment.row, 5);
}

TEST_F(ExplicitCase, InShortSpellsTheSameBytes) {
  const Case out = *written_out(c, op(), kMax);
  const Case shorter = in_short(out, op(), kMax);
  EXPECT_EQ(*written_out(shorter, op(), kMax), out);
  EXPECT_EQ(shorter.inputs.at("at").fill.kind, FillKind::kConstant);
  EXPECT_EQ(shorter.inputs.at("at").set.size(), 1u);
}

}  // namespace
}  // namespace fusediff
