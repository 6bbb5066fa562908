#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "builtin/moe_permute_rig.h"
#include "builtin/paths_agree.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr int kRounds = 400;

TEST(MoePermuteTest, PathsAgreeByBits) {
  std::mt19937_64 random(21);
  for (const int32_t dtype : kPermuteDtypes) {
    for (int i = 0; i < kRounds; ++i) {
      const PermuteSizes s = random_permute_sizes(random);
      Rig rig = permute_rig(dtype, s);
      randomise(rig, random, s, false);
      ASSERT_TRUE(paths_agree(rig)) << dtype_name(dtype) << " " << i;
    }
  }
}

TEST(MoePermuteTest, FollowsTheDefinition) {
  std::mt19937_64 random(22);
  for (int i = 0; i < kRounds; ++i) {
    const PermuteSizes s = random_permute_sizes(random);
    Rig rig = permute_rig(FUSEDIFF_BF16, s);
    const std::vector<int32_t> indices = random_indices(random, s);
    put_all(rig.input("indices"), indices);
    for (int64_t j = 0; j < s.tokens * s.columns; ++j) {
      rig.input("tokens").put(j, static_cast<uint16_t>(random()));
    }
    ASSERT_TRUE(paths_agree(rig));
    const std::vector<int32_t> map = map_of(indices, s);
    for (int64_t k = 0; k < s.picks; ++k) {
      for (int64_t t = 0; t < s.tokens; ++t) {
        const int32_t row = map[static_cast<size_t>(k * s.tokens + t)];
        ASSERT_EQ(rig.output("row_id_map").get<int32_t>(k * s.tokens + t), row);
        for (int64_t h = 0; row >= 0 && h < s.columns; ++h) {
          // As bits: a NaN arrives with its payload.
          ASSERT_EQ(rig.output("out").get<uint16_t>(row * s.columns + h),
                    rig.input("tokens").get<uint16_t>(t * s.columns + h));
        }
      }
    }
  }
}

// A gradient or a weighted sum by the definition, in double; NaN-free inputs.
double sum_over_picks(Rig& rig, const char* rows, const PermuteSizes& s, int64_t t, int64_t h, bool magnitude) {
  double sum = 0;
  for (int64_t k = 0; k < s.picks; ++k) {
    const int32_t row = rig.input("row_id_map").get<int32_t>(k * s.tokens + t);
    if (row >= 0) {
      const bool weighted = std::string(rows) == "in" && !rig.input("probs").absent;
      const double weight = weighted ? rig.input("probs").number(t * s.picks + k) : 1.0;
      const double term = weight * rig.input(rows).number(row * s.columns + h);
      sum += magnitude ? std::abs(term) : term;
    }
  }
  return sum;
}

TEST(MoePermuteGradTest, PathsAgreeByBits) {
  std::mt19937_64 random(23);
  for (const int32_t dtype : kPermuteDtypes) {
    for (int i = 0; i < kRounds; ++i) {
      const PermuteSizes s = random_permute_sizes(random);
      Rig rig = permute_grad_rig(dtype, s, random() % 2 == 0);
      randomise(rig, random, s, false);
      ASSERT_TRUE(paths_agree(rig)) << dtype_name(dtype) << " " << i;
    }
  }
}

TEST(MoeUnpermuteTest, PathsAgreeByBits) {
  std::mt19937_64 random(24);
  for (const int32_t dtype : kPermuteDtypes) {
    for (int i = 0; i < kRounds; ++i) {
      const PermuteSizes s = random_permute_sizes(random);
      Rig rig = unpermute_rig(dtype, s, random() % 2 == 0);
      randomise(rig, random, s, false);
      ASSERT_TRUE(paths_agree(rig)) << dtype_name(dtype) << " " << i;
    }
  }
}

TEST(MoeUnpermuteGradTest, PathsAgreeByBits) {
  std::mt19937_64 random(25);
  for (const int32_t dtype : kPermuteDtypes) {
    for (int i = 0; i < kRounds; ++i) {
      const PermuteSizes s = random_permute_sizes(random);
      Rig rig = unpermute_grad_rig(dtype, s);
      randomise(rig, random, s, false);
      rig.output("grad_probs").absent = random() % 4 == 0;
      ASSERT_TRUE(paths_agree(rig)) << dtype_name(dtype) << " " << i;
    }
  }
}

