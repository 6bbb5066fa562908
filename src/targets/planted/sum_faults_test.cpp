// Faults of sums over picks: report C; and the near misses.
#include <algorithm>
#include <cmath>

#include "builtin/moe_permute_rig.h"
#include "planted/loaded.h"

namespace fusediff::planted {
namespace {

using namespace kit;
using builtin::PermuteSizes;

// Rows uniform in [0, 1), probabilities uniform and normalised per token.
void uniform_inputs(Rig& rig, std::mt19937_64& random, const PermuteSizes& s) {
  std::uniform_real_distribution<double> uniform(0, 1);
  builtin::put_all(rig.input("row_id_map"), builtin::map_of(builtin::random_indices(random, s), s));
  for (RigTensor& in : rig.inputs()) {
    for (int64_t i = 0; in.name != "row_id_map" && i < in.count(); ++i) {
      in.put_number(i, uniform(random));
    }
    for (int64_t t = 0; in.name == "probs" && t < s.tokens; ++t) {
      double sum = 0;
      for (int64_t k = 0; k < s.picks; ++k) {
        sum += in.number(t * s.picks + k);
      }
      for (int64_t k = 0; k < s.picks; ++k) {
        in.put_number(t * s.picks + k, in.number(t * s.picks + k) / sum);
      }
    }
  }
}

// The largest difference between the planted fused and the built-in unfused path.
double largest_difference(Rig& rig, const std::string& target) {
  EXPECT_EQ(rig.run(*loaded(target), "fused"), FUSEDIFF_OK);
  RigTensor fused = rig.outputs()[0];
  EXPECT_EQ(rig.run(*loaded("builtin"), "unfused"), FUSEDIFF_OK);
  double largest = 0;
  for (int64_t i = 0; i < fused.count(); ++i) {
    largest = std::max(largest, std::abs(fused.number(i) - rig.outputs()[0].number(i)));
  }
  return largest;
}

TEST(ReportCTest, SumsInTheStorageDtypeDifferByRounding) {
  std::mt19937_64 random(51);
  for (const bool forward : {true, false}) {
    for (const int32_t dtype : {FUSEDIFF_F32, FUSEDIFF_F16, FUSEDIFF_BF16, FUSEDIFF_F8E4M3FN, FUSEDIFF_F8E5M2}) {
      const PermuteSizes s{64, 64, 4, 16, 256};
      Rig rig = forward ? builtin::unpermute_rig(dtype, s, false) : builtin::permute_grad_rig(dtype, s, false);
      uniform_inputs(rig, random, s);
      const double unit = dtype == FUSEDIFF_F16 ? 0x1p-11 : dtype == FUSEDIFF_BF16 ? 0x1p-8 : 0x1p-3;
      const double largest = largest_difference(rig, "planted_report_c");
      if (dtype == FUSEDIFF_F32) {
        EXPECT_EQ(largest, 0);
      } else {
        // Sums of a few E4M3 values below 1 are exact in f16.
        EXPECT_TRUE(largest > 0 || (!forward && dtype == FUSEDIFF_F8E4M3FN)) << dtype_name(dtype);
        EXPECT_LE(largest, 8 * static_cast<double>(s.picks) * unit) << dtype_name(dtype);
      }
      EXPECT_EQ(largest_difference(rig, "planted_report_c_clean"), 0);
    }
  }
}

TEST(ReportCOwnGradTest, DoesNotFollowTheUpstreamGradient) {
  std::mt19937_64 random(52);
  const PermuteSizes s{8, 16, 2, 4, 16};
  Rig rig = builtin::permute_grad_rig(FUSEDIFF_F32, s, false);
  uniform_inputs(rig, random, s);
  EXPECT_GT(largest_difference(rig, "planted_report_c_own_grad"), 0.1);
  EXPECT_EQ(largest_difference(rig, "planted_report_c_own_grad_clean"), 0);
  for (const char* name : {"planted_report_c_own_grad", "planted_report_c_own_grad_clean"}) {
    ASSERT_EQ(rig.run(*loaded(name), "fused"), FUSEDIFF_OK);
    RigTensor before = rig.outputs()[0];
    for (int64_t i = 0; i < rig.input("grad_out").count(); ++i) {
      rig.input("grad_out").put(i, rig.input("grad_out").get<float>(i) + 1.0f);
    }
    ASSERT_EQ(rig.run(*loaded(name), "fused"), FUSEDIFF_OK);
    EXPECT_EQ(rig.outputs()[0].bits(0) == before.bits(0), std::string(name) == "planted_report_c_own_grad");
  }
}

TEST(NearAgreeTest, DiffersWithinWhatTheRecordAllows) {
  std::mt19937_64 random(53);
  Rig rig("row_sum");
  rig.input("x", FUSEDIFF_F32, {32, 512});
  rig.output("y", FUSEDIFF_F32, {32});
  for (int64_t i = 0; i < 32 * 512; ++i) {
    rig.input("x").put(i, static_cast<float>(random() % 1000000) * 1e-6f);
  }
  ASSERT_EQ(rig.run(*loaded("planted_near_agree"), "fused"), FUSEDIFF_OK);
  RigTensor fused = rig.outputs()[0];
  ASSERT_EQ(rig.run(*loaded("planted_near_agree"), "unfused"), FUSEDIFF_OK);
  uint64_t largest = 0;
  for (int64_t i = 0; i < 32; ++i) {
    const uint64_t a = fused.bits(i), b = rig.outputs()[0].bits(i);
    largest = std::max(largest, std::max(a, b) - std::min(a, b));
  }
  EXPECT_GT(largest, 0u);
  EXPECT_LE(largest, 1024u);
}

TEST(NearNanTest, DiffersInNanBitsOnly) {
  Rig rig("root");
  rig.input("x", FUSEDIFF_F32, {3});
  builtin::put_all(rig.input("x"), std::vector<float>{4.0f, -1.0f, -0.0f});
  rig.output("y", FUSEDIFF_F32, {3});
  EXPECT_EQ(difference(rig, "planted_near_nan", "fused", "planted_near_nan", "unfused"), "");
  EXPECT_EQ(rig.run(*loaded("planted_near_nan"), "fused"), FUSEDIFF_OK);
  EXPECT_EQ(rig.outputs()[0].get<uint32_t>(1), 0x7fc00001u);
  EXPECT_EQ(rig.run(*loaded("planted_near_nan"), "unfused"), FUSEDIFF_OK);
  EXPECT_NE(rig.outputs()[0].get<uint32_t>(1), 0x7fc00001u);
}

TEST(NearUnsupportedTest, SaysSo) {
  Rig rig("negate");
  rig.input("x", FUSEDIFF_F32, {3});
  rig.output("y", FUSEDIFF_F32, {3});
  EXPECT_EQ(rig.run(*loaded("planted_near_unsupported"), "fused"), FUSEDIFF_UNSUPPORTED);
  EXPECT_EQ(rig.run(*loaded("planted_near_unsupported"), "unfused"), FUSEDIFF_OK);
}

}  // namespace
}  // namespace fusediff::planted
