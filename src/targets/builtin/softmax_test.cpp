#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "builtin/layouts_agree.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr int kRounds = 200;
constexpr double kInf = std::numeric_limits<double>::infinity();

struct Sizes {
  int64_t rows, columns;
};

Sizes random_sizes(std::mt19937_64& random) {
  return {static_cast<int64_t>(random() % 6), static_cast<int64_t>(random() % 150)};
}

Rig forward_rig(int32_t dtype, const Sizes& s) {
  Rig rig("softmax");
  rig.input("x", dtype, {s.rows, s.columns});
  rig.output("max", dtype, {s.rows});
  rig.output("sum", side_dtype(dtype), {s.rows});
  rig.output("y", dtype, {s.rows, s.columns});
  return rig;
}

Rig backward_rig(int32_t dtype, const Sizes& s) {
  Rig rig("softmax_grad");
  rig.input("grad_y", dtype, {s.rows, s.columns});
  rig.input("y", dtype, {s.rows, s.columns});
  rig.output("dot", side_dtype(dtype), {s.rows});
  rig.output("grad_x", dtype, {s.rows, s.columns});
  return rig;
}

void randomise(Rig& rig, std::mt19937_64& random, double scale, bool tame) {
  for (RigTensor& in : rig.inputs()) {
    random_layout(in, random, true);
    random_values(in, random, scale, tame);
  }
  for (RigTensor& out : rig.outputs()) {
    random_layout(out, random, false);
    out.absent = (out.name == "max" || out.name == "sum" || out.name == "dot") && random() % 4 == 0;
  }
}

TEST(SoftmaxTest, PathsAndLayoutsAgreeByBits) {
  std::mt19937_64 random(41);
  for (const int32_t dtype : kEveryFloat) {
    for (int i = 0; i < kRounds; ++i) {
      Rig forward = forward_rig(dtype, random_sizes(random));
      randomise(forward, random, 10.0, false);
      ASSERT_TRUE(layouts_agree(forward)) << dtype_name(dtype) << " " << i;
      ASSERT_TRUE(rows_agree(forward, {"x", "max", "sum", "y"})) << dtype_name(dtype) << " " << i;
      Rig backward = backward_rig(dtype, random_sizes(random));
      randomise(backward, random, 1.0, false);
      ASSERT_TRUE(layouts_agree(backward)) << dtype_name(dtype) << " " << i;
      ASSERT_TRUE(rows_agree(backward, {"grad_y", "y", "dot", "grad_x"})) << dtype_name(dtype) << " " << i;
    }
  }
}

// The softmax of a row of x in long double.
std::vector<long double> truth_of(RigTensor& x, int64_t row, long double* sum) {
  const int64_t columns = x.shape[1];
  std::vector<long double> y;
  long double max = -std::numeric_limits<long double>::infinity();
  for (int64_t c = 0; c < columns; ++c) {
    max = std::max(max, static_cast<long double>(x.number(row * columns + c)));
  }
  *sum = 0;
  for (int64_t c = 0; c < columns; ++c) {
    y.push_back(std::exp(static_cast<long double>(x.number(row * columns + c)) - max));
    *sum += y.back();
  }
  for (long double& value : y) value /= *sum;
  return y;
}

// The worst error of y and sum, as a share of their bounds.
long double forward_error(Rig& rig, const Sizes& s) {
  long double worst = 0;
  const auto columns = static_cast<long double>(s.columns);
  for (int64_t row = 0; row < s.rows; ++row) {
    long double sum = 0;
    const std::vector<long double> truth = truth_of(rig.input("x"), row, &sum);
    const long double largest = truth.empty() ? 0 : *std::max_element(truth.begin(), truth.end());
    for (int64_t c = 0; c < s.columns; ++c) {
      const long double y = truth[static_cast<size_t>(c)];
      const long double error = ulp_error(rig.output("y"), row * s.columns + c, y, largest);
      worst = std::max(worst, error / (4 * columns + 16));
    }
    if (!rig.output("sum").absent) {
      worst = std::max(worst, ulp_error(rig.output("sum"), row, sum, sum) / (3 * columns + 8));
    }
  }
  return worst;
}

