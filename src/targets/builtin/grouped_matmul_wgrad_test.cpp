#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "builtin/last_place.h"
#include "builtin/paths_agree.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr int32_t kDtypes[] = {FUSEDIFF_F32, FUSEDIFF_F16,      FUSEDIFF_BF16,
                               FUSEDIFF_F64, FUSEDIFF_F8E4M3FN, FUSEDIFF_F8E5M2};

struct Sizes {
  int64_t rows, columns;
};

int64_t sum_of(const std::vector<int64_t>& counts) {
  int64_t sum = 0;
  for (const int64_t count : counts) {
    sum += count;
  }
  return sum;
}

Rig wgrad_rig(int32_t dtype, const Sizes& z, const std::vector<int64_t>& counts, bool wide_counts = true) {
  const int32_t wide = dtype == FUSEDIFF_F64 ? FUSEDIFF_F64 : FUSEDIFF_F32;
  const int64_t experts = static_cast<int64_t>(counts.size()), tokens = sum_of(counts);
  Rig rig("grouped_matmul_wgrad");
  rig.input("x", dtype, {tokens, z.rows});
  rig.input("grad_y", dtype, {tokens, z.columns});
  RigTensor& in = rig.input("counts", wide_counts ? FUSEDIFF_I64 : FUSEDIFF_I32, {experts});
  for (int64_t e = 0; e < experts; ++e) {
    in.put_number(e, static_cast<double>(counts[static_cast<size_t>(e)]));
  }
  rig.input("into", wide, {experts, z.rows, z.columns}).absent = true;
  rig.output("grad_w", wide, {experts, z.rows, z.columns});
  return rig;
}

std::vector<int64_t> random_counts(std::mt19937_64& random) {
  std::vector<int64_t> counts(1 + random() % 6);
  for (int64_t& count : counts) {
    count = random() % 3 == 0 ? 0 : static_cast<int64_t>(random() % 12);
  }
  return counts;
}

void randomise(Rig& rig, std::mt19937_64& random, bool tame) {
  for (RigTensor& in : rig.inputs()) {
    if (in.name != "counts") {
      random_layout(in, random, true);
      random_values(in, random, 1.0, tame);
    }
  }
  rig.input("into").absent = random() % 2 == 0;
  random_layout(rig.output("grad_w"), random, false);
}

TEST(GroupedMatmulWgradTest, PathsAgreeByBits) {
  std::mt19937_64 random(71);
  for (const int32_t dtype : kDtypes) {
    for (int i = 0; i < 200; ++i) {
      const Sizes z{static_cast<int64_t>(random() % 20), static_cast<int64_t>(random() % 140)};
      Rig rig = wgrad_rig(dtype, z, random_counts(random), random() % 2 == 0);
      randomise(rig, random, false);
      ASSERT_TRUE(paths_agree(rig)) << dtype_name(dtype) << " " << i;
    }
  }
}

// Every element within the bound of the record; what experts without tokens have is there and exact.
void expect_within_bound(Rig& rig, const std::vector<int64_t>& counts, const Sizes& z) {
  const double tokens = static_cast<double>(sum_of(counts));
  int64_t first = 0;
  for (size_t e = 0; e < counts.size(); ++e) {
    for (int64_t i = 0; i < z.rows * z.columns; ++i) {
      const int64_t at = static_cast<int64_t>(e) * z.rows * z.columns + i;
      long double sum = rig.input("into").absent ? 0 : rig.input("into").number(at);
      long double terms = std::abs(sum);
      for (int64_t t = first; t < first + counts[e]; ++t) {
        const long double term = static_cast<long double>(rig.input("x").number(t * z.rows + i / z.columns)) *
                                 rig.input("grad_y").number(t * z.columns + i % z.columns);
        sum += term;
        terms += std::abs(term);
      }
      RigTensor& out = rig.output("grad_w");
      const double error = static_cast<double>(std::abs(static_cast<long double>(out.number(at)) - sum));
      ASSERT_LE(error, counts[e] == 0 ? 0 : (2 * tokens + 2) * spacing(out.dtype, static_cast<double>(terms))) << at;
    }
    first += counts[e];
  }
}

TEST(GroupedMatmulWgradTest, IsWithinItsBound) {
  std::mt19937_64 random(72);
  for (const int32_t dtype : kDtypes) {
    for (int i = 0; i < 100; ++i) {
      const Sizes z{static_cast<int64_t>(random() % 6), static_cast<int64_t>(random() % 70)};
      const std::vector<int64_t> counts = random_counts(random);
      Rig rig = wgrad_rig(dtype, z, counts);
      randomise(rig, random, true);
      ASSERT_TRUE(paths_agree(rig));
      ASSERT_NO_FATAL_FAILURE(expect_within_bound(rig, counts, z)) << dtype_name(dtype) << " " << i;
    }
  }
}