// The spacing of the dtype's numbers around `value`.
double spacing(int32_t dtype, double value) {
  struct Format {
    int mantissa, lowest;
  };
  const Format f = dtype == FUSEDIFF_F32        ? Format{23, -126}
                   : dtype == FUSEDIFF_F16      ? Format{10, -14}
                   : dtype == FUSEDIFF_BF16     ? Format{7, -126}
                   : dtype == FUSEDIFF_F64      ? Format{52, -1022}
                   : dtype == FUSEDIFF_F8E4M3FN ? Format{3, -6}
                                                : Format{2, -14};
  const int exponent = value == 0 ? f.lowest : std::max(std::ilogb(value), f.lowest);
  return std::ldexp(1.0, exponent - f.mantissa);
}

// Every path, dtype and precision stays within the bound of its schema record.
TEST(MoePermuteGradTest, IsWithinItsBound) {
  std::mt19937_64 random(26);
  for (const int32_t dtype : kPermuteDtypes) {
    for (int i = 0; i < kRounds; ++i) {
      PermuteSizes s = random_permute_sizes(random);
      s.columns = std::min<int64_t>(s.columns, 20);
      Rig rig = permute_grad_rig(dtype, s, i % 2 == 0);
      randomise(rig, random, s, true);
      ASSERT_TRUE(paths_agree(rig));
      for (int64_t j = 0; j < s.tokens * s.columns; ++j) {
        const double truth = sum_over_picks(rig, "grad_out", s, j / s.columns, j % s.columns, false);
        const double scale = sum_over_picks(rig, "grad_out", s, j / s.columns, j % s.columns, true);
        ASSERT_LE(std::abs(rig.output("grad_tokens").number(j) - truth),
                  static_cast<double>(s.picks) * spacing(dtype, scale))
            << dtype_name(dtype);
      }
    }
  }
}

TEST(MoeUnpermuteTest, IsWithinItsBound) {
  std::mt19937_64 random(27);
  for (const int32_t dtype : kPermuteDtypes) {
    for (int i = 0; i < kRounds; ++i) {
      PermuteSizes s = random_permute_sizes(random);
      s.columns = std::min<int64_t>(s.columns, 20);
      Rig rig = unpermute_rig(dtype, s, i % 2 == 0);
      randomise(rig, random, s, true);
      ASSERT_TRUE(paths_agree(rig));
      for (int64_t j = 0; j < s.tokens * s.columns; ++j) {
        const double truth = sum_over_picks(rig, "in", s, j / s.columns, j % s.columns, false);
        const double scale = sum_over_picks(rig, "in", s, j / s.columns, j % s.columns, true);
        ASSERT_LE(std::abs(rig.output("out").number(j) - truth),
                  2 * static_cast<double>(s.picks) * spacing(dtype, scale))
            << dtype_name(dtype);
      }
    }
  }
}

// `compute` is honoured: 1 + 2^-11 + 2^-11 is 1 in f16 and 1 + 2^-10 in f32.
TEST(MoeUnpermuteTest, ComputeDecidesWhereSumsAreKept) {
  for (const bool storage : {false, true}) {
    const PermuteSizes s{1, 1, 3, 3, 3};
    Rig sum = unpermute_rig(FUSEDIFF_F16, s, storage);
    Rig grad = permute_grad_rig(FUSEDIFF_F16, s, storage);
    sum.input("probs").absent = true;
    const double expected = storage ? 1.0 : 1.0 + std::ldexp(1.0, -10);
    for (int64_t k = 0; k < 3; ++k) {
      for (Rig* rig : {&sum, &grad}) {
        rig->inputs()[0].put_number(k, k == 0 ? 1.0 : std::ldexp(1.0, -11));
        rig->input("row_id_map").put(k, static_cast<int32_t>(k));
      }
    }
    ASSERT_TRUE(paths_agree(sum));
    EXPECT_EQ(sum.output("out").number(0), expected);
    ASSERT_TRUE(paths_agree(grad));
    EXPECT_EQ(grad.output("grad_tokens").number(0), expected);
  }
}

