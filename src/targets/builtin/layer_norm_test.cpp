#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "builtin/layouts_agree.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr int kRounds = 200;
constexpr double kEps = 1e-5;

struct Sizes {
  int64_t rows, columns;
};

Sizes random_sizes(std::mt19937_64& random) {
  return {static_cast<int64_t>(random() % 6), 1 + static_cast<int64_t>(random() % 150)};
}

Rig forward_rig(int32_t dtype, const Sizes& s) {
  Rig rig("layer_norm");
  rig.input("x", dtype, {s.rows, s.columns});
  rig.input("gamma", dtype, {s.columns});
  rig.input("beta", dtype, {s.columns});
  rig.output("mean", side_dtype(dtype), {s.rows});
  rig.output("rstd", side_dtype(dtype), {s.rows});
  rig.output("y", dtype, {s.rows, s.columns});
  rig.real("eps", kEps);
  return rig;
}

Rig backward_rig(int32_t dtype, const Sizes& s) {
  Rig rig("layer_norm_grad");
  rig.input("grad_y", dtype, {s.rows, s.columns});
  rig.input("x", dtype, {s.rows, s.columns});
  rig.input("mean", side_dtype(dtype), {s.rows});
  rig.input("rstd", side_dtype(dtype), {s.rows});
  rig.input("gamma", dtype, {s.columns});
  rig.output("grad_x", dtype, {s.rows, s.columns});
  rig.output("grad_gamma", dtype, {s.columns});
  rig.output("grad_beta", dtype, {s.columns});
  return rig;
}

void randomise(Rig& rig, std::mt19937_64& random, bool tame) {
  for (RigTensor& in : rig.inputs()) {
    random_layout(in, random, true);
    random_values(in, random, 2.0, tame);
  }
  for (RigTensor& out : rig.outputs()) {
    random_layout(out, random, false);
    out.absent = (out.name == "mean" || out.name == "rstd") && random() % 4 == 0;
  }
}

// The forward of the backward's own inputs, saved tensors copied over.
void save(Rig& backward, const Sizes& s) {
  Rig forward = forward_rig(backward.input("x").dtype, s);
  copy_values(backward.input("x"), forward.input("x"));
  copy_values(backward.input("gamma"), forward.input("gamma"));
  ASSERT_TRUE(paths_agree(forward));
  for (const char* name : {"mean", "rstd"}) {
    backward.input(name).lay_out();
    copy_values(forward.output(name), backward.input(name));
  }
}

TEST(LayerNormTest, PathsAndLayoutsAgreeByBits) {
  std::mt19937_64 random(51);
  for (const int32_t dtype : kEveryFloat) {
    for (int i = 0; i < kRounds; ++i) {
      Rig forward = forward_rig(dtype, random_sizes(random));
      randomise(forward, random, false);
      ASSERT_TRUE(layouts_agree(forward)) << dtype_name(dtype) << " " << i;
      ASSERT_TRUE(rows_agree(forward, {"x", "mean", "rstd", "y"})) << dtype_name(dtype) << " " << i;
      Rig backward = backward_rig(dtype, random_sizes(random));
      randomise(backward, random, false);
      ASSERT_TRUE(layouts_agree(backward)) << dtype_name(dtype) << " " << i;
      ASSERT_TRUE(rows_agree(backward, {"grad_y", "x", "mean", "rstd", "grad_x"})) << dtype_name(dtype) << " " << i;
    }
  }
}

// What the records claim, of one row of the forward and of the backward, in long double.
struct Row {
  int64_t columns;
  std::vector<long double> x, gamma, beta, h, absolute_h;  // absolute_h: H of the records
  long double mean = 0, absolute = 0, rstd = 0;

  Row(Rig& rig, int64_t row, int64_t n, bool forward) : columns(n) {
    long double squares = 0;
    for (int64_t c = 0; c < n; ++c) {
      x.push_back(static_cast<long double>(rig.input("x").number(row * n + c)));
      gamma.push_back(static_cast<long double>(rig.input("gamma").number(c)));
      beta.push_back(forward ? static_cast<long double>(rig.input("beta").number(c)) : 0);
      mean += x.back() / static_cast<long double>(n);
      absolute += std::abs(x.back()) / static_cast<long double>(n);
    }
    for (const long double value : x) squares += (value - mean) * (value - mean);
    rstd = 1 / std::sqrt(squares / static_cast<long double>(n) + static_cast<long double>(kEps));
    for (const long double value : x) {
      h.push_back((value - mean) * rstd);
      absolute_h.push_back((std::abs(value) + absolute) * rstd);
    }
  }
};

