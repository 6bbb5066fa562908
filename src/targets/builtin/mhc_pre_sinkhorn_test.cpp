#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "builtin/paths_agree.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

struct Sizes {
  int64_t b, s, n, c, iterations;
  int64_t m() const { return n * n + 2 * n; }
};

constexpr double kHcEps = 1e-2;  // large, so that a formula that drops it shows
constexpr double kNormEps = 1e-3;

Rig forward_rig(int32_t dtype, const Sizes& z) {
  Rig rig("mhc_pre_sinkhorn");
  const int32_t wide = dtype == FUSEDIFF_F64 ? FUSEDIFF_F64 : FUSEDIFF_F32;
  rig.input("x", dtype, {z.b, z.s, z.n, z.c});
  rig.input("phi", wide, {z.m(), z.n * z.c});
  rig.input("alpha", wide, {3});
  rig.input("bias", wide, {z.m()});
  rig.output("hin", dtype, {z.b, z.s, z.c});
  rig.output("h_post", wide, {z.b, z.s, z.n});
  rig.output("h_res", wide, {z.b, z.s, z.n, z.n});
  rig.output("h_pre", wide, {z.b, z.s, z.n});
  rig.output("hc_before_norm", wide, {z.b, z.s, z.m()});
  rig.output("inv_rms", wide, {z.b, z.s, 1});
  rig.output("sum_out", wide, {2 * z.iterations, z.b, z.s, z.n});
  rig.output("norm_out", wide, {2 * z.iterations, z.b, z.s, z.n, z.n});
  rig.integer("num_iters", z.iterations);
  rig.real("hc_eps", kHcEps);
  rig.real("norm_eps", kNormEps);
  return rig;
}

Rig backward_rig(int32_t dtype, const Sizes& z) {
  Rig rig("mhc_pre_sinkhorn_grad");
  const int32_t wide = dtype == FUSEDIFF_F64 ? FUSEDIFF_F64 : FUSEDIFF_F32;
  rig.input("grad_hin", dtype, {z.b, z.s, z.c});
  rig.input("grad_h_post", wide, {z.b, z.s, z.n});
  rig.input("grad_h_res", wide, {z.b, z.s, z.n, z.n});
  rig.input("x", dtype, {z.b, z.s, z.n, z.c});
  rig.input("phi", wide, {z.m(), z.n * z.c});
  rig.input("alpha", wide, {3});
  rig.input("bias", wide, {z.m()});
  rig.input("h_pre", wide, {z.b, z.s, z.n});
  rig.input("hc_before_norm", wide, {z.b, z.s, z.m()});
  rig.input("inv_rms", wide, {z.b, z.s, 1});
  rig.input("sum_out", wide, {2 * z.iterations, z.b, z.s, z.n});
  rig.input("norm_out", wide, {2 * z.iterations, z.b, z.s, z.n, z.n});
  rig.output("grad_x", dtype, {z.b, z.s, z.n, z.c});
  rig.output("grad_phi", wide, {z.m(), z.n * z.c});
  rig.output("grad_alpha", wide, {3});
  rig.output("grad_bias", wide, {z.m()});
  rig.real("hc_eps", kHcEps);
  return rig;
}

Sizes random_sizes(std::mt19937_64& random) {
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
  return {below(3), below(4), 1 + below(5), 1 + below(random() % 4 == 0 ? 150 : 40), 1 + below(4)};
}

void randomise(Rig& rig, std::mt19937_64& random, bool tame) {
  for (RigTensor& in : rig.inputs()) {
    random_layout(in, random, true);
    random_values(in, random, 1.0, tame);
  }
  for (RigTensor& out : rig.outputs()) {
    random_layout(out, random, false);
  }
}

