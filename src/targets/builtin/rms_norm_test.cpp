#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "builtin/layouts_agree.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr int kRounds = 200;
constexpr double kEps = 1e-6;

struct Sizes {
  int64_t rows, columns;
  bool add;
};

Sizes random_sizes(std::mt19937_64& random) {
  return {static_cast<int64_t>(random() % 6), 1 + static_cast<int64_t>(random() % 150), random() % 2 == 0};
}

Rig forward_rig(int32_t dtype, const Sizes& s) {
  Rig rig("rms_norm");
  rig.input("x", dtype, {s.rows, s.columns});
  rig.input("residual", dtype, {s.rows, s.columns}).absent = !s.add;
  rig.input("gamma", dtype, {s.columns});
  rig.output("residual_out", dtype, {s.rows, s.columns}).absent = !s.add;
  rig.output("rstd", side_dtype(dtype), {s.rows});
  rig.output("y", dtype, {s.rows, s.columns});
  rig.integer("add_residual", s.add);
  rig.real("eps", kEps);
  return rig;
}

Rig backward_rig(int32_t dtype, const Sizes& s) {
  Rig rig("rms_norm_grad");
  rig.input("grad_y", dtype, {s.rows, s.columns});
  rig.input("grad_residual_out", dtype, {s.rows, s.columns}).absent = !s.add;
  rig.input("x", dtype, {s.rows, s.columns});
  rig.input("residual_out", dtype, {s.rows, s.columns}).absent = !s.add;
  rig.input("rstd", side_dtype(dtype), {s.rows});
  rig.input("gamma", dtype, {s.columns});
  rig.output("grad_x", dtype, {s.rows, s.columns});
  rig.output("grad_gamma", dtype, {s.columns});
  rig.integer("add_residual", s.add);
  return rig;
}

void randomise(Rig& rig, std::mt19937_64& random, double scale, bool tame) {
  for (RigTensor& in : rig.inputs()) {
    random_layout(in, random, true);
    random_values(in, random, in.name == "gamma" ? 1.0 : scale, tame);
    for (int64_t i = 0; in.name == "rstd" && i < in.count(); ++i) {
      in.put_number(i, std::abs(in.number(i)));
    }
  }
  for (RigTensor& out : rig.outputs()) {
    random_layout(out, random, false);
  }
}

// The saved tensors of a backward, from a run of the forward on inputs like its own and a random residual.
void save(Rig& backward, const Sizes& s, std::mt19937_64& random) {
  const int32_t dtype = backward.input("x").dtype;
  Rig forward = forward_rig(dtype, s);
  copy_values(backward.input("x"), forward.input("x"));
  copy_values(backward.input("gamma"), forward.input("gamma"));
  random_values(forward.input("residual"), random, 1.0, true);
  ASSERT_TRUE(paths_agree(forward));
  backward.input("rstd").lay_out();
  copy_values(forward.output("rstd"), backward.input("rstd"));
  if (s.add) {
    backward.input("residual_out").lay_out();
    copy_values(forward.output("residual_out"), backward.input("residual_out"));
  }
}

TEST(RmsNormTest, PathsAndLayoutsAgreeByBits) {
  std::mt19937_64 random(31);
  for (const int32_t dtype : kEveryFloat) {
    for (int i = 0; i < kRounds; ++i) {
      Rig rig = forward_rig(dtype, random_sizes(random));
      randomise(rig, random, 3.0, false);
      rig.output("rstd").absent = random() % 4 == 0;
      rig.output("residual_out").absent |= random() % 4 == 0;
      ASSERT_TRUE(layouts_agree(rig)) << dtype_name(dtype) << " " << i;
      ASSERT_TRUE(rows_agree(rig, {"x", "residual", "residual_out", "rstd", "y"})) << dtype_name(dtype) << " " << i;
    }
  }
}

TEST(RmsNormGradTest, PathsAndLayoutsAgreeByBits) {
  std::mt19937_64 random(32);
  for (const int32_t dtype : kEveryFloat) {
    for (int i = 0; i < kRounds; ++i) {
      Rig rig = backward_rig(dtype, random_sizes(random));
      randomise(rig, random, 3.0, false);
      ASSERT_TRUE(layouts_agree(rig)) << dtype_name(dtype) << " " << i;
      ASSERT_TRUE(rows_agree(rig, {"grad_y", "grad_residual_out", "x", "residual_out", "rstd", "grad_x"}))
          << dtype_name(dtype) << " " << i;
    }
  }
}

