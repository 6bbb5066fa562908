// Faults of rms_norm and its gradient: vllm 44692, aiter 2586, flashinfer 4476, unsloth 10617, triton 6307, and those
// of place: by address and by position in the batch.
#include <algorithm>
#include <cmath>

#include "planted/in_flight.h"

namespace fusediff::planted {
namespace {

using namespace kit;

constexpr int32_t kDtypes[] = {FUSEDIFF_F32, FUSEDIFF_F16, FUSEDIFF_BF16, FUSEDIFF_F8E4M3FN, FUSEDIFF_F8E5M2};
// What a race is given to show itself, and what a clean twin must stand.
constexpr int kMostRounds = 20000;
constexpr int kCleanRounds = 300;

Rig norm_rig(int32_t dtype, int64_t rows, int64_t columns, bool add, uint64_t seed) {
  Rig rig("rms_norm");
  rig.input("x", dtype, {rows, columns});
  rig.input("residual", dtype, {rows, columns}).absent = !add;
  rig.input("gamma", dtype, {columns});
  rig.output("residual_out", dtype, {rows, columns}).absent = !add;
  rig.output("rstd", FUSEDIFF_F32, {rows});
  rig.output("y", dtype, {rows, columns});
  rig.integer("add_residual", add);
  rig.real("eps", 1e-6);
  std::mt19937_64 random(seed);
  for (RigTensor& in : rig.inputs()) {
    std::normal_distribution<double> normal;
    for (int64_t i = 0; i < in.count(); ++i) {
      in.put_number(i, normal(random));
    }
  }
  return rig;
}

Rig norm_grad_rig(int32_t dtype, int64_t rows, int64_t columns, bool add, uint64_t seed) {
  Rig rig("rms_norm_grad");
  rig.input("grad_y", dtype, {rows, columns});
  rig.input("grad_residual_out", dtype, {rows, columns}).absent = !add;
  rig.input("x", dtype, {rows, columns});
  rig.input("residual_out", dtype, {rows, columns}).absent = !add;
  rig.input("rstd", FUSEDIFF_F32, {rows});
  rig.input("gamma", dtype, {columns});
  rig.output("grad_x", dtype, {rows, columns});
  rig.output("grad_gamma", dtype, {columns});
  rig.integer("add_residual", add);
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(0.25, 2);
  for (RigTensor& in : rig.inputs()) {
    for (int64_t i = 0; i < in.count(); ++i) {
      in.put_number(i, uniform(random));
    }
  }
  return rig;
}

TEST(NormTwinsTest, GiveTheBitsOfTheBuiltInPath) {
  std::mt19937_64 random(71);
  for (const char* name : {"planted_vllm_44692_clean", "planted_aiter_2586_clean", "planted_address_modulo_clean",
                           "planted_row_position_clean", "planted_flashinfer_4476_clean"}) {
    for (const int32_t dtype : kDtypes) {
      for (int i = 0; i < 40; ++i) {
        Rig rig = norm_rig(dtype, static_cast<int64_t>(random() % 7), 1 + static_cast<int64_t>(random() % 200),
                           random() % 2 == 0, random());
        for (RigTensor& in : rig.inputs()) {
          random_layout(in, random, true);
          random_values(in, random, 2.0, false);
        }
        ASSERT_EQ(difference(rig, name, "fused", "builtin", "unfused"), "") << name << " " << i;
      }
    }
  }
}

TEST(NormGradTwinsTest, GiveTheBitsOfTheBuiltInPath) {
  std::mt19937_64 random(72);
  for (const char* name : {"planted_unsloth_10617_clean", "planted_triton_6307_clean"}) {
    for (const int32_t dtype : kDtypes) {
      for (int i = 0; i < 40; ++i) {
        Rig rig = norm_grad_rig(dtype, static_cast<int64_t>(random() % 40), 1 + static_cast<int64_t>(random() % 300),
                                random() % 2 == 0, random());
        for (RigTensor& in : rig.inputs()) {
          random_layout(in, random, true);
          random_values(in, random, 2.0, false);
        }
        ASSERT_EQ(difference(rig, name, "fused", "builtin", "unfused"), "") << name << " " << i;
      }
    }
  }
}

TEST(Vllm44692Test, IsRightWhereTheTripsAreAMultipleOfFour) {
  for (int64_t columns = 1; columns <= 260; ++columns) {
    Rig rig = norm_rig(FUSEDIFF_F32, 2, columns, false, 73);
    const bool right = (columns + 15) / 16 % 4 == 0;
    EXPECT_EQ(difference(rig, "planted_vllm_44692", "fused", "builtin", "unfused") == "", right) << columns;
  }
}

// Of the elements of y a quarter differ, each by one unit of the dtype; nothing does where the dtype is f32.
TEST(Aiter2586Test, AQuarterIsOneUlpOff) {
  Rig rig = norm_rig(FUSEDIFF_BF16, 16, 256, true, 74);
  ASSERT_EQ(rig.run(*loaded("planted_aiter_2586"), "fused"), FUSEDIFF_OK);
  RigTensor y = rig.output("y"), residual_out = rig.output("residual_out");
  ASSERT_EQ(rig.run(*loaded("builtin"), "unfused"), FUSEDIFF_OK);
  int64_t differing = 0;
  for (int64_t i = 0; i < y.count(); ++i) {
    EXPECT_EQ(residual_out.bits(i), rig.output("residual_out").bits(i));
    const uint64_t a = y.bits(i), b = rig.output("y").bits(i);
    EXPECT_LE(std::max(a, b) - std::min(a, b), 2u);
    differing += a != b;
  }
  EXPECT_GT(differing, y.count() / 8);
  EXPECT_LT(differing, y.count() / 2);
  RecordProperty("differing_of_4096", static_cast<int>(differing));
  Rig wide = norm_rig(FUSEDIFF_F32, 16, 256, true, 74);
  EXPECT_EQ(difference(wide, "planted_aiter_2586", "fused", "builtin", "unfused"), "");
}

TEST(AddressModuloTest, BitsDependOnTheAddress) {
  // A row of the rig starts 64 bytes into its memory; a gap moves the ones behind.
  const auto differs_at = [](int64_t gap) {
    Rig rig = norm_rig(FUSEDIFF_F32, 64, 64, false, 75);
    RigTensor dense = rig.input("x");
    rig.input("x").lay_out(gap);
    for (int64_t i = 0; i < dense.count(); ++i) {
      rig.input("x").put(i, dense.get<float>(i));
    }
    return difference(rig, "planted_address_modulo", "fused", "builtin", "unfused") != "";
  };
  EXPECT_FALSE(differs_at(4));
  EXPECT_TRUE(differs_at(1));
}

TEST(RowPositionTest, BitsDependOnTheRowsBesides) {
  const auto differs = [](int64_t rows) {
    Rig rig = norm_rig(FUSEDIFF_F32, rows, 100, false, 76);
    return difference(rig, "planted_row_position", "fused", "builtin", "unfused") != "";
  };
  EXPECT_FALSE(differs(3));
  EXPECT_TRUE(differs(64));
}

std::deque<Rig> norm_rigs(const std::vector<int64_t>& rows) {
  std::deque<Rig> rigs;
  for (const int64_t each : rows) {
    rigs.push_back(norm_rig(FUSEDIFF_F32, each, 96, false, 77));
  }
  return rigs;
}

TEST(Flashinfer4476Test, EqualShapesInFlightDirtyEachOther) {
  std::deque<Rig> equal = norm_rigs({8, 8, 8, 8});
  EXPECT_GT(threads_that_differ("planted_flashinfer_4476", equal, kMostRounds), 0);
  EXPECT_EQ(threads_that_differ("planted_flashinfer_4476", equal, kCleanRounds, true), 0);
  EXPECT_EQ(threads_that_differ("planted_flashinfer_4476_clean", equal, kCleanRounds), 0);
  std::deque<Rig> mixed = norm_rigs({8, 7, 6, 5});
  EXPECT_EQ(threads_that_differ("planted_flashinfer_4476", mixed, kCleanRounds), 0);
}

// One column in two of a gradient that has columns to spare, and a transposed one; rows with a gap are right.
TEST(Unsloth10617Test, IgnoresTheStrideOfColumns) {
  const auto differs = [](int64_t gap, bool transposed, int64_t column_stride) {
    Rig rig = norm_grad_rig(FUSEDIFF_F32, 4, 24, false, 78);
    RigTensor& grad = rig.input("grad_y");
    grad.lay_out(gap, transposed);
    if (column_stride > 1) {
      grad.stride = {24 * column_stride, column_stride};
      grad.reserve();
    }
    for (int64_t i = 0; i < grad.count(); ++i) {
      grad.put_number(i, static_cast<double>(i % 7) + 1);
    }
    return difference(rig, "planted_unsloth_10617", "fused", "builtin", "unfused");
  };
  EXPECT_EQ(differs(0, false, 1), "");
  EXPECT_EQ(differs(5, false, 1), "");
  EXPECT_NE(differs(0, true, 1), "");
  EXPECT_NE(differs(0, false, 2), "");
}

TEST(Triton6307Test, UpdatesAreLostNowAndThen) {
  const auto wrong = [](const std::string& name, int64_t rows, int calls) {
    Rig rig = norm_grad_rig(FUSEDIFF_F32, rows, 128, false, 79);
    EXPECT_EQ(rig.run(*loaded("builtin"), "unfused"), FUSEDIFF_OK);
    const std::vector<uint64_t> right = output_bits(rig);
    for (int i = 0; i < calls; ++i) {
      EXPECT_EQ(rig.run(*loaded(name), "fused"), FUSEDIFF_OK);
      if (output_bits(rig) != right) {
        return i + 1;
      }
    }
    return 0;
  };
  const int first = wrong("planted_triton_6307", 64, kMostRounds);
  EXPECT_GT(first, 0);
  RecordProperty("first_wrong_call", first);
  EXPECT_EQ(wrong("planted_triton_6307", 15, kCleanRounds), 0);
  EXPECT_EQ(wrong("planted_triton_6307_clean", 64, kCleanRounds), 0);
}

}  // namespace
}  // namespace fusediff::planted