TEST(MhcPreSinkhornTest, PathsAgreeByBits) {
  std::mt19937_64 random(21);
  for (const int32_t dtype : {FUSEDIFF_BF16, FUSEDIFF_F16, FUSEDIFF_F64}) {
    for (int i = 0; i < 400; ++i) {
      Rig rig = forward_rig(dtype, random_sizes(random));
      randomise(rig, random, random() % 2 == 0);
      for (const char* saved : {"h_pre", "hc_before_norm", "inv_rms", "sum_out", "norm_out"}) {
        rig.output(saved).absent = random() % 4 == 0;
      }
      ASSERT_TRUE(paths_agree(rig)) << dtype_name(dtype) << " " << i;
    }
  }
}

TEST(MhcPreSinkhornGradTest, PathsAgreeByBits) {
  std::mt19937_64 random(22);
  for (const int32_t dtype : {FUSEDIFF_BF16, FUSEDIFF_F16, FUSEDIFF_F64}) {
    for (int i = 0; i < 400; ++i) {
      Rig rig = backward_rig(dtype, random_sizes(random));
      randomise(rig, random, random() % 2 == 0);
      ASSERT_TRUE(paths_agree(rig)) << dtype_name(dtype) << " " << i;
    }
  }
}

using Tensors = std::map<std::string, std::vector<double>>;

double logistic(double v) { return 1 / (1 + std::exp(-v)); }

// The definition for one token, in plain loops: hin, h_post, h_res and what is saved.
Tensors defined_token(const std::vector<double>& x, const std::vector<double>& phi, const std::vector<double>& alpha,
                      const std::vector<double>& bias, const Sizes& z) {
  const auto n = static_cast<size_t>(z.n), c = static_cast<size_t>(z.c), m = static_cast<size_t>(z.m()), k = n * c;
  Tensors out;
  double squares = 0;
  for (const double v : x) {
    squares += v * v;
  }
  const double inv = 1 / std::sqrt(squares / static_cast<double>(k) + kNormEps);
  out["inv_rms"] = {inv};
  std::vector<double> logit(m);
  for (size_t row = 0; row < m; ++row) {
    double dot = 0;
    for (size_t i = 0; i < k; ++i) {
      dot += x[i] * phi[row * k + i];
    }
    out["hc_before_norm"].push_back(dot);
    logit[row] = alpha[row < n ? 0 : row < 2 * n ? 1 : 2] * dot * inv + bias[row];
  }
  out["hin"].assign(c, 0);
  for (size_t i = 0; i < n; ++i) {
    out["h_pre"].push_back(logistic(logit[i]) + kHcEps);
    out["h_post"].push_back(2 * logistic(logit[n + i]));
    for (size_t j = 0; j < c; ++j) {
      out["hin"][j] += x[i * c + j] * out["h_pre"][i];
    }
  }
  std::vector<double> p(logit.begin() + static_cast<int64_t>(2 * n), logit.end());
  for (size_t i = 0; i < n; ++i) {
    const double most =
        *std::max_element(p.begin() + static_cast<int64_t>(i * n), p.begin() + static_cast<int64_t>(i * n + n));
    double sum = 0;
    for (size_t j = 0; j < n; ++j) {
      sum += p[i * n + j] = std::exp(p[i * n + j] - most);
    }
    out["sum_out"].push_back(sum);
    for (size_t j = 0; j < n; ++j) {
      p[i * n + j] = p[i * n + j] / sum + kHcEps;
    }
  }
  out["norm_out"] = p;
  for (int64_t half = 1; half < 2 * z.iterations; ++half) {
    for (size_t line = 0; line < n; ++line) {
      const bool rows = half % 2 == 0;
      const auto at = [&](size_t e) -> double& { return p[rows ? line * n + e : e * n + line]; };
      double sum = kHcEps;
      for (size_t e = 0; e < n; ++e) {
        sum += at(e);
      }
      out["sum_out"].push_back(sum);
      for (size_t e = 0; e < n; ++e) {
        at(e) /= sum;
      }
    }
    out["norm_out"].insert(out["norm_out"].end(), p.begin(), p.end());
  }
  out["h_res"] = p;
  return out;
}

