#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "builtin/last_place.h"
#include "builtin/paths_agree.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr int32_t kDtypes[] = {FUSEDIFF_F32, FUSEDIFF_F16, FUSEDIFF_BF16, FUSEDIFF_F64};

struct Format {
  const char *name, *output;
  int32_t dtype;
  double most;
};

constexpr Format kFormats[] = {{"e4m3", "q_e4m3", FUSEDIFF_F8E4M3FN, 448},
                               {"e5m2", "q_e5m2", FUSEDIFF_F8E5M2, 57344},
                               {"int8", "q_int8", FUSEDIFF_I8, 127}};

Rig quantize_rig(int32_t dtype, const Format& format, int64_t rows, int64_t columns, int64_t block) {
  const bool wide = dtype == FUSEDIFF_F64;
  Rig rig("quantize");
  rig.input("x", dtype, {rows, columns});
  rig.output("scale", wide ? FUSEDIFF_F64 : FUSEDIFF_F32, {rows, (columns + block - 1) / block});
  rig.output(format.output, wide && format.dtype != FUSEDIFF_I8 ? FUSEDIFF_F64 : format.dtype, {rows, columns});
  rig.integer("block", block);
  rig.text("format", format.name);
  return rig;
}

void randomise(Rig& rig, std::mt19937_64& random, bool tame) {
  random_layout(rig.input("x"), random, true);
  random_values(rig.input("x"), random, std::ldexp(1.0, static_cast<int>(random() % 40) - 20), tame);
  for (RigTensor& out : rig.outputs()) {
    random_layout(out, random, false);
  }
}

TEST(QuantizeTest, PathsAgreeByBits) {
  std::mt19937_64 random(81);
  for (const int32_t dtype : kDtypes) {
    for (int i = 0; i < 600; ++i) {
      Rig rig = quantize_rig(dtype, kFormats[i % 3], static_cast<int64_t>(random() % 5),
                             static_cast<int64_t>(random() % 200), 1 + static_cast<int64_t>(random() % 130));
      randomise(rig, random, false);
      ASSERT_TRUE(paths_agree(rig)) << dtype_name(dtype) << " " << i;
    }
  }
}

TEST(QuantizeTest, IsWithinItsBounds) {
  std::mt19937_64 random(82);
  for (const int32_t dtype : kDtypes) {
    for (int i = 0; i < 300; ++i) {
      const Format& format = kFormats[i % 3];
      const int64_t columns = 1 + static_cast<int64_t>(random() % 90), block = 1 + static_cast<int64_t>(random() % 100);
      Rig rig = quantize_rig(dtype, format, 2, columns, block);
      randomise(rig, random, true);
      ASSERT_TRUE(paths_agree(rig));
      const int64_t blocks = (columns + block - 1) / block;
      RigTensor& q = rig.output(format.output);
      for (int64_t e = 0; e < 2 * columns; ++e) {
        const int64_t first = e % columns / block * block;
        long double amax = 0;
        for (int64_t c = first; c < std::min(columns, first + block); ++c) {
          amax = std::max(amax, std::abs(static_cast<long double>(rig.input("x").number(e / columns * columns + c))));
        }
        if (std::isinf(amax)) {
          continue;
        }
        const long double scale = amax < 0x1p-110L ? 1 : amax / static_cast<long double>(format.most);
        const long double got = rig.output("scale").number(e / columns * blocks + e % columns / block);
        ASSERT_LE(std::abs(got - scale), 2 * spacing(rig.output("scale").dtype, static_cast<double>(scale)));
        const long double truth = rig.input("x").number(e) / scale;
        ASSERT_LE(std::abs(static_cast<long double>(q.number(e)) - truth),
                  (q.dtype == FUSEDIFF_F64 ? 2 : 0.501L) * spacing(q.dtype, static_cast<double>(truth)) +
                      2e-4L * (q.dtype == FUSEDIFF_I8 ? 1 : 0))
            << format.name << " " << rig.input("x").number(e);
        ASSERT_LE(std::abs(q.number(e)), format.most);
      }
    }
  }
}

