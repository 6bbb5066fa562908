#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "builtin/paths_agree.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr int32_t kFloats[] = {FUSEDIFF_F32, FUSEDIFF_F16,      FUSEDIFF_BF16,
                               FUSEDIFF_F64, FUSEDIFF_F8E4M3FN, FUSEDIFF_F8E5M2};

Rig random_rig(const std::string& op, const std::vector<std::string>& inputs, std::mt19937_64& random) {
  const int32_t dtype = kFloats[random() % 6];
  const int64_t rows = static_cast<int64_t>(random() % 5);
  const int64_t columns = static_cast<int64_t>(random() % 140);
  Rig rig(op);
  for (const std::string& name : inputs) {
    RigTensor& in = rig.input(name, dtype, {rows, columns});
    random_layout(in, random, true);
    random_values(in, random, 10.0, false);
  }
  random_layout(rig.output("y", dtype, {rows, columns}), random, false);
  return rig;
}

TEST(AddTest, PathsAgreeByBits) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    Rig rig = random_rig("add", {"a", "b"}, random);
    ASSERT_TRUE(paths_agree(rig)) << i;
  }
}

TEST(AddTest, RoundsTheSumOnce) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 500; ++i) {
    Rig rig = random_rig("add", {"a", "b"}, random);
    ASSERT_TRUE(paths_agree(rig)) << i;
    RigTensor expected = rig.output("y");
    for (int64_t e = 0; e < expected.count(); ++e) {
      // 8-bit and 16-bit sums are exact in double; float ones are where no more than 53 bits apart.
      const double sum = rig.input("a").number(e) + rig.input("b").number(e);
      expected.put_number(e, expected.dtype == FUSEDIFF_F16 || expected.dtype == FUSEDIFF_BF16
                                 ? static_cast<double>(static_cast<float>(sum))
                                 : sum);
      ASSERT_EQ(expected.bits(e), rig.output("y").bits(e)) << e;
    }
  }
}

TEST(SigmoidTest, PathsAgreeByBits) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    Rig rig = random_rig("sigmoid", {"x"}, random);
    ASSERT_TRUE(paths_agree(rig)) << i;
  }
}

TEST(SigmoidTest, IsCloseToTheDefinition) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 200; ++i) {
    Rig rig = random_rig("sigmoid", {"x"}, random);
    ASSERT_TRUE(paths_agree(rig)) << i;
    const double relative[] = {0, 1e-15, 1e-7, 1e-3, 8e-3, 0.07, 0.13};
    const double absolute[] = {0, 1e-300, 1e-37, 3e-8, 1e-37, 1e-3, 1e-5};
    for (int64_t e = 0; e < rig.output("y").count(); ++e) {
      const double truth = 1 / (1 + std::exp(-rig.input("x").number(e)));
      const double got = rig.output("y").number(e);
      const auto dtype = static_cast<size_t>(rig.output("y").dtype);
      ASSERT_TRUE(std::isnan(truth) ? std::isnan(got)
                                    : std::abs(got - truth) <= relative[dtype] * truth + absolute[dtype])
          << rig.input("x").number(e) << " gives " << got;
    }
  }
}

TEST(ElementwiseTest, OutputMayLieOnTheInput) {
  float values[100];
  float apart[100];
  const int64_t shape[] = {4, 25};
  const int64_t stride[] = {25, 1};
  for (const char* path : {"fused", "unfused"}) {
    for (int i = 0; i < 100; ++i) {
      values[i] = static_cast<float>(i) - 50;
    }
    const fusediff_tensor x{"x", shape, stride, values, 2, FUSEDIFF_F32};
    fusediff_tensor y{"y", shape, stride, apart, 2, FUSEDIFF_F32};
    fusediff_call call{};
    call.struct_size = sizeof(call);
    call.op = "sigmoid";
    call.path = path;
    call.inputs = &x;
    call.input_count = 1;
    call.outputs = &y;
    call.output_count = 1;
    ASSERT_EQ(fusediff_target()->run(nullptr, &call), FUSEDIFF_OK);
    y.data = values;
    ASSERT_EQ(fusediff_target()->run(nullptr, &call), FUSEDIFF_OK);
    EXPECT_TRUE(std::equal(values, values + 100, apart));
  }
}

TEST(ElementwiseTest, ShapesMustAgree) {
  Rig rig("add");
  rig.input("a", FUSEDIFF_F32, {2, 3});
  rig.input("b", FUSEDIFF_F32, {2, 4});
  rig.output("y", FUSEDIFF_F32, {2, 3});
  EXPECT_EQ(rig.run(*fusediff_target(), "fused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(rig.error(), "b and y differ in dimension 1");
}

TEST(SigmoidTest, SameBitsFromEveryCompiler) {
  const uint64_t golden[] = {0xb3040553b6955390u, 0xc16678e3905a53a9u, 0xfb1339b9b399a06du,
                             0xa9822e23a2d4b9fau, 0x8c078cac2890ea67u, 0x33fe65b9bcaf126bu};
  for (size_t i = 0; i < 6; ++i) {
    Rig rig("sigmoid");
    rig.input("x", kFloats[i], {9, 31});
    rig.output("y", kFloats[i], {9, 31});
    EXPECT_EQ(counted_digest(rig), golden[i]) << dtype_name(kFloats[i]);
  }
}

}  // namespace
}  // namespace fusediff::builtin