long double sum_of_magnitudes(const std::vector<long double>& values) {
  long double sum = 0;
  for (const long double value : values) sum += std::abs(value);
  return sum;
}

// Worst error of `out` from element `from` on, in `units` ULP at `scale`.
long double share_of(RigTensor& out, int64_t from, const std::vector<long double>& truth, long double scale,
                     long double units) {
  long double worst = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    worst = std::max(worst, ulp_error(out, from + static_cast<int64_t>(i), truth[i], scale) / units);
  }
  return worst;
}

long double forward_share(Rig& rig, const Sizes& s) {
  long double worst = 0;
  const auto columns = static_cast<long double>(s.columns);
  for (int64_t r = 0; r < s.rows; ++r) {
    const Row row(rig, r, s.columns, true);
    std::vector<long double> y, terms;
    for (size_t c = 0; c < row.x.size(); ++c) {
      y.push_back(row.h[c] * row.gamma[c] + row.beta[c]);
      terms.push_back(row.absolute_h[c] * std::abs(row.gamma[c]) + std::abs(row.beta[c]));
    }
    // What the record says where it covers the row, else its derivation, on the sum of absolute terms.
    const long double magnitude = sum_of_magnitudes(y), absolute = sum_of_magnitudes(terms);
    const bool covered = magnitude * 16 >= absolute;
    worst = std::max(worst, share_of(rig.output("y"), r * s.columns, y, covered ? magnitude : absolute,
                                     (covered ? 16 : 1) * (2 * columns + 16)));
    if (!rig.output("mean").absent) {
      worst = std::max(worst, ulp_error(rig.output("mean"), r, row.mean, row.absolute) / (columns + 2));
    }
    if (!rig.output("rstd").absent && (columns + 1) * row.absolute * row.rstd < 4096) {
      worst = std::max(worst, ulp_error(rig.output("rstd"), r, row.rstd, row.rstd) / (columns + 16));
    }
  }
  return worst;
}

TEST(LayerNormTest, IsWithinItsBound) {
  std::mt19937_64 random(52);
  for (const int32_t dtype : kEveryFloat) {
    for (int i = 0; i < kRounds; ++i) {
      const Sizes s = random_sizes(random);
      Rig rig = forward_rig(dtype, s);
      randomise(rig, random, true);
      ASSERT_TRUE(paths_agree(rig));
      ASSERT_LE(forward_share(rig, s), 1) << dtype_name(dtype) << " " << i;
    }
  }
}

// Equal elements, one large among small, and a large mean with little spread.
TEST(LayerNormTest, IsWithinItsBoundOnUnluckySums) {
  for (const int32_t dtype : kEveryFloat) {
    for (const auto& [first, rest, step] : {std::tuple{0.1, 0.1, 0.0}, {4096.0, 1.0, 0.0}, {1000.0, 1000.0, 0.25}}) {
      const Sizes s{1, 512};
      Rig rig = forward_rig(dtype, s);
      for (int64_t c = 0; c < s.columns; ++c) {
        rig.input("x").put_number(c, (c == 0 ? first : rest) + step * static_cast<double>(c % 2));
        rig.input("gamma").put_number(c, 1.0);
        rig.input("beta").put_number(c, -0.5);
      }
      ASSERT_TRUE(paths_agree(rig));
      if (std::isnan(rig.output("y").number(0))) continue;  // 4096 is beyond the 8-bit dtypes
      EXPECT_LE(forward_share(rig, s), 1) << dtype_name(dtype) << " " << first;
    }
  }
}

TEST(LayerNormTest, BoundRejectsAVarianceWithoutTheMean) {
  const Sizes s{1, 64};
  Rig rig = forward_rig(FUSEDIFF_F32, s);
  uint64_t seed = 1;
  for (RigTensor& in : rig.inputs()) counted_values(in, seed++);
  ASSERT_TRUE(paths_agree(rig));
  EXPECT_LE(forward_share(rig, s), 1);
  for (int64_t c = 0; c < s.columns; ++c) {
    rig.output("y").put_number(c,
                               rig.input("x").number(c) * rig.output("rstd").number(0) * rig.input("gamma").number(c) +
                                   rig.input("beta").number(c));
  }
  EXPECT_GT(forward_share(rig, s), 1);
}