std::vector<double> numbers(RigTensor& tensor) {
  std::vector<double> all;
  for (int64_t i = 0; i < tensor.count(); ++i) {
    all.push_back(tensor.number(i));
  }
  return all;
}

TEST(MhcPreSinkhornTest, DoubleFollowsTheDefinition) {
  std::mt19937_64 random(23);
  for (const Sizes& z : {Sizes{1, 1, 4, 8, 20}, Sizes{1, 1, 1, 5, 1}, Sizes{1, 1, 3, 33, 2}}) {
    Rig rig = forward_rig(FUSEDIFF_F64, z);
    std::normal_distribution<double> normal;
    for (RigTensor& in : rig.inputs()) {
      for (int64_t i = 0; i < in.count(); ++i) {
        in.put_number(i, normal(random));
      }
    }
    ASSERT_TRUE(paths_agree(rig));
    Tensors expected = defined_token(numbers(rig.input("x")), numbers(rig.input("phi")), numbers(rig.input("alpha")),
                                     numbers(rig.input("bias")), z);
    for (RigTensor& out : rig.outputs()) {
      ASSERT_EQ(static_cast<int64_t>(expected[out.name].size()), out.count()) << out.name;
      for (int64_t i = 0; i < out.count(); ++i) {
        ASSERT_NEAR(out.number(i), expected[out.name][static_cast<size_t>(i)], 1e-12) << out.name << " " << i;
      }
    }
  }
}

// The forward at the inputs of `rig`, and sum of cotangent * output.
double objective(Rig& forward, Rig& backward) {
  EXPECT_EQ(forward.run(*fusediff_target(), "unfused"), FUSEDIFF_OK) << forward.error();
  double sum = 0;
  for (const char* name : {"hin", "h_post", "h_res"}) {
    RigTensor& out = forward.output(name);
    RigTensor& cotangent = backward.input(std::string("grad_") + name);
    for (int64_t i = 0; i < out.count(); ++i) {
      sum += out.number(i) * cotangent.number(i);
    }
  }
  return sum;
}

TEST(MhcPreSinkhornGradTest, IsTheDerivativeOfTheForward) {
  std::mt19937_64 random(24);
  std::normal_distribution<double> normal;
  for (const Sizes& z : {Sizes{2, 2, 3, 5, 3}, Sizes{1, 1, 4, 2, 1}, Sizes{1, 3, 1, 4, 2}, Sizes{1, 1, 2, 70, 20}}) {
    Rig forward = forward_rig(FUSEDIFF_F64, z);
    Rig backward = backward_rig(FUSEDIFF_F64, z);
    for (Rig* rig : {&forward, &backward}) {
      for (RigTensor& in : rig->inputs()) {
        for (int64_t i = 0; i < in.count(); ++i) {
          in.put_number(i, normal(random));
        }
      }
    }
    objective(forward, backward);
    for (const char* shared : {"x", "phi", "alpha", "bias"}) {
      backward.input(shared).memory = forward.input(shared).memory;
    }
    for (const char* saved : {"h_pre", "hc_before_norm", "inv_rms", "sum_out", "norm_out"}) {
      backward.input(saved).memory = forward.output(saved).memory;
    }
    ASSERT_TRUE(paths_agree(backward));
    for (const std::string name : {"x", "phi", "alpha", "bias"}) {
      RigTensor& at = forward.input(name);
      RigTensor& gradient = backward.output("grad_" + name);
      for (int64_t i = 0; i < at.count(); ++i) {
        const double here = at.number(i);
        constexpr double kStep = 1e-5;
        at.put_number(i, here + kStep);
        const double above = objective(forward, backward);
        at.put_number(i, here - kStep);
        const double below = objective(forward, backward);
        at.put_number(i, here);
        ASSERT_NEAR((above - below) / (2 * kStep), gradient.number(i), 2e-8) << name << " " << i;
      }
    }
  }
}