TEST(SoftmaxTest, IsWithinItsBoundAndRowsSumToOne) {
  std::mt19937_64 random(42);
  for (const int32_t dtype : kEveryFloat) {
    for (int i = 0; i < kRounds; ++i) {
      const Sizes s = random_sizes(random);
      Rig rig = forward_rig(dtype, s);
      randomise(rig, random, i % 2 == 0 ? 10.0 : 0.1, true);
      ASSERT_TRUE(paths_agree(rig));
      ASSERT_LE(forward_error(rig, s), 1) << dtype_name(dtype) << " " << i;
      for (int64_t row = 0; s.columns >= 1 && s.columns <= 128 && row < s.rows; ++row) {
        double sum = 0;
        for (int64_t c = 0; c < s.columns; ++c) {
          const double y = rig.output("y").number(row * s.columns + c);
          ASSERT_TRUE(y >= 0 && y <= 1) << y;
          sum += y;
        }
        ASSERT_LE(std::abs(sum - 1), 0.19) << dtype_name(dtype) << " " << s.columns;
      }
    }
  }
}

// Equal elements: the sum grows past every digit of its terms, and 1 / C rounds to 0 or far off in 8-bit dtypes.
TEST(SoftmaxTest, IsWithinItsBoundOnEqualElements) {
  for (const int32_t dtype : kEveryFloat) {
    for (const int64_t columns : {1, 3, 127, 128, 512, 4099}) {
      Rig rig = forward_rig(dtype, {1, columns});
      for (int64_t c = 0; c < columns; ++c) rig.input("x").put_number(c, -7.5);
      ASSERT_TRUE(paths_agree(rig));
      EXPECT_LE(forward_error(rig, {1, columns}), 1) << dtype_name(dtype) << " " << columns;
      double sum = 0;
      for (int64_t c = 0; c < columns; ++c) sum += rig.output("y").number(c);
      EXPECT_TRUE(columns > 128 || std::abs(sum - 1) <= 0.19) << dtype_name(dtype) << " " << sum;
    }
  }
}

TEST(SoftmaxTest, BoundRejectsARowThatLostItsLastElement) {
  const Sizes s{1, 65};
  Rig rig = forward_rig(FUSEDIFF_F32, s);
  counted_values(rig.input("x"), 3);
  ASSERT_TRUE(paths_agree(rig));
  EXPECT_LE(forward_error(rig, s), 1);
  for (int64_t c = 0; c < 64; ++c) {
    rig.output("y").put_number(c, rig.output("y").number(c) / (1 - rig.output("y").number(64)));
  }
  EXPECT_GT(forward_error(rig, s), 1);
}

TEST(SoftmaxTest, SpecialRowsAreDefined) {
  Rig rig = forward_rig(FUSEDIFF_F32, {6, 2});
  const double values[] = {1, std::nan(""), kInf, 0, -kInf, -kInf, -kInf, 5, -0.0, 0.0, 3e38, -3e38};
  for (int64_t i = 0; i < 12; ++i) rig.input("x").put_number(i, values[i]);
  ASSERT_TRUE(paths_agree(rig));
  for (int64_t i = 0; i < 6; ++i) EXPECT_TRUE(std::isnan(rig.output("y").number(i))) << i;
  EXPECT_TRUE(std::isnan(rig.output("max").number(0)));
  EXPECT_EQ(rig.output("max").number(1), kInf);
  EXPECT_EQ(rig.output("max").number(2), -kInf);
  EXPECT_EQ(rig.output("y").number(6), 0.0);
  EXPECT_EQ(rig.output("y").number(7), 1.0);
  EXPECT_EQ(rig.output("max").bits(4), 0u);
  EXPECT_EQ(rig.output("y").number(9), 0.5);
  EXPECT_EQ(rig.output("y").number(10), 1.0);
  EXPECT_EQ(rig.output("y").number(11), 0.0);
}