TEST(LayerNormTest, InfinityAndNanStayInTheirRow) {
  Rig rig = forward_rig(FUSEDIFF_F32, {3, 2});
  const double values[] = {1, std::numeric_limits<double>::infinity(), 1, std::nan(""), 1, -1};
  for (int64_t i = 0; i < 6; ++i) rig.input("x").put_number(i, values[i]);
  for (int64_t c = 0; c < 2; ++c) {
    rig.input("gamma").put_number(c, 1);
    rig.input("beta").put_number(c, 1);
  }
  ASSERT_TRUE(paths_agree(rig));
  for (int64_t i = 0; i < 4; ++i) EXPECT_TRUE(std::isnan(rig.output("y").number(i)));
  EXPECT_NEAR(rig.output("y").number(4), 2, 1e-5);
  EXPECT_NEAR(rig.output("y").number(5), 0, 1e-5);
}

TEST(LayerNormTest, NoRowsIsLegalAndGivesZeroGradients) {
  for (const int32_t dtype : kEveryFloat) {
    Rig forward = forward_rig(dtype, {0, 7});
    EXPECT_TRUE(paths_agree(forward));
    Rig backward = backward_rig(dtype, {0, 7});
    ASSERT_TRUE(paths_agree(backward));
    for (int64_t c = 0; c < 7; ++c) {
      EXPECT_EQ(backward.output("grad_gamma").bits(c), 0u);
      EXPECT_EQ(backward.output("grad_beta").bits(c), 0u);
    }
  }
}

long double backward_share(Rig& rig, const Sizes& s) {
  long double worst = 0, gamma_terms = 0;
  const auto columns = static_cast<long double>(s.columns);
  const auto rows = static_cast<long double>(s.rows);
  std::vector<long double> gamma(static_cast<size_t>(s.columns)), beta(gamma), beta_terms(gamma);
  for (int64_t r = 0; r < s.rows; ++r) {
    const Row row(rig, r, s.columns, false);
    long double a = 0, b = 0, absolute_a = 0, absolute_b = 0, terms = 0;
    std::vector<long double> g, x;
    for (size_t c = 0; c < row.x.size(); ++c) {
      g.push_back(static_cast<long double>(rig.input("grad_y").number(r * s.columns + static_cast<int64_t>(c))));
      const long double w = g[c] * row.gamma[c];
      a += w / columns;
      b += w * row.h[c] / columns;
      absolute_a += std::abs(w) / columns;
      absolute_b += std::abs(w) * row.absolute_h[c] / columns;
      gamma[c] += g[c] * row.h[c];
      gamma_terms += std::abs(g[c]) * row.absolute_h[c];
      beta[c] += g[c];
      beta_terms[c] += std::abs(g[c]);
    }
    for (size_t c = 0; c < row.x.size(); ++c) {
      x.push_back(row.rstd * (g[c] * row.gamma[c] - a - row.h[c] * b));
      terms += row.rstd * (std::abs(g[c] * row.gamma[c]) + absolute_a + row.absolute_h[c] * absolute_b);
    }
    worst = std::max(worst, share_of(rig.output("grad_x"), r * s.columns, x, terms, 5 * columns + 32));
  }
  worst = std::max(worst, share_of(rig.output("grad_gamma"), 0, gamma, gamma_terms, 2 * columns + rows + 16));
  for (size_t c = 0; c < beta.size(); ++c) {
    const long double error = ulp_error(rig.output("grad_beta"), static_cast<int64_t>(c), beta[c], beta_terms[c]);
    worst = std::max(worst, error / (rows + 2));
  }
  return worst;
}

TEST(LayerNormGradTest, IsWithinItsBound) {
  std::mt19937_64 random(53);
  for (const int32_t dtype : kEveryFloat) {
    for (int i = 0; i < kRounds; ++i) {
      const Sizes s = random_sizes(random);
      Rig rig = backward_rig(dtype, s);
      randomise(rig, random, true);
      save(rig, s);
      ASSERT_TRUE(paths_agree(rig));
      ASSERT_LE(backward_share(rig, s), 1) << dtype_name(dtype) << " " << i;
    }
  }
}

TEST(LayerNormGradTest, BoundsRejectADroppedRowAndADroppedTerm) {
  const Sizes s{4, 64};
  Rig rig = backward_rig(FUSEDIFF_F32, s);
  uint64_t seed = 1;
  for (RigTensor& in : rig.inputs()) counted_values(in, seed++);
  save(rig, s);
  ASSERT_TRUE(paths_agree(rig));
  EXPECT_LE(backward_share(rig, s), 1);
  Rig without_row = rig;
  without_row.output("grad_beta").put_number(5, rig.output("grad_beta").number(5) - rig.input("grad_y").number(5));
  EXPECT_GT(backward_share(without_row, s), 1);
  Rig without_mean = rig;
  for (int64_t c = 0; c < s.columns; ++c) {
    without_mean.output("grad_x").put_number(
        c, rig.input("rstd").number(0) * rig.input("grad_y").number(c) * rig.input("gamma").number(c));
  }
  EXPECT_GT(backward_share(without_mean, s), 1);
}