TEST(GroupedMatmulWgradTest, AdversarialSumsAreWithinTheBound) {
  const std::vector<std::vector<double>> terms = {{1e30, 1, -1e30, 1, 1e30, -1, -1e30, 1},
                                                  {0x1p24, 1, 1, 1, 1, -0x1p24, 1, 1},
                                                  {1e8, 1, -1e8, 1, 1e8, 3, -1e8, 1e-8},
                                                  {1e-45, 1e-45, -1e-45, 3e-45, 1e-40, 1, -1, 1e-38}};
  for (const auto& column : terms) {
    Rig rig = wgrad_rig(FUSEDIFF_F32, {1, 3}, {8});
    for (int64_t t = 0; t < 8; ++t) {
      rig.input("x").put_number(t, column[static_cast<size_t>(t)]);
      for (int64_t c = 0; c < 3; ++c) {
        rig.input("grad_y").put_number(t * 3 + c, c == 0 ? 1 : c == 1 ? -1 : 0.7);
      }
    }
    ASSERT_TRUE(paths_agree(rig));
    ASSERT_NO_FATAL_FAILURE(expect_within_bound(rig, {8}, {1, 3}));
  }
  Rig many = wgrad_rig(FUSEDIFF_BF16, {1, 1}, {512});
  for (int64_t t = 0; t < 512; ++t) {
    many.input("x").put_number(t, 0.1);
    many.input("grad_y").put_number(t, 1);
  }
  ASSERT_TRUE(paths_agree(many));
  ASSERT_NO_FATAL_FAILURE(expect_within_bound(many, {512}, {1, 1}));
  EXPECT_NEAR(many.output("grad_w").number(0), 51.25, 1e-3);
}

// Ordinary data: a token left out is far outside the bound.
TEST(GroupedMatmulWgradTest, TheBoundRejectsAMissingToken) {
  std::mt19937_64 random(73);
  std::normal_distribution<double> normal(0, 1);
  int seen = 0;
  for (int i = 0; i < 100; ++i) {
    double terms = 0, last = 0;
    for (int t = 0; t < 64; ++t) {
      last = std::abs(normal(random) * normal(random));
      terms += last;
    }
    seen += last > (2 * 64 + 2) * spacing(FUSEDIFF_F32, terms) ? 1 : 0;
  }
  EXPECT_GE(seen, 90);
}

TEST(GroupedMatmulWgradTest, NothingIsZerosOrWhatStoodThere) {
  for (const int32_t dtype : kDtypes) {
    for (const bool into : {false, true}) {
      Rig rig = wgrad_rig(dtype, {3, 5}, {0, 0});
      rig.input("into").absent = !into;
      counted_values(rig.input("into"), 5);
      ASSERT_TRUE(paths_agree(rig));
      for (int64_t i = 0; i < 30; ++i) {
        ASSERT_EQ(rig.output("grad_w").number(i), into ? rig.input("into").number(i) : 0);
      }
    }
  }
}

TEST(GroupedMatmulWgradTest, GradientMayLieOnWhatItIsAddedTo) {
  const int64_t tokens_shape[] = {2, 3}, weight_shape[] = {2, 3, 3}, experts[] = {2};
  const int64_t tokens_stride[] = {3, 1}, weight_stride[] = {9, 3, 1}, one[] = {1};
  std::vector<float> expected;
  for (const char* path : {"fused", "unfused"}) {
    for (const bool apart : {true, false}) {
      float x[] = {1, 2, 3, 4, 5, 6}, into[18], out[18];
      for (int i = 0; i < 18; ++i) {
        into[i] = static_cast<float>(i) / 7;
      }
      int32_t counts[] = {2, 0};
      double workspace[64] = {};
      const fusediff_tensor inputs[] = {{"x", tokens_shape, tokens_stride, x, 2, FUSEDIFF_F32},
                                        {"grad_y", tokens_shape, tokens_stride, x, 2, FUSEDIFF_F32},
                                        {"counts", experts, one, counts, 1, FUSEDIFF_I32},
                                        {"into", weight_shape, weight_stride, into, 3, FUSEDIFF_F32}};
      const fusediff_tensor output{"grad_w", weight_shape, weight_stride, apart ? out : into, 3, FUSEDIFF_F32};
      fusediff_call call{};
      call.struct_size = sizeof(call);
      call.op = "grouped_matmul_wgrad";
      call.path = path;
      call.inputs = inputs;
      call.input_count = 4;
      call.outputs = &output;
      call.output_count = 1;
      call.workspace = workspace;
      call.workspace_size = sizeof(workspace);
      ASSERT_EQ(fusediff_target()->run(nullptr, &call), FUSEDIFF_OK) << fusediff_target()->last_error();
      const float* got = apart ? out : into;
      expected.insert(expected.end(), got, expected.empty() ? got + 18 : got);
      ASSERT_EQ(std::memcmp(got, expected.data(), sizeof(into)), 0) << path << apart;
    }
  }
  EXPECT_EQ(expected[0], 17);  // 1 * 1 + 4 * 4
}

TEST(GroupedMatmulWgradTest, BrokenCallsAreRejected) {
  Rig few = wgrad_rig(FUSEDIFF_F32, {1, 1}, {2, 1});
  few.input("counts").put_number(1, 0);
  EXPECT_EQ(few.run(*fusediff_target(), "fused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(few.error(), "counts add up to 2, not to 3");
  Rig negative = wgrad_rig(FUSEDIFF_F32, {1, 1}, {2, 1});
  negative.input("counts").put_number(0, -1);
  EXPECT_EQ(negative.run(*fusediff_target(), "unfused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(negative.error(), "counts[0] is -1, left are 3 tokens");
}

TEST(GroupedMatmulWgradTest, SameBitsFromEveryCompiler) {
  const uint64_t golden[] = {0xb7b9cc0e589c813u,  0xf83102eb035ca38cu, 0x927ab5a8e025b203u,
                             0x8b857f44f381547du, 0x91c506a17038771du, 0x4e942d919f337c5du};
  for (size_t i = 0; i < 6; ++i) {
    Rig rig = wgrad_rig(kDtypes[i], {7, 70}, {3, 0, 9});
    for (const char* name : {"x", "grad_y"}) {
      counted_values(rig.input(name), 3);
    }
    ASSERT_TRUE(paths_agree(rig));
    EXPECT_EQ(digest(rig), golden[i]) << dtype_name(kDtypes[i]);
  }
}

}  // namespace
}  // namespace fusediff::builtin