// The truth of one row, in long double, without any rounding in between.
struct Row {
  std::vector<long double> s, y;
  long double rstd = 0;
};

Row row_of(Rig& rig, const Sizes& s, int64_t row) {
  Row out;
  long double squares = 0;
  for (int64_t c = 0; c < s.columns; ++c) {
    const int64_t at = row * s.columns + c;
    out.s.push_back(static_cast<long double>(rig.input("x").number(at)));
    if (s.add) {
      out.s.back() += static_cast<long double>(rig.input("residual").number(at));
    }
    squares += out.s.back() * out.s.back();
  }
  out.rstd = 1 / std::sqrt(squares / static_cast<long double>(s.columns) + static_cast<long double>(kEps));
  for (int64_t c = 0; c < s.columns; ++c) {
    out.y.push_back(out.s[static_cast<size_t>(c)] * out.rstd * static_cast<long double>(rig.input("gamma").number(c)));
  }
  return out;
}

long double forward_error(Rig& rig, const Sizes& s) {
  long double worst = 0;
  for (int64_t row = 0; row < s.rows; ++row) {
    const Row truth = row_of(rig, s, row);
    const long double rstd = ulp_error(rig.output("rstd"), row, truth.rstd, truth.rstd);
    worst = std::max(worst, rstd / (static_cast<long double>(s.columns) + 16 + (s.add ? 4194304 : 0)));
    for (int64_t c = 0; c < s.columns; ++c) {
      const int64_t at = row * s.columns + c;
      const long double y = truth.y[static_cast<size_t>(c)];
      const long double error = ulp_error(rig.output("y"), at, y, y);
      worst = std::max(worst, error / static_cast<long double>(s.columns + 16 + 4 * s.add));
      if (s.add) {
        const long double sum = truth.s[static_cast<size_t>(c)];
        worst = std::max(worst, ulp_error(rig.output("residual_out"), at, sum, sum));
      }
    }
  }
  return worst;
}

TEST(RmsNormTest, IsWithinItsBound) {
  std::mt19937_64 random(33);
  for (const int32_t dtype : kEveryFloat) {
    for (int i = 0; i < kRounds; ++i) {
      const Sizes s = random_sizes(random);
      Rig rig = forward_rig(dtype, s);
      randomise(rig, random, 3.0, true);
      ASSERT_TRUE(paths_agree(rig));
      ASSERT_LE(forward_error(rig, s), 1) << dtype_name(dtype) << " " << i;
    }
  }
}

// Sums that lose the most: 2^24 + 1 + 1 + ... in f32, equal terms, and one large element in a row of small ones.
TEST(RmsNormTest, IsWithinItsBoundOnUnluckySums) {
  for (const int32_t dtype : {FUSEDIFF_F32, FUSEDIFF_F16, FUSEDIFF_BF16}) {
    for (const double first : {4096.0, 1.0, 0.0078125, 60000.0}) {
      const Sizes s{1, 512, true};
      Rig rig = forward_rig(dtype, s);
      for (int64_t c = 0; c < s.columns; ++c) {
        rig.input("x").put_number(c, c == 0 ? first : 1.0);
        rig.input("residual").put_number(c, c % 2 == 0 ? 0.001953125 : -0.001953125);
        rig.input("gamma").put_number(c, 0.1);
      }
      ASSERT_TRUE(paths_agree(rig));
      EXPECT_LE(forward_error(rig, s), 1) << dtype_name(dtype) << " " << first;
    }
  }
}

TEST(RmsNormTest, BoundRejectsAWrongDivisor) {
  const Sizes s{1, 128, false};
  Rig rig = forward_rig(FUSEDIFF_F32, s);
  std::mt19937_64 random(34);
  for (RigTensor& in : rig.inputs()) random_values(in, random, 1.0, true);
  rig.input("x").put_number(0, 1.0);
  rig.input("gamma").put_number(0, 1.0);
  ASSERT_TRUE(paths_agree(rig));
  EXPECT_LE(forward_error(rig, s), 1);
  rig.output("y").put_number(0, rig.output("y").number(0) * std::sqrt(127.0 / 128.0));
  EXPECT_GT(forward_error(rig, s), 1);
}

