// Faults of moe_gating_topk: report A, sglang 31768, vllm 39391.
#include <cmath>
#include <limits>

#include "planted/loaded.h"

namespace fusediff::planted {
namespace {

using namespace kit;

Rig gating_rig(int32_t dtype, int64_t tokens, int64_t experts, int64_t k, const std::string& norm_type = "sigmoid") {
  Rig rig("moe_gating_topk");
  rig.input("x", dtype, {tokens, experts});
  rig.input("bias", dtype, {experts});
  rig.output("norm_out", FUSEDIFF_F32, {tokens, experts});
  rig.output("rank", FUSEDIFF_F32, {tokens, experts});
  rig.output("expert_idx", FUSEDIFF_I32, {tokens, k});
  rig.output("y", dtype, {tokens, k});
  rig.integer("k", k);
  rig.integer("k_group", 1);
  rig.integer("group_count", 1);
  rig.integer("group_select_mode", 0);
  rig.integer("renorm", 0);
  rig.text("norm_type", norm_type);
  rig.integer("out_flag", 1);
  rig.real("routed_scaling_factor", 1.0);
  rig.real("eps", 1e-20);
  return rig;
}

TEST(GatingTwinsTest, GiveTheBitsOfTheBuiltInPath) {
  std::mt19937_64 random(31);
  for (const char* name : {"planted_report_a_clean", "planted_sglang_31768_clean", "planted_vllm_39391_clean"}) {
    for (const int32_t dtype : {FUSEDIFF_F32, FUSEDIFF_F16, FUSEDIFF_BF16}) {
      for (int i = 0; i < 100; ++i) {
        const int64_t experts = 1 + static_cast<int64_t>(random() % 70);
        const int64_t k = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(experts));
        Rig rig = gating_rig(dtype, static_cast<int64_t>(random() % 4), experts, k, i % 3 ? "sigmoid" : "softmax");
        for (RigTensor& in : rig.inputs()) {
          random_layout(in, random, true);
          random_values(in, random, 3.0, false);
        }
        rig.input("bias").absent = random() % 3 == 0;
        ASSERT_EQ(difference(rig, name, "fused", "builtin", "unfused"), "") << name << " " << i;
      }
    }
  }
}

// Of scores from a normal distribution, between one in 2000 and one in 100 has another sigmoid: one ULP less.
TEST(ReportATest, FewSigmoidsAreOneUlpLow) {
  std::mt19937_64 random(32);
  std::normal_distribution<float> normal;
  Rig rig = gating_rig(FUSEDIFF_F32, 100, 2000, 1);
  for (int64_t i = 0; i < rig.input("x").count(); ++i) {
    rig.input("x").put(i, normal(random));
  }
  ASSERT_EQ(rig.run(*loaded("planted_report_a"), "fused"), FUSEDIFF_OK);
  RigTensor low = rig.output("norm_out");
  ASSERT_EQ(rig.run(*loaded("builtin"), "unfused"), FUSEDIFF_OK);
  int64_t differing = 0;
  for (int64_t i = 0; i < low.count(); ++i) {
    const uint64_t here = rig.output("norm_out").bits(i);
    ASSERT_TRUE(low.bits(i) == here || low.bits(i) + 1 == here);
    differing += low.bits(i) != here;
  }
  EXPECT_GT(differing, low.count() / 2000);
  EXPECT_LT(differing, low.count() / 100);
  RecordProperty("differing_of_200000", static_cast<int>(differing));
}

// Between the same two experts, a tie after the bias: the table of the report, to its last digit.
TEST(ReportATest, OneUlpFlipsAPickAtATie) {
  Rig rig = gating_rig(FUSEDIFF_F32, 1, 512, 10);
  for (int64_t e = 0; e < 512; ++e) {
    rig.input("x").put(e, e < 9 ? 10.0f : -1.0f);
    rig.input("bias").put(e, 0.0f);
  }
  rig.input("x").put(122, 0x1.2c6638p+1f);
  rig.input("x").put(472, 0x1.a3927p+0f);
  rig.input("bias").put(122, 0x1.878acp-6f);
  rig.input("bias").put(472, 0x1.9648cp-4f);
  ASSERT_EQ(rig.run(*loaded("planted_report_a"), "fused"), FUSEDIFF_OK);
  std::deque<RigTensor> fused = rig.outputs();
  ASSERT_EQ(rig.run(*loaded("builtin"), "unfused"), FUSEDIFF_OK);
  EXPECT_EQ(rig.output("norm_out").get<float>(122), 0x1.d34b76p-1f);
  EXPECT_EQ(fused[0].get<float>(122), 0x1.d34b74p-1f);
  EXPECT_EQ(rig.output("norm_out").get<float>(472), fused[0].get<float>(472));
  EXPECT_EQ(rig.output("rank").get<float>(122), rig.output("rank").get<float>(472));
  EXPECT_LT(fused[1].get<float>(122), fused[1].get<float>(472));
  EXPECT_EQ(rig.output("expert_idx").get<int32_t>(9), 122);
  EXPECT_EQ(fused[2].get<int32_t>(9), 472);
}

TEST(Sglang31768Test, CloseRanksAreReordered) {
  Rig rig = gating_rig(FUSEDIFF_F32, 1, 64, 1);
  for (int64_t e = 0; e < 64; ++e) {
    rig.input("x").put(e, -1.0f);
    rig.input("bias").put(e, 0.0f);
  }
  rig.input("x").put(10, 1.0f);
  rig.input("x").put(60, 1.00001f);
  ASSERT_EQ(rig.run(*loaded("planted_sglang_31768"), "fused"), FUSEDIFF_OK);
  EXPECT_EQ(rig.output("expert_idx").get<int32_t>(0), 10);
  ASSERT_EQ(rig.run(*loaded("planted_sglang_31768_clean"), "fused"), FUSEDIFF_OK);
  EXPECT_EQ(rig.output("expert_idx").get<int32_t>(0), 60);
}

TEST(Vllm39391Test, ARowWithoutNumbersPicksOneExpertThrice) {
  Rig rig = gating_rig(FUSEDIFF_BF16, 1, 8, 3);
  for (int64_t e = 0; e < 8; ++e) {
    rig.input("x").put_number(e, std::numeric_limits<double>::quiet_NaN());
    rig.input("bias").put_number(e, 0);
  }
  ASSERT_EQ(rig.run(*loaded("planted_vllm_39391"), "fused"), FUSEDIFF_OK);
  for (int64_t j = 0; j < 3; ++j) {
    EXPECT_EQ(rig.output("expert_idx").get<int32_t>(j), 0);
  }
  ASSERT_EQ(rig.run(*loaded("planted_vllm_39391_clean"), "fused"), FUSEDIFF_OK);
  for (int32_t j = 0; j < 3; ++j) {
    EXPECT_EQ(rig.output("expert_idx").get<int32_t>(j), j);
  }
}

}  // namespace
}  // namespace fusediff::planted