TEST(SoftmaxTest, EmptyIsLegal) {
  for (const int32_t dtype : kEveryFloat) {
    for (const Sizes& s : {Sizes{0, 5}, Sizes{2, 0}, Sizes{0, 0}}) {
      Rig forward = forward_rig(dtype, s);
      ASSERT_TRUE(paths_agree(forward));
      Rig backward = backward_rig(dtype, s);
      ASSERT_TRUE(paths_agree(backward));
      for (int64_t row = 0; row < s.rows; ++row) {
        EXPECT_EQ(forward.output("sum").bits(row), 0u);
        EXPECT_EQ(backward.output("dot").bits(row), 0u);
        EXPECT_TRUE(dtype == FUSEDIFF_F8E4M3FN || forward.output("max").number(row) == -kInf);
      }
    }
  }
}

TEST(SoftmaxGradTest, IsWithinItsBound) {
  std::mt19937_64 random(43);
  for (const int32_t dtype : kEveryFloat) {
    for (int i = 0; i < kRounds; ++i) {
      const Sizes s = random_sizes(random);
      Rig forward = forward_rig(dtype, s);
      randomise(forward, random, 2.0, true);
      ASSERT_TRUE(paths_agree(forward));
      Rig rig = backward_rig(dtype, s);
      randomise(rig, random, 1.0, true);
      rig.input("y").lay_out();
      copy_values(forward.output("y"), rig.input("y"));
      ASSERT_TRUE(paths_agree(rig));
      for (int64_t row = 0; row < s.rows; ++row) {
        long double sum = 0, dot = 0, absolute = 0, terms = 0;
        const std::vector<long double> y = truth_of(forward.input("x"), row, &sum);
        const auto grad = [&](int64_t c) {
          return static_cast<long double>(rig.input("grad_y").number(row * s.columns + c));
        };
        for (int64_t c = 0; c < s.columns; ++c) {
          dot += grad(c) * y[static_cast<size_t>(c)];
          absolute += std::abs(grad(c)) * y[static_cast<size_t>(c)];
        }
        for (int64_t c = 0; c < s.columns; ++c) {
          terms += y[static_cast<size_t>(c)] * (std::abs(grad(c)) + absolute);
        }
        const auto columns = static_cast<long double>(s.columns);
        for (int64_t c = 0; c < s.columns; ++c) {
          const long double truth = (grad(c) - dot) * y[static_cast<size_t>(c)];
          ASSERT_LE(ulp_error(rig.output("grad_x"), row * s.columns + c, truth, terms), 3 * columns + 680)
              << dtype_name(dtype) << " " << i;
        }
        if (!rig.output("dot").absent) {
          ASSERT_LE(ulp_error(rig.output("dot"), row, dot, absolute), 16777216 + 4 * columns) << dtype_name(dtype);
        }
      }
    }
  }
}

// Values by hand: y = (1/2, 1/4, 1/4), grad_y = (4, 0, -4): D = 1, grad_x = (1.5, -0.25, -1.25).
TEST(SoftmaxGradTest, FollowsTheDefinition) {
  for (const int32_t dtype : kEveryFloat) {
    Rig rig = backward_rig(dtype, {1, 3});
    const double y[] = {0.5, 0.25, 0.25}, grad[] = {4, 0, -4}, expected[] = {1.5, -0.25, -1.25};
    for (int64_t c = 0; c < 3; ++c) {
      rig.input("y").put_number(c, y[c]);
      rig.input("grad_y").put_number(c, grad[c]);
    }
    ASSERT_TRUE(paths_agree(rig));
    EXPECT_EQ(rig.output("dot").number(0), 1.0);
    for (int64_t c = 0; c < 3; ++c) EXPECT_EQ(rig.output("grad_x").number(c), expected[c]) << dtype_name(dtype);
  }
}