// The norm reads the sum as it is stored: 1 + 2^-9 is 1 in bf16.
TEST(RmsNormTest, ReadsTheRoundedSum) {
  Rig rig = forward_rig(FUSEDIFF_BF16, {1, 2, true});
  for (int64_t c = 0; c < 2; ++c) {
    rig.input("x").put_number(c, 1.0);
    rig.input("residual").put_number(c, 0.001953125);
    rig.input("gamma").put_number(c, 1.0);
  }
  ASSERT_TRUE(paths_agree(rig));
  EXPECT_EQ(rig.output("residual_out").number(0), 1.0);
  EXPECT_EQ(rig.output("rstd").get<float>(0), 1.0f / std::sqrt(1.0f + 1e-6f));
}

TEST(RmsNormTest, InfinityAndNanStayInTheirRow) {
  for (const int32_t dtype : {FUSEDIFF_F32, FUSEDIFF_F16, FUSEDIFF_BF16, FUSEDIFF_F64}) {
    Rig rig = forward_rig(dtype, {3, 2, false});
    const double inf = std::numeric_limits<double>::infinity();
    const double values[] = {1, inf, 1, std::nan(""), 1, -1};
    for (int64_t i = 0; i < 6; ++i) rig.input("x").put_number(i, values[i]);
    for (int64_t c = 0; c < 2; ++c) rig.input("gamma").put_number(c, 2.0);
    ASSERT_TRUE(paths_agree(rig));
    EXPECT_EQ(rig.output("rstd").number(0), 0.0);
    EXPECT_EQ(rig.output("y").number(0), 0.0);
    EXPECT_TRUE(std::isnan(rig.output("y").number(1)));
    EXPECT_TRUE(std::isnan(rig.output("y").number(2)));
    EXPECT_TRUE(std::isnan(rig.output("rstd").number(1)));
    EXPECT_NEAR(rig.output("y").number(4), 2.0, 1e-2);
  }
}

TEST(RmsNormTest, NoRowsIsLegalAndGivesZeroGradients) {
  for (const int32_t dtype : kEveryFloat) {
    for (const bool add : {false, true}) {
      Rig forward = forward_rig(dtype, {0, 7, add});
      EXPECT_TRUE(paths_agree(forward));
      Rig backward = backward_rig(dtype, {0, 7, add});
      ASSERT_TRUE(paths_agree(backward));
      for (int64_t c = 0; c < 7; ++c) EXPECT_EQ(backward.output("grad_gamma").bits(c), 0u);
    }
  }
}

// grad_x and grad_gamma by the definition, in long double on what the forward read; s.add without grad_residual_out.
struct Gradient {
  std::vector<long double> x, gamma, gamma_scale;
  std::vector<long double> row_scale;  // [R]: the largest sum of absolute terms
};

Gradient gradient_of(Rig& rig, const Sizes& s) {
  Gradient g;
  g.gamma.resize(static_cast<size_t>(s.columns));
  g.gamma_scale.resize(static_cast<size_t>(s.columns));
  const auto number = [&](const char* name, int64_t at) {
    return static_cast<long double>(rig.input(name).number(at));
  };
  for (int64_t row = 0; row < s.rows; ++row) {
    const long double rstd = number("rstd", row);
    long double mean = 0, absolute = 0, largest = 0;
    const auto h = [&](int64_t c) { return number(s.add ? "residual_out" : "x", row * s.columns + c) * rstd; };
    const auto w = [&](int64_t c) { return number("grad_y", row * s.columns + c) * number("gamma", c); };
    for (int64_t c = 0; c < s.columns; ++c) {
      mean += w(c) * h(c) / static_cast<long double>(s.columns);
      absolute += std::abs(w(c) * h(c)) / static_cast<long double>(s.columns);
    }
    for (int64_t c = 0; c < s.columns; ++c) {
      g.x.push_back(rstd * (w(c) - h(c) * mean));
      largest = std::max(largest, rstd * (std::abs(w(c)) + std::abs(h(c)) * absolute));
      if (s.add) {
        g.x.back() += number("grad_residual_out", row * s.columns + c);
        largest = std::max(largest, std::abs(number("grad_residual_out", row * s.columns + c)));
      }
      const long double term = number("grad_y", row * s.columns + c) * h(c);
      g.gamma[static_cast<size_t>(c)] += term;
      g.gamma_scale[static_cast<size_t>(c)] += std::abs(term);
    }
    g.row_scale.push_back(largest);
  }
  return g;
}