TEST(MhcPreSinkhornGradTest, SumsOverNothingAreZeros) {
  for (const Sizes& z : {Sizes{0, 8, 4, 128, 20}, Sizes{2, 0, 4, 8, 1}}) {
    Rig rig = backward_rig(FUSEDIFF_BF16, z);
    ASSERT_TRUE(paths_agree(rig));
    for (const char* path : {"fused", "unfused"}) {
      ASSERT_EQ(rig.run(*fusediff_target(), path), FUSEDIFF_OK);
      for (const char* name : {"grad_phi", "grad_alpha", "grad_bias"}) {
        for (int64_t i = 0; i < rig.output(name).count(); ++i) {
          ASSERT_EQ(rig.output(name).bits(i), 0u) << name << " " << path;
        }
      }
    }
  }
}

TEST(MhcPreSinkhornTest, BrokenRulesAreRejected) {
  Rig none = forward_rig(FUSEDIFF_BF16, {1, 1, 2, 0, 1});
  EXPECT_EQ(none.run(*fusediff_target(), "fused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(none.error(), "x must have at least one stream and one channel");
  Rig still = forward_rig(FUSEDIFF_BF16, {1, 1, 2, 4, 0});
  EXPECT_EQ(still.run(*fusediff_target(), "unfused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(still.error(), "the number of iterations must be at least 1, not 0");
  Rig odd = forward_rig(FUSEDIFF_F8E5M2, {1, 1, 2, 4, 1});
  EXPECT_EQ(odd.run(*fusediff_target(), "fused"), FUSEDIFF_UNSUPPORTED);
}

// Error of hc_before_norm in f32 against f64, in ULP of the f64 run on absolute values: within the bound of the schema.
TEST(MhcPreSinkhornTest, ProductsAreWithinTheirBound) {
  std::mt19937_64 random(25);
  std::normal_distribution<double> normal;
  const Sizes z{1, 1, 4, 200, 1};
  for (int i = 0; i < 20; ++i) {
    Rig narrow = forward_rig(FUSEDIFF_F16, z);
    Rig wide = forward_rig(FUSEDIFF_F64, z);
    Rig absolute = forward_rig(FUSEDIFF_F64, z);
    for (size_t in = 0; in < narrow.inputs().size(); ++in) {
      for (int64_t e = 0; e < narrow.inputs()[in].count(); ++e) {
        narrow.inputs()[in].put_number(e, normal(random));
        wide.inputs()[in].put_number(e, narrow.inputs()[in].number(e));
        absolute.inputs()[in].put_number(e, std::abs(narrow.inputs()[in].number(e)));
      }
    }
    ASSERT_TRUE(paths_agree(narrow) && paths_agree(wide) && paths_agree(absolute));
    for (int64_t m = 0; m < z.m(); ++m) {
      const double ulp = std::ldexp(1.0, std::ilogb(absolute.output("hc_before_norm").number(m)) - 23);
      const double error =
          std::abs(narrow.output("hc_before_norm").number(m) - wide.output("hc_before_norm").number(m));
      ASSERT_LE(error, static_cast<double>(z.n * z.c + 8) * ulp);
    }
  }
}

TEST(MhcPreSinkhornTest, SameBitsFromEveryCompiler) {
  Rig half = forward_rig(FUSEDIFF_F16, {2, 2, 4, 37, 20});
  EXPECT_EQ(counted_digest(half), 0xa7e0883684034691u);
  Rig wide = forward_rig(FUSEDIFF_F64, {1, 2, 3, 16, 2});
  EXPECT_EQ(counted_digest(wide), 0x3c2ffeda5dc4837du);
}

TEST(MhcPreSinkhornGradTest, SameBitsFromEveryCompiler) {
  Rig bfloat = backward_rig(FUSEDIFF_BF16, {2, 2, 4, 37, 3});
  EXPECT_EQ(counted_digest(bfloat), 0x4c53926bafa8968cu);
  Rig wide = backward_rig(FUSEDIFF_F64, {1, 2, 3, 16, 2});
  EXPECT_EQ(counted_digest(wide), 0x3f67132b158f4070u);
}

}  // namespace
}  // namespace fusediff::builtin
