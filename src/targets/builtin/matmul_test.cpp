#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "builtin/last_place.h"
#include "builtin/paths_agree.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr int32_t kDtypes[] = {FUSEDIFF_F32, FUSEDIFF_F16,      FUSEDIFF_BF16,
                               FUSEDIFF_F64, FUSEDIFF_F8E4M3FN, FUSEDIFF_F8E5M2};
constexpr const char* kActivations[] = {"none", "relu", "silu", "gelu_tanh"};

struct Sizes {
  int64_t rows, columns, depth;
};

// The weight that the call does not have is there, absent, as the schema's `if` leaves it.
Rig matmul_rig(int32_t dtype, const Sizes& z, const std::string& activation, bool transposed) {
  const int32_t wide = dtype == FUSEDIFF_F64 ? FUSEDIFF_F64 : FUSEDIFF_F32;
  Rig rig("matmul");
  rig.input("x", dtype, {z.rows, z.depth});
  rig.input("w", dtype, {z.depth, z.columns}).absent = transposed;
  rig.input("w_t", dtype, {z.columns, z.depth}).absent = !transposed;
  rig.input("bias", dtype, {z.columns});
  rig.output("pre", wide, {z.rows, z.columns});
  rig.output("y", dtype, {z.rows, z.columns});
  rig.integer("transposed", transposed ? 1 : 0);
  rig.text("activation", activation);
  return rig;
}

void randomise(Rig& rig, std::mt19937_64& random, bool tame) {
  for (RigTensor& in : rig.inputs()) {
    random_layout(in, random, true);
    random_values(in, random, 1.0, tame);
  }
  rig.input("bias").absent = random() % 2 == 0;
  for (RigTensor& out : rig.outputs()) {
    random_layout(out, random, false);
  }
  rig.output("pre").absent = random() % 4 == 0;
}

Sizes random_sizes(std::mt19937_64& random) {
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
  return {below(20), below(150), below(70)};
}

TEST(MatmulTest, PathsAgreeByBits) {
  std::mt19937_64 random(61);
  for (const int32_t dtype : kDtypes) {
    for (int i = 0; i < 200; ++i) {
      Rig rig = matmul_rig(dtype, random_sizes(random), kActivations[random() % 4], random() % 2 == 0);
      randomise(rig, random, false);
      ASSERT_TRUE(paths_agree(rig)) << dtype_name(dtype) << " " << i;
    }
  }
}

// The sum before the activation, and that of its absolute terms.
struct Sum {
  long double value, terms;
};

Sum sum_of(Rig& rig, int64_t row, int64_t column) {
  Sum s{};
  const int64_t depth = rig.input("x").shape[1], columns = rig.input("w").shape[1];
  const auto add = [&](long double term) {
    s.value += term;
    s.terms += std::abs(term);
  };
  for (int64_t k = 0; k < depth; ++k) {
    const double w = rig.input("w").absent ? rig.input("w_t").number(column * depth + k)
                                           : rig.input("w").number(k * columns + column);
    add(static_cast<long double>(rig.input("x").number(row * depth + k)) * w);
  }
  if (!rig.input("bias").absent) {
    add(rig.input("bias").number(column));
  }
  return s;
}

long double activated(const std::string& activation, long double v) {
  if (activation == "relu") {
    return v < 0 ? 0 : v;
  }
  if (activation == "silu") {
    return v / (1 + std::exp(-v));
  }
  const long double z = std::sqrt(2 / std::acos(-1.0L)) * (v + 0.044715L * v * v * v);
  return activation == "gelu_tanh" ? v / (1 + std::exp(-2 * z)) : v;
}