long double backward_error(Rig& rig, const Sizes& s) {
  const Gradient truth = gradient_of(rig, s);
  const auto columns = static_cast<long double>(s.columns);
  long double worst = 0;
  for (int64_t i = 0; i < s.rows * s.columns; ++i) {
    const auto row = static_cast<size_t>(i / s.columns);
    const long double error = ulp_error(rig.output("grad_x"), i, truth.x[static_cast<size_t>(i)], truth.row_scale[row]);
    worst = std::max(worst, error / (3 * columns + 32));
  }
  for (int64_t c = 0; c < s.columns; ++c) {
    const auto at = static_cast<size_t>(c);
    const long double error = ulp_error(rig.output("grad_gamma"), c, truth.gamma[at], truth.gamma_scale[at]);
    worst = std::max(worst, error / (columns + 2 * static_cast<long double>(s.rows) + 24));
  }
  return worst;
}

TEST(RmsNormGradTest, IsWithinItsBound) {
  std::mt19937_64 random(35);
  for (const int32_t dtype : kEveryFloat) {
    for (int i = 0; i < kRounds; ++i) {
      const Sizes s = random_sizes(random);
      Rig rig = backward_rig(dtype, s);
      randomise(rig, random, 1.0, true);
      save(rig, s, random);
      ASSERT_TRUE(paths_agree(rig));
      ASSERT_LE(backward_error(rig, s), 1) << dtype_name(dtype) << " " << i;
    }
  }
}

TEST(RmsNormGradTest, ErrorBoundRejectsAGradientWithoutItsMean) {
  const Sizes s{2, 64, false};
  Rig rig = backward_rig(FUSEDIFF_F32, s);
  std::mt19937_64 random(36);
  for (RigTensor& in : rig.inputs()) counted_values(in, random());
  save(rig, s, random);
  ASSERT_TRUE(paths_agree(rig));
  EXPECT_LE(backward_error(rig, s), 1);
  for (int64_t c = 0; c < s.columns; ++c) {
    rig.output("grad_x").put_number(
        c, rig.input("rstd").number(0) * rig.input("grad_y").number(c) * rig.input("gamma").number(c));
  }
  EXPECT_GT(backward_error(rig, s), 1);
}

// Sum of cotangent * output of the f64 forward.
double objective(Rig& forward, Rig& backward, bool add) {
  double sum = 0;
  EXPECT_EQ(forward.run(*fusediff_target(), "unfused"), FUSEDIFF_OK) << forward.error();
  for (int64_t i = 0; i < forward.output("y").count(); ++i) {
    sum += backward.input("grad_y").number(i) * forward.output("y").number(i);
    if (add) sum += backward.input("grad_residual_out").number(i) * forward.output("residual_out").number(i);
  }
  return sum;
}

