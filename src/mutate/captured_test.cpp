#include "mutate/captured.h"

#include <array>
#include <memory>

#include "mutate/schemas_test.h"

namespace fusediff {
namespace {

// x [2, 8] and bias [8] as a training step might have left them, in a file.
Case captured() {
  Result<Case> c = parse_case(R"({"fusediff_case": 1, "op": "moe_gating_topk",
    "dims": {"T": 2, "E": 8, "K": 2, "G": 1, "KG": 1}, "dtypes": {"x": "f32"},
    "inputs": {"x": {"fill": {"constant": 0}}, "bias": {"fill": {"constant": 0}}}})");
  EXPECT_TRUE(c.ok()) << c.error().what;
  for (auto& [name, value] : c->inputs) {
    std::vector<std::byte> bytes((name == "x" ? 16u : 8u) * 4u);
    for (std::size_t i = 0; i < bytes.size() / 4; ++i)
      store_bits(DType::kF32, round_to_bits(DType::kF32, 1.5 + static_cast<double>(i)), bytes.data() + 4 * i);
    value.fill = {};
    value.fill.kind = FillKind::kBits;
    value.fill.bits = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    value.fill.bits_file = "step.safetensors#" + name;
    value.fill.bits_dtype = DType::kF32;
  }
  return *c;
}

class Captured : public testing::Test {
 protected:
  Case refitted(const Case& before, const std::function<void(Case&)>& change) {
    Case c = before;
    change(c);
    MutateContext context{schema_.operators.front(), rng_, kTestBytes, probe_};
    refit_bits(c, std::array{&before}, context);
    EXPECT_TRUE(repair(c, context));
    return c;
  }
  static double at(const Case& c, const char* input, std::size_t i, DType dtype) {
    return float_value(dtype, load_bits(dtype, c.inputs.at(input).fill.bits->data() + i * size_of(dtype)));
  }

  Schema schema_ = schema_of(kGating);
  Rng rng_{1};
  Probe probe_;
};

TEST_F(Captured, StayWhatTheyAreWhereNothingChanges) {
  const Case c = captured();
  EXPECT_EQ(refitted(c, [](Case&) {}), c);
}

TEST_F(Captured, AreCutAndRepeatedWithTheSizes) {
  const Case less = refitted(captured(), [](Case& c) { c.dims["E"] = 4; });
  ASSERT_EQ(less.inputs.at("x").fill.kind, FillKind::kBits);
  EXPECT_TRUE(less.inputs.at("x").fill.bits_file.empty());
  EXPECT_EQ(at(less, "x", 4, DType::kF32), 9.5);  // row 1 began at 8
  EXPECT_EQ(at(less, "bias", 3, DType::kF32), 4.5);
  const Case more = refitted(captured(), [](Case& c) { c.dims["T"] = 3; });
  EXPECT_EQ(at(more, "x", 16, DType::kF32), 1.5);
  EXPECT_EQ(more.inputs.at("bias").fill.bits_file, "step.safetensors#bias");
}

TEST_F(Captured, AreRoundedIntoAnotherDtype) {
  const Case half = refitted(captured(), [](Case& c) { c.dtypes["x"] = DType::kBF16; });
  ASSERT_EQ(half.inputs.at("x").fill.kind, FillKind::kBits);
  EXPECT_EQ(at(half, "x", 15, DType::kBF16), 16.5);
  EXPECT_EQ(at(half, "bias", 7, DType::kBF16), 8.5);
}

TEST_F(Captured, AreGivenUpWhereTheyWouldNotFitIntoACase) {
  const Case large = refitted(captured(), [](Case& c) { c.dims["T"] = 4096; });
  EXPECT_NE(large.inputs.at("x").fill.kind, FillKind::kBits);
  EXPECT_EQ(large.inputs.at("bias").fill.bits_file, "step.safetensors#bias");
}

TEST_F(Captured, AreTheStartOfWhateverMutationComes) {
  MutateContext context{schema_.operators.front(), rng_, kTestBytes, probe_};
  int kept = 0, changed_on_top = 0;
  for (int i = 0; i < 500; ++i) {
    Case c = captured();
    if (!mutate(c, context)) continue;
    ASSERT_TRUE(bind(c, context.op, kTestBytes).ok());
    const auto x = c.inputs.find("x");
    if (x == c.inputs.end() || x->second.fill.kind != FillKind::kBits) continue;
    ++kept;
    changed_on_top += x->second.set.empty() && x->second.patches.empty() ? 0 : 1;
  }
  EXPECT_GT(kept, 300);
  EXPECT_GT(changed_on_top, 30);
}

}  // namespace
}  // namespace fusediff