TEST(LayerNormGradTest, IsTheDerivativeOfTheForward) {
  const Sizes s{3, 7};
  Rig forward = forward_rig(FUSEDIFF_F64, s);
  Rig backward = backward_rig(FUSEDIFF_F64, s);
  uint64_t seed = 1;
  for (RigTensor& in : forward.inputs()) counted_values(in, seed++);
  for (RigTensor& in : backward.inputs()) counted_values(in, seed++);
  copy_values(forward.input("x"), backward.input("x"));
  copy_values(forward.input("gamma"), backward.input("gamma"));
  save(backward, s);
  ASSERT_TRUE(paths_agree(backward));
  const auto objective = [&] {
    double sum = 0;
    EXPECT_EQ(forward.run(*fusediff_target(), "unfused"), FUSEDIFF_OK);
    for (int64_t i = 0; i < 21; ++i) sum += backward.input("grad_y").number(i) * forward.output("y").number(i);
    return sum;
  };
  for (const char* input : {"x", "gamma", "beta"}) {
    RigTensor& in = forward.input(input);
    for (int64_t i = 0; i < in.count(); ++i) {
      const double at = in.number(i), step = 1e-5;
      in.put_number(i, at + step);
      const double above = objective();
      in.put_number(i, at - step);
      const double below = objective();
      in.put_number(i, at);
      EXPECT_NEAR((above - below) / (2 * step), backward.output(std::string("grad_") + input).number(i), 1e-7)
          << input << " " << i;
    }
  }
}

TEST(LayerNormTest, OutputsMayLieOnInputs) {
  for (const int32_t dtype : {FUSEDIFF_F32, FUSEDIFF_BF16}) {
    Rig forward = forward_rig(dtype, {3, 70});
    Rig backward = backward_rig(dtype, {3, 70});
    uint64_t seed = 1;
    for (Rig* rig : {&forward, &backward}) {
      for (RigTensor& in : rig->inputs()) counted_values(in, seed++);
    }
    const fusediff_attr eps{"eps", FUSEDIFF_FLOAT, 0, kEps, ""};
    EXPECT_TRUE(in_place_agrees(forward, "layer_norm", {eps}, {{"y", "x"}}));
    EXPECT_TRUE(in_place_agrees(backward, "layer_norm_grad", {}, {{"grad_x", "grad_y"}}));
    EXPECT_TRUE(in_place_agrees(backward, "layer_norm_grad", {}, {{"grad_x", "x"}}));
  }
}

TEST(LayerNormTest, BrokenCallsAreRejected) {
  const fusediff_target_v1& target = *fusediff_target();
  Rig empty = forward_rig(FUSEDIFF_F32, {2, 0});
  EXPECT_EQ(empty.run(target, "fused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(empty.error(), "x must have at least one column");
  Rig short_mean = backward_rig(FUSEDIFF_F32, {2, 3});
  short_mean.input("mean").shape = {1};
  EXPECT_EQ(short_mean.run(target, "unfused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(short_mean.error(), "mean has size 1 in dimension 0, not 2");
}

TEST(LayerNormTest, SameBitsFromEveryCompiler) {
  for (size_t i = 0; i < 6; ++i) {
    Rig forward = forward_rig(kEveryFloat[i], {5, 83});
    Rig backward = backward_rig(kEveryFloat[i], {5, 83});
    const uint64_t golden[][2] = {
        {0x56e020f810bac49au, 0xd487d15fc74f9845u}, {0x84dd07a7ca7e298au, 0x102e52c139e107dau},
        {0x11ac4df975cdebf4u, 0x1a57fcca3ed845d4u}, {0x14da01f3e518c015u, 0x2cd9ffcb8cd2e60au},
        {0x70aa3a444d96af0bu, 0xdccc757d343aadf7u}, {0x23978160fa2888cfu, 0xfdd916dd9b4fde82u}};
    EXPECT_EQ(counted_digest(forward), golden[i][0]) << dtype_name(kEveryFloat[i]);
    EXPECT_EQ(counted_digest(backward), golden[i][1]) << dtype_name(kEveryFloat[i]);
  }
}

}  // namespace
}  // namespace fusediff::builtin