// Half-way points go to the even neighbour; the largest magnitude becomes the largest number.
TEST(QuantizeTest, RoundsToNearestEven) {
  const double at[] = {127, 0.5, 1.5, 2.5, -0.5, -1.5, -126.5, 3.49};
  const double right[] = {127, 0, 2, 2, 0, -2, -126, 3};
  Rig rig = quantize_rig(FUSEDIFF_F32, kFormats[2], 1, 8, 8);
  // e4m3: steps of 32 from 256 on, of 2^-9 at the bottom.
  const double wide_at[] = {448, 272, 304, 0x1p-10, 3 * 0x1p-10, -272, 240, 0x1p-11};
  const double wide_right[] = {448, 256, 320, 0, 4 * 0x1p-10, -256, 240, 0};
  Rig wide = quantize_rig(FUSEDIFF_F32, kFormats[0], 1, 8, 8);
  for (int64_t i = 0; i < 8; ++i) {
    rig.input("x").put_number(i, at[i]);
    wide.input("x").put_number(i, wide_at[i]);
  }
  ASSERT_TRUE(paths_agree(rig));
  ASSERT_TRUE(paths_agree(wide));
  for (int64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(rig.output("q_int8").number(i), right[i]);
    EXPECT_EQ(wide.output("q_e4m3").number(i), wide_right[i]);
  }
}

TEST(QuantizeTest, SpecialBlocks) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const Format& format : kFormats) {
    Rig rig = quantize_rig(FUSEDIFF_F32, format, 4, 2, 2);
    const double x[] = {0, -0.0, 1e-40, -1e-40, nan, 2, inf, 1};
    for (int64_t i = 0; i < 8; ++i) {
      rig.input("x").put_number(i, x[i]);
    }
    ASSERT_TRUE(paths_agree(rig));
    RigTensor& q = rig.output(format.output);
    const bool integer = format.dtype == FUSEDIFF_I8;
    EXPECT_EQ(rig.output("scale").number(0), 1);
    EXPECT_EQ(rig.output("scale").number(1), 1);
    EXPECT_EQ(q.number(0), 0);
    EXPECT_EQ(q.number(3), 0);
    EXPECT_NEAR(rig.output("scale").number(2), 2 / format.most, 1e-7);
    EXPECT_TRUE(integer ? q.number(4) == 0 : std::isnan(q.number(4)));
    EXPECT_EQ(q.number(5), format.most);
    EXPECT_EQ(rig.output("scale").number(3), inf);
    EXPECT_TRUE(integer ? q.number(6) == 0 : std::isnan(q.number(6)));
    EXPECT_EQ(q.number(7), 0);
  }
}

// The largest finite input stays finite, as the record promises.
TEST(QuantizeTest, TheLargestFiniteStaysFinite) {
  for (const Format& format : kFormats) {
    Rig rig = quantize_rig(FUSEDIFF_F32, format, 1, 3, 4);
    const double most = static_cast<double>(std::numeric_limits<float>::max());
    for (int64_t i = 0; i < 3; ++i) {
      rig.input("x").put_number(i, i == 1 ? -most : most);
    }
    ASSERT_TRUE(paths_agree(rig));
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(rig.output(format.output).number(i), i == 1 ? -format.most : format.most);
    }
  }
}

TEST(QuantizeTest, NoElementsIsLegal) {
  for (const Format& format : kFormats) {
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{0, 5}, {5, 0}}) {
      Rig rig = quantize_rig(FUSEDIFF_F32, format, rows, columns, 4);
      EXPECT_TRUE(paths_agree(rig));
    }
  }
}

TEST(QuantizeTest, BrokenCallsAreRejected) {
  Rig name = quantize_rig(FUSEDIFF_F32, {"fp4", "q_e4m3", FUSEDIFF_F8E4M3FN, 448}, 1, 1, 1);
  EXPECT_EQ(name.run(*fusediff_target(), "fused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(name.error(), "format must be e4m3, e5m2 or int8, not fp4");
  Rig scales = quantize_rig(FUSEDIFF_F32, kFormats[0], 1, 9, 4);
  scales.output("scale").shape = {1, 2};
  EXPECT_EQ(scales.run(*fusediff_target(), "unfused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(scales.error(), "scale has size 2 in dimension 1, not 3");
}

TEST(QuantizeTest, SameBitsFromEveryCompiler) {
  const uint64_t golden[] = {0x65d50d422cc98a56u, 0x7a4f32125dac2b2eu, 0xc8ac4546086c6ad0u, 0xd8bc519983e0d3beu,
                             0xbcff390f26505866u, 0xec0172a086a7e89au, 0x492a3b6b8fdddcbeu, 0xa9f3bd829004498du,
                             0x387dd0b8fd63aedu,  0x4b2622a14a5ba521u, 0x29e622a14a5ba521u, 0xf63f2fd11932e7eu};
  for (size_t i = 0; i < 12; ++i) {
    Rig rig = quantize_rig(kDtypes[i / 3], kFormats[i % 3], 5, 77, 32);
    EXPECT_EQ(counted_digest(rig), golden[i]) << dtype_name(kDtypes[i / 3]) << kFormats[i % 3].name;
  }
}

}  // namespace
}  // namespace fusediff::builtin
