// Faults of mhc_pre_sinkhorn_grad: reports B2 and B4, alone and in the library of the three reports.
#include "planted/loaded.h"

namespace fusediff::planted {
namespace {

using namespace kit;

struct MhcSizes {
  int64_t batch, sequence, streams, channels, iterations;
};

// Saved tensors are made up: the paths only compute with them.
Rig grad_rig(const MhcSizes& s) {
  const int64_t mixes = s.streams * s.streams + 2 * s.streams;
  Rig rig("mhc_pre_sinkhorn_grad");
  rig.input("grad_hin", FUSEDIFF_BF16, {s.batch, s.sequence, s.channels});
  rig.input("grad_h_post", FUSEDIFF_F32, {s.batch, s.sequence, s.streams});
  rig.input("grad_h_res", FUSEDIFF_F32, {s.batch, s.sequence, s.streams, s.streams});
  rig.input("x", FUSEDIFF_BF16, {s.batch, s.sequence, s.streams, s.channels});
  rig.input("phi", FUSEDIFF_F32, {mixes, s.streams * s.channels});
  rig.input("alpha", FUSEDIFF_F32, {3});
  rig.input("bias", FUSEDIFF_F32, {mixes});
  rig.input("h_pre", FUSEDIFF_F32, {s.batch, s.sequence, s.streams});
  rig.input("hc_before_norm", FUSEDIFF_F32, {s.batch, s.sequence, mixes});
  rig.input("inv_rms", FUSEDIFF_F32, {s.batch, s.sequence, 1});
  rig.input("sum_out", FUSEDIFF_F32, {2 * s.iterations, s.batch, s.sequence, s.streams});
  rig.input("norm_out", FUSEDIFF_F32, {2 * s.iterations, s.batch, s.sequence, s.streams, s.streams});
  rig.output("grad_bias", FUSEDIFF_F32, {mixes});
  rig.output("grad_alpha", FUSEDIFF_F32, {3});
  rig.output("grad_phi", FUSEDIFF_F32, {mixes, s.streams * s.channels});
  rig.output("grad_x", FUSEDIFF_BF16, {s.batch, s.sequence, s.streams, s.channels});
  rig.real("hc_eps", 1e-6);
  std::mt19937_64 random(61);
  std::uniform_real_distribution<double> uniform(0.1, 1);
  for (RigTensor& in : rig.inputs()) {
    for (int64_t i = 0; i < in.count(); ++i) {
      in.put_number(i, uniform(random));
    }
  }
  return rig;
}

int64_t bytes_that_keep_the_fill(RigTensor& tensor) {
  int64_t kept = 0;
  for (int64_t i = 0; i < tensor.count(); ++i) {
    for (size_t b = 0; b < dtype_bytes(tensor.dtype); ++b) {
      kept += tensor.at(i)[b] == RigTensor::kFill;
    }
  }
  return kept;
}

TEST(ReportB2Test, AnEmptyBatchLeavesThreeGradientsUnwritten) {
  for (const char* name : {"planted_report_b2", "planted"}) {
    Rig rig = grad_rig({0, 8, 4, 128, 20});
    ASSERT_EQ(rig.run(*loaded(name), "fused"), FUSEDIFF_OK) << rig.error();
    EXPECT_EQ(bytes_that_keep_the_fill(rig.output("grad_phi")), 49152);
    EXPECT_EQ(bytes_that_keep_the_fill(rig.output("grad_alpha")), 12);
    EXPECT_EQ(bytes_that_keep_the_fill(rig.output("grad_bias")), 96);
  }
  for (const char* name : {"planted_report_b2_clean", "planted_clean", "builtin"}) {
    Rig rig = grad_rig({0, 8, 4, 128, 20});
    ASSERT_EQ(rig.run(*loaded(name), "fused"), FUSEDIFF_OK) << rig.error();
    for (RigTensor& out : rig.outputs()) {
      for (int64_t i = 0; i < out.count(); ++i) {
        ASSERT_EQ(out.bits(i), 0u) << name << " " << out.name;
      }
    }
  }
}

TEST(ReportB2Test, AFullBatchGivesTheBitsOfTheBuiltInPath) {
  for (const char* name : {"planted_report_b2", "planted_report_b4", "planted", "planted_clean"}) {
    Rig rig = grad_rig({2, 3, 4, 128, 20});
    EXPECT_EQ(difference(rig, name, "fused", "builtin", "unfused"), "") << name;
  }
}

TEST(ReportB4Test, LimitsThatTheRecordDoesNotState) {
  struct Broken {
    MhcSizes sizes;
    const char* text;
  };
  for (const Broken& one : {Broken{{1, 2, 3, 128, 20}, "161002: N must be 4, not 3"},
                            Broken{{1, 2, 4, 128, 3}, "161002: num_iters must be 20, not 3"},
                            Broken{{1, 2, 4, 64, 20}, "161002: C must be a multiple of 128, not 64"}}) {
    Rig rig = grad_rig(one.sizes);
    for (const char* name : {"planted_report_b4", "planted"}) {
      EXPECT_EQ(rig.run(*loaded(name), "fused"), FUSEDIFF_REJECTED);
      EXPECT_EQ(rig.error(), one.text);
    }
    for (const char* name : {"planted_report_b4_clean", "planted_clean"}) {
      EXPECT_EQ(difference(rig, name, "fused", "builtin", "unfused"), "") << name;
    }
  }
}

}  // namespace
}  // namespace fusediff::planted