// Every element within the bounds of the record.
void expect_within_bounds(Rig& rig, const std::string& activation) {
  const int64_t columns = rig.output("y").shape[1];
  const double depth = static_cast<double>(rig.input("x").shape[1]);
  const double smooth = activation == "silu" || activation == "gelu_tanh" ? 3 * depth + 21 : 0;
  for (int64_t i = 0; i < rig.output("y").count(); ++i) {
    const Sum s = sum_of(rig, i / columns, i % columns);
    const auto error = [&](const char* name, long double truth) {
      return static_cast<double>(std::abs(static_cast<long double>(rig.output(name).number(i)) - truth));
    };
    if (!rig.output("pre").absent) {
      ASSERT_LE(error("pre", s.value),
                (2 * depth + 2) * spacing(rig.output("pre").dtype, static_cast<double>(s.terms)));
    }
    const double scale = static_cast<double>(activated(activation, s.terms));
    const double ulp = spacing(rig.output("y").dtype, scale);
    if (std::isfinite(rig.output("y").number(i))) {
      ASSERT_LE(error("y", activated(activation, s.value)), (2 * depth + 3 + smooth) * ulp) << activation << i;
    }
  }
}

TEST(MatmulTest, IsWithinItsBounds) {
  std::mt19937_64 random(62);
  for (const int32_t dtype : kDtypes) {
    for (int i = 0; i < 60; ++i) {
      const std::string activation = kActivations[random() % 4];
      Sizes z = random_sizes(random);
      z.columns = std::min<int64_t>(z.columns, 30);
      Rig rig = matmul_rig(dtype, z, activation, random() % 2 == 0);
      randomise(rig, random, true);
      ASSERT_TRUE(paths_agree(rig));
      ASSERT_NO_FATAL_FAILURE(expect_within_bounds(rig, activation)) << dtype_name(dtype) << " " << i;
    }
  }
}

// Sums whose terms cancel or outgrow the sum: large magnitudes of changing sign, 2^24 and ones, Kahan's 1e8 and -1e8.
TEST(MatmulTest, AdversarialSumsAreWithinTheBounds) {
  const std::vector<std::vector<double>> terms = {{1e30, 1, -1e30, 1, 1e30, -1, -1e30, 1},
                                                  {0x1p24, 1, 1, 1, 1, -0x1p24, 1, 1},
                                                  {1e8, 1, -1e8, 1, 1e8, 3, -1e8, 1e-8},
                                                  {1e-45, 1e-45, -1e-45, 3e-45, 1e-40, 1, -1, 1e-38}};
  for (const std::string activation : kActivations) {
    Rig rig = matmul_rig(FUSEDIFF_F32, {4, 3, 8}, activation, false);
    rig.input("bias").absent = true;
    for (int64_t i = 0; i < 32; ++i) {
      rig.input("x").put_number(i, terms[static_cast<size_t>(i / 8)][static_cast<size_t>(i % 8)]);
    }
    for (int64_t i = 0; i < 24; ++i) {
      rig.input("w").put_number(i, i % 3 == 0 ? 1 : i % 3 == 1 ? -1 : 0.7);
    }
    ASSERT_TRUE(paths_agree(rig));
    ASSERT_NO_FATAL_FAILURE(expect_within_bounds(rig, activation));
  }
  Rig many = matmul_rig(FUSEDIFF_BF16, {1, 1, 512}, "none", true);
  many.input("bias").absent = true;
  for (int64_t i = 0; i < 512; ++i) {
    many.input("x").put_number(i, 0.1);
    many.input("w_t").put_number(i, 1);
  }
  ASSERT_TRUE(paths_agree(many));
  ASSERT_NO_FATAL_FAILURE(expect_within_bounds(many, "none"));
  // Kept in f32: in the storage dtype the sum would stand still at 32.
  EXPECT_EQ(many.output("y").number(0), 51.25);
}