TEST(RmsNormGradTest, IsTheDerivativeOfTheForward) {
  for (const bool add : {false, true}) {
    const Sizes s{3, 7, add};
    Rig forward = forward_rig(FUSEDIFF_F64, s);
    Rig backward = backward_rig(FUSEDIFF_F64, s);
    uint64_t seed = 1;
    for (RigTensor& in : forward.inputs()) counted_values(in, seed++);
    for (RigTensor& in : backward.inputs()) counted_values(in, seed++);
    ASSERT_TRUE(paths_agree(forward));
    copy_values(forward.input("x"), backward.input("x"));
    copy_values(forward.input("gamma"), backward.input("gamma"));
    copy_values(forward.output("rstd"), backward.input("rstd"));
    if (add) copy_values(forward.output("residual_out"), backward.input("residual_out"));
    ASSERT_TRUE(paths_agree(backward));
    const std::pair<const char*, const char*> checked[] = {
        {"x", "grad_x"}, {"gamma", "grad_gamma"}, {"residual", "grad_x"}};
    for (const auto& [input, gradient] : checked) {
      RigTensor& in = forward.input(input);
      for (int64_t i = 0; !in.absent && i < in.count(); ++i) {
        const double at = in.number(i), step = 1e-5;
        in.put_number(i, at + step);
        const double above = objective(forward, backward, add);
        in.put_number(i, at - step);
        const double below = objective(forward, backward, add);
        in.put_number(i, at);
        EXPECT_NEAR((above - below) / (2 * step), backward.output(gradient).number(i), 1e-7) << input << " " << i;
      }
    }
  }
}

TEST(RmsNormTest, OutputsMayLieOnInputs) {
  const int32_t dtypes[] = {FUSEDIFF_F32, FUSEDIFF_BF16};
  for (const int32_t dtype : dtypes) {
    Rig forward = forward_rig(dtype, {3, 70, true});
    Rig backward = backward_rig(dtype, {3, 70, true});
    uint64_t seed = 1;
    for (Rig* rig : {&forward, &backward}) {
      for (RigTensor& in : rig->inputs()) counted_values(in, seed++);
    }
    const fusediff_attr add{"add_residual", FUSEDIFF_INT, 1, 0, ""};
    const fusediff_attr eps{"eps", FUSEDIFF_FLOAT, 0, kEps, ""};
    EXPECT_TRUE(in_place_agrees(forward, "rms_norm", {add, eps}, {{"y", "x"}, {"residual_out", "residual"}}));
    EXPECT_TRUE(in_place_agrees(backward, "rms_norm_grad", {add}, {{"grad_x", "grad_y"}}));
    EXPECT_TRUE(in_place_agrees(backward, "rms_norm_grad", {add}, {{"grad_x", "grad_residual_out"}}));
  }
}

TEST(RmsNormTest, BrokenCallsAreRejected) {
  const fusediff_target_v1& target = *fusediff_target();
  Rig empty = forward_rig(FUSEDIFF_F32, {2, 0, false});
  EXPECT_EQ(empty.run(target, "fused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(empty.error(), "x must have at least one column");
  Rig extra = forward_rig(FUSEDIFF_F32, {2, 3, false});
  extra.input("residual").absent = false;
  EXPECT_EQ(extra.run(target, "unfused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(extra.error(), "residual is given, but add_residual is false");
  Rig missing = forward_rig(FUSEDIFF_F32, {2, 3, true});
  missing.input("residual").absent = true;
  EXPECT_EQ(missing.run(target, "fused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(missing.error(), "residual is needed and absent");
  Rig short_gamma = backward_rig(FUSEDIFF_F32, {2, 3, false});
  short_gamma.input("gamma").shape = {2};
  EXPECT_EQ(short_gamma.run(target, "fused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(short_gamma.error(), "gamma has size 2 in dimension 0, not 3");
}

TEST(RmsNormTest, SameBitsFromEveryCompiler) {
  for (size_t i = 0; i < 6; ++i) {
    Rig forward = forward_rig(kEveryFloat[i], {5, 83, true});
    Rig backward = backward_rig(kEveryFloat[i], {5, 83, true});
    const uint64_t golden[][2] = {
        {0x091ff313bc571c75u, 0x6497d5aa8682f0d8u}, {0x5f9640550b365827u, 0x68d5ccf35a6e94f9u},
        {0xa7b88017b58215cau, 0x4a0721e4512204e5u}, {0x3adf26c7df4d8a25u, 0x34307dbb1fba3b0au},
        {0xeee25b083e5853f1u, 0x5afdedfbde403bd9u}, {0xb881ea5d225d54d6u, 0x2e218701e092574au}};
    EXPECT_EQ(counted_digest(forward), golden[i][0]) << dtype_name(kEveryFloat[i]);
    EXPECT_EQ(counted_digest(backward), golden[i][1]) << dtype_name(kEveryFloat[i]);
  }
}

}  // namespace
}  // namespace fusediff::builtin