TEST(SoftmaxGradTest, IsTheDerivativeOfTheForward) {
  const Sizes s{3, 7};
  Rig forward = forward_rig(FUSEDIFF_F64, s);
  Rig backward = backward_rig(FUSEDIFF_F64, s);
  counted_values(forward.input("x"), 1);
  counted_values(backward.input("grad_y"), 2);
  ASSERT_TRUE(paths_agree(forward));
  copy_values(forward.output("y"), backward.input("y"));
  ASSERT_TRUE(paths_agree(backward));
  const auto objective = [&] {
    double sum = 0;
    EXPECT_EQ(forward.run(*fusediff_target(), "unfused"), FUSEDIFF_OK);
    for (int64_t i = 0; i < 21; ++i) sum += backward.input("grad_y").number(i) * forward.output("y").number(i);
    return sum;
  };
  for (int64_t i = 0; i < 21; ++i) {
    const double at = forward.input("x").number(i), step = 1e-5;
    forward.input("x").put_number(i, at + step);
    const double above = objective();
    forward.input("x").put_number(i, at - step);
    const double below = objective();
    forward.input("x").put_number(i, at);
    EXPECT_NEAR((above - below) / (2 * step), backward.output("grad_x").number(i), 1e-9) << i;
  }
}

TEST(SoftmaxTest, OutputsMayLieOnInputs) {
  for (const int32_t dtype : {FUSEDIFF_F32, FUSEDIFF_BF16}) {
    Rig forward = forward_rig(dtype, {3, 70});
    Rig backward = backward_rig(dtype, {3, 70});
    counted_values(forward.input("x"), 1);
    counted_values(backward.input("grad_y"), 2);
    counted_values(backward.input("y"), 3);
    EXPECT_TRUE(in_place_agrees(forward, "softmax", {}, {{"y", "x"}}));
    EXPECT_TRUE(in_place_agrees(backward, "softmax_grad", {}, {{"grad_x", "grad_y"}}));
    EXPECT_TRUE(in_place_agrees(backward, "softmax_grad", {}, {{"grad_x", "y"}}));
  }
}

TEST(SoftmaxTest, ShapesMustFit) {
  Rig forward = forward_rig(FUSEDIFF_F32, {2, 3});
  forward.output("max").shape = {3};
  EXPECT_EQ(forward.run(*fusediff_target(), "fused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(forward.error(), "max has size 3 in dimension 0, not 2");
  Rig backward = backward_rig(FUSEDIFF_F32, {2, 3});
  backward.input("y").shape = {2, 2};
  EXPECT_EQ(backward.run(*fusediff_target(), "unfused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(backward.error(), "y has size 2 in dimension 1, not 3");
}

TEST(SoftmaxTest, SameBitsFromEveryCompiler) {
  for (size_t i = 0; i < 6; ++i) {
    Rig forward = forward_rig(kEveryFloat[i], {5, 83});
    Rig backward = backward_rig(kEveryFloat[i], {5, 83});
    const uint64_t golden[][2] = {
        {0x17fbe519de7269cau, 0x2b13c979e566d071u}, {0x6bf009a77b0493b5u, 0x910ae6accefffd60u},
        {0xac06b7e0d2b5d86fu, 0xa4aada043e214dceu}, {0xdd98d319494fe3ddu, 0x50f8ee5028ce0036u},
        {0x06813e48d8dc6e82u, 0xd706e52636c7b62bu}, {0x455df6200aed308au, 0xe34d748f4fb76cd9u}};
    EXPECT_EQ(counted_digest(forward), golden[i][0]) << dtype_name(kEveryFloat[i]);
    EXPECT_EQ(counted_digest(backward), golden[i][1]) << dtype_name(kEveryFloat[i]);
  }
}

}  // namespace
}  // namespace fusediff::builtin