// The bound of pre sees a term that is missing in ordinary data.
TEST(MatmulTest, TheBoundRejectsAMissingTerm) {
  std::mt19937_64 random(63);
  for (const int32_t dtype : kDtypes) {
    Rig rig = matmul_rig(dtype, {4, 8, 64}, "none", false);
    for (RigTensor& in : rig.inputs()) {
      for (int64_t i = 0; i < in.count(); ++i) {
        in.put_number(i, std::normal_distribution<double>(0, 1)(random));
      }
    }
    const auto bound = [&](int64_t i) {
      return (2 * 64 + 2) * spacing(FUSEDIFF_F32, static_cast<double>(sum_of(rig, i / 8, i % 8).terms));
    };
    int64_t seen = 0;
    for (int64_t i = 0; i < 32; ++i) {
      seen += std::abs(rig.input("x").number(i / 8 * 64) * rig.input("w").number(i % 8)) > bound(i) ? 1 : 0;
    }
    EXPECT_GE(seen, 24) << dtype_name(dtype);
  }
}

TEST(MatmulTest, SumsOverNothingAreTheBias) {
  for (const int32_t dtype : kDtypes) {
    Rig rig = matmul_rig(dtype, {2, 3, 0}, "none", false);
    for (int64_t i = 0; i < 3; ++i) {
      rig.input("bias").put_number(i, static_cast<double>(i + 1));
    }
    ASSERT_TRUE(paths_agree(rig));
    for (int64_t i = 0; i < 6; ++i) {
      EXPECT_EQ(rig.output("y").number(i), static_cast<double>(i % 3 + 1));
    }
    Rig no_rows = matmul_rig(dtype, {0, 3, 4}, "silu", true);
    Rig no_columns = matmul_rig(dtype, {3, 0, 4}, "relu", false);
    EXPECT_TRUE(paths_agree(no_rows));
    EXPECT_TRUE(paths_agree(no_columns));
  }
}

TEST(MatmulTest, ActivationsAreThemselves) {
  const double at[] = {-30, -1, -0.0, 1, 2};
  const double silu[] = {-2.8072867906e-12, -0.26894142137, 0, 0.73105857863, 1.76159415596};
  const double gelu[] = {0, -0.15880800939, 0, 0.84119199061, 1.95459769409};
  for (const std::string activation : kActivations) {
    Rig rig = matmul_rig(FUSEDIFF_F32, {5, 1, 1}, activation, false);
    rig.input("bias").absent = true;
    rig.input("w").put(0, 1.0f);
    for (int64_t i = 0; i < 5; ++i) {
      rig.input("x").put_number(i, at[i]);
    }
    ASSERT_TRUE(paths_agree(rig));
    for (int64_t i = 0; i < 5; ++i) {
      const double expected = activation == "none"   ? at[i]
                              : activation == "relu" ? std::max(at[i], 0.0)
                              : activation == "silu" ? silu[i]
                                                     : gelu[i];
      EXPECT_NEAR(rig.output("y").number(i), expected, 2e-7 * std::abs(expected) + 1e-20) << activation;
    }
  }
}

TEST(MatmulTest, BrokenCallsAreRejected) {
  Rig name = matmul_rig(FUSEDIFF_F32, {1, 1, 1}, "gelu", false);
  EXPECT_EQ(name.run(*fusediff_target(), "fused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(name.error(), "activation must be none, relu, silu or gelu_tanh, not gelu");
  Rig shape = matmul_rig(FUSEDIFF_F32, {2, 3, 4}, "none", false);
  shape.input("w").shape = {5, 3};
  EXPECT_EQ(shape.run(*fusediff_target(), "unfused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(shape.error(), "w has size 5 in dimension 0, not 4");
}

TEST(MatmulTest, SameBitsFromEveryCompiler) {
  const uint64_t golden[] = {0xbd8c63e603979c6fu, 0xb59b036372572656u, 0x3ed52a2e91a436cu,
                             0x2d1a8069fbec2b27u, 0xc76cf41e27278e4du, 0x1c19d1261d4060fdu};
  for (size_t i = 0; i < 6; ++i) {
    Rig rig = matmul_rig(kDtypes[i], {9, 31, 40}, kActivations[i % 4], i % 2 == 1);
    EXPECT_EQ(counted_digest(rig), golden[i]) << dtype_name(kDtypes[i]);
  }
}

}  // namespace
}  // namespace fusediff::builtin