TEST(MoeUnpermuteGradTest, FollowsTheDefinition) {
  std::mt19937_64 random(28);
  for (int i = 0; i < kRounds; ++i) {
    const PermuteSizes s = random_permute_sizes(random);
    Rig rig = unpermute_grad_rig(FUSEDIFF_F64, s);
    randomise(rig, random, s, true);
    ASSERT_TRUE(paths_agree(rig));
    std::vector<double> grad_in(static_cast<size_t>(s.rows * s.columns), 0.0);
    for (int64_t slot = 0; slot < s.tokens * s.picks; ++slot) {
      const int64_t t = slot / s.picks;
      const int64_t row = rig.input("row_id_map").get<int32_t>(slot % s.picks * s.tokens + t);
      double dot = 0;
      double scale = 0;
      for (int64_t h = 0; row >= 0 && h < s.columns; ++h) {
        const double gradient = rig.input("grad_out").number(t * s.columns + h);
        const double weight = rig.input("probs").absent ? 1.0 : rig.input("probs").number(slot);
        ASSERT_EQ(rig.output("grad_in").number(row * s.columns + h), weight * gradient);
        dot += gradient * rig.input("in").number(row * s.columns + h);
        scale += std::abs(gradient * rig.input("in").number(row * s.columns + h));
      }
      ASSERT_NEAR(rig.output("grad_probs").number(slot), dot, 1e-13 * scale);
    }
  }
}

TEST(MoePermuteFamilyTest, NoTokensIsLegal) {
  const PermuteSizes s{0, 8, 2, 4, 0};
  for (const int32_t dtype : kPermuteDtypes) {
    Rig permute = permute_rig(dtype, s);
    Rig permute_grad = permute_grad_rig(dtype, s, true);
    Rig unpermute = unpermute_rig(dtype, s, false);
    Rig unpermute_grad = unpermute_grad_rig(dtype, s);
    for (Rig* rig : {&permute, &permute_grad, &unpermute, &unpermute_grad}) {
      EXPECT_TRUE(paths_agree(*rig));
    }
  }
}

// Everything cut off: sums over nothing are zeros, and so are gradients of rows that no pick names.
TEST(MoePermuteFamilyTest, CutOffPicksAreSkipped) {
  const PermuteSizes s{3, 5, 2, 4, 2};
  Rig grad = permute_grad_rig(FUSEDIFF_F16, s, false);
  Rig sum = unpermute_rig(FUSEDIFF_F16, s, false);
  Rig both = unpermute_grad_rig(FUSEDIFF_F16, s);
  std::mt19937_64 random(29);
  for (Rig* rig : {&grad, &sum, &both}) {
    for (RigTensor& in : rig->inputs()) {
      if (in.name == "row_id_map") {
        put_all(in, std::vector<int32_t>(6, -1));
      } else {
        random_values(in, random, 1.0, false);
      }
    }
    ASSERT_TRUE(paths_agree(*rig));
    for (RigTensor& out : rig->outputs()) {
      for (int64_t i = 0; i < out.count(); ++i) {
        EXPECT_EQ(out.bits(i), 0u) << out.name;
      }
    }
  }
}

TEST(MoePermuteFamilyTest, BrokenCallsAreRejected) {
  Rig many = permute_rig(FUSEDIFF_F32, {2, 3, 2, 4, 5});
  Rig outside = unpermute_rig(FUSEDIFF_F32, {1, 3, 1, 1, 1}, false);
  outside.input("row_id_map").put(0, int32_t{1});
  Rig twice = unpermute_grad_rig(FUSEDIFF_F32, {2, 3, 1, 2, 2});
  put_all(twice.input("row_id_map"), std::vector<int32_t>{1, 1});
  EXPECT_EQ(many.run(*fusediff_target(), "fused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(many.error(), "num_out_tokens must be 0 to 4, not 5");
  EXPECT_EQ(outside.run(*fusediff_target(), "fused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(outside.error(), "row_id_map[0,0] is 1, not -1 or one of 1 rows");
  EXPECT_EQ(twice.run(*fusediff_target(), "fused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(twice.error(), "row_id_map names row 1 twice");
}

}  // namespace
}  // namespace fusediff::builtin
