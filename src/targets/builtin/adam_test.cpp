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

constexpr int32_t kDtypes[] = {FUSEDIFF_F32, FUSEDIFF_F16, FUSEDIFF_BF16, FUSEDIFF_F64};
constexpr int kRounds = 400;

struct Settings {
  double lr = 1e-2, beta1 = 0.9, beta2 = 0.99, eps = 1e-8, weight_decay = 0;
  bool decoupled = false, corrected = true;
  int64_t step = 1, steps = 1;
};

Rig adam_rig(int32_t dtype, int64_t rows, int64_t columns, const Settings& s) {
  const int32_t wide = dtype == FUSEDIFF_F64 ? FUSEDIFF_F64 : FUSEDIFF_F32;
  Rig rig("adam");
  rig.input("param", dtype, {rows, columns});
  rig.input("grad", dtype, {rows, columns});
  rig.input("exp_avg", wide, {rows, columns});
  rig.input("exp_avg_sq", wide, {rows, columns});
  rig.output("exp_avg_out", wide, {rows, columns});
  rig.output("exp_avg_sq_out", wide, {rows, columns});
  rig.output("param_out", dtype, {rows, columns});
  rig.real("lr", s.lr);
  rig.real("beta1", s.beta1);
  rig.real("beta2", s.beta2);
  rig.real("eps", s.eps);
  rig.real("weight_decay", s.weight_decay);
  rig.text("mode", s.decoupled ? "adamw" : "adam");
  rig.integer("bias_correction", s.corrected ? 1 : 0);
  rig.integer("step", s.step);
  rig.integer("steps", s.steps);
  return rig;
}

Settings random_settings(std::mt19937_64& random) {
  Settings s;
  s.decoupled = random() % 2 == 0;
  s.corrected = random() % 4 != 0;
  s.weight_decay = random() % 3 == 0 ? 0 : 0.1;
  s.beta1 = random() % 8 == 0 ? 0 : 0.9;
  s.step = 1 + static_cast<int64_t>(random() % 100);
  s.steps = 1 + static_cast<int64_t>(random() % 4);
  return s;
}

// Layouts first, values then; exp_avg_sq is not negative.
void randomise(Rig& rig, std::mt19937_64& random, bool tame) {
  for (RigTensor& in : rig.inputs()) {
    random_layout(in, random, true);
    random_values(in, random, 1.0, tame);
    for (int64_t i = 0; in.name == "exp_avg_sq" && i < in.count(); ++i) {
      in.put_number(i, std::abs(in.number(i)));
    }
  }
  for (RigTensor& out : rig.outputs()) {
    random_layout(out, random, false);
  }
}

TEST(AdamTest, PathsAgreeByBits) {
  std::mt19937_64 random(51);
  for (const int32_t dtype : kDtypes) {
    for (int i = 0; i < kRounds; ++i) {
      Rig rig = adam_rig(dtype, static_cast<int64_t>(random() % 5), static_cast<int64_t>(random() % 140),
                         random_settings(random));
      randomise(rig, random, false);
      ASSERT_TRUE(paths_agree(rig)) << dtype_name(dtype) << " " << i;
    }
  }
}

struct State {
  long double p, m, v;
};

// The papers' algorithm for one element; magnitudes: its terms without their signs.
State by_definition(Rig& rig, int64_t at, const Settings& s, bool magnitudes) {
  const auto value = [&](const char* name) {
    const double x = rig.input(name).number(at);
    return static_cast<long double>(magnitudes ? std::abs(x) : x);
  };
  State x{value("param"), value("exp_avg"), value("exp_avg_sq")};
  for (int64_t t = s.step; t < s.step + s.steps; ++t) {
    const long double beta1 = s.beta1, beta2 = s.beta2, decay = s.weight_decay, time = static_cast<long double>(t);
    const long double g = value("grad") + (s.decoupled ? 0 : decay * x.p);
    x.p -= s.decoupled ? s.lr * decay * x.p : 0;
    x.m = beta1 * x.m + (1 - beta1) * g;
    x.v = beta2 * x.v + (1 - beta2) * g * g;
    const long double m_hat = s.corrected ? x.m / (1 - std::pow(beta1, time)) : x.m;
    const long double v_hat = s.corrected ? x.v / (1 - std::pow(beta2, time)) : x.v;
    x.p -= s.lr * m_hat / (std::sqrt(v_hat) + s.eps);
  }
  return x;
}

// Within the bounds of the record; the parameter, which has none, within what its terms allow on ordinary values.
TEST(AdamTest, FollowsTheDefinition) {
  std::mt19937_64 random(52);
  for (const int32_t dtype : kDtypes) {
    for (int i = 0; i < kRounds; ++i) {
      Settings s = random_settings(random);
      s.steps = s.decoupled ? s.steps : 1;
      Rig rig = adam_rig(dtype, 2, 30, s);
      randomise(rig, random, true);
      ASSERT_TRUE(paths_agree(rig));
      const int32_t wide = rig.output("exp_avg_out").dtype;
      const double steps = static_cast<double>(s.steps);
      for (int64_t j = 0; j < 60; ++j) {
        const State truth = by_definition(rig, j, s, false);
        const State terms = by_definition(rig, j, s, true);
        const auto error = [&](const char* name, long double right) {
          return static_cast<double>(std::abs(static_cast<long double>(rig.output(name).number(j)) - right));
        };
        ASSERT_LE(error("exp_avg_out", truth.m), 8 * steps * spacing(wide, static_cast<double>(terms.m))) << j;
        ASSERT_LE(error("exp_avg_sq_out", truth.v), 12 * steps * spacing(wide, static_cast<double>(terms.v))) << j;
        const double before = std::abs(rig.input("param").number(j));
        const double moved = static_cast<double>(std::abs(truth.p) + std::abs(truth.p - rig.input("param").number(j)));
        if (moved < 1e3 && terms.v > 1e-20L && std::abs(truth.m) > 1e-3L * terms.m) {
          ASSERT_LE(error("param_out", truth.p), steps * spacing(dtype, before + moved) + 1e-3 * s.lr * moved) << j;
        }
      }
    }
  }
}

// The bound rejects a step that forgets its decay, and mode tells the two decays apart.
TEST(AdamTest, WeightDecayIsWhereTheModeSays) {
  Settings s;
  s.weight_decay = 0.1;
  for (const bool decoupled : {false, true}) {
    s.decoupled = decoupled;
    Rig rig = adam_rig(FUSEDIFF_F32, 1, 1, s);
    rig.input("param").put(0, 2.0f);
    rig.input("grad").put(0, 0.5f);
    rig.input("exp_avg").put(0, 1.0f);
    rig.input("exp_avg_sq").put(0, 1.0f);
    ASSERT_TRUE(paths_agree(rig));
    const double g = decoupled ? 0.5 : 0.7;
    EXPECT_NEAR(rig.output("exp_avg_out").number(0), 0.9 + 0.1 * g, 1e-6);
    EXPECT_NEAR(rig.output("exp_avg_sq_out").number(0), 0.99 + 0.01 * g * g, 1e-6);
    const double moved = (0.9 + 0.1 * g) / 0.1 / std::sqrt((0.99 + 0.01 * g * g) / 0.01);
    EXPECT_NEAR(rig.output("param_out").number(0), 2 * (decoupled ? 1 - 1e-3 : 1) - 1e-2 * moved, 1e-6);
  }
}

// Several steps are single steps one after another, in every bit, in narrow dtypes too.
TEST(AdamTest, StepsAreSingleSteps) {
  std::mt19937_64 random(53);
  for (const int32_t dtype : kDtypes) {
    Settings s = random_settings(random);
    s.steps = 4;
    Rig at_once = adam_rig(dtype, 3, 50, s);
    randomise(at_once, random, false);
    Rig single = adam_rig(dtype, 3, 50, s);
    for (RigTensor& in : single.inputs()) {
      for (int64_t i = 0; i < in.count(); ++i) {
        in.put_number(i, at_once.input(in.name).number(i));
      }
    }
    for (int64_t step = 0; step < 4; ++step) {
      Settings one = s;
      one.step = s.step + step;
      one.steps = 1;
      Rig next = adam_rig(dtype, 3, 50, one);
      for (RigTensor& in : next.inputs()) {
        in.memory = single.input(in.name).memory;
      }
      ASSERT_TRUE(paths_agree(next));
      for (const char* name : {"param", "exp_avg", "exp_avg_sq"}) {
        single.input(name).memory = next.output(std::string(name) + "_out").memory;
      }
    }
    ASSERT_TRUE(paths_agree(at_once));
    for (const char* name : {"param", "exp_avg", "exp_avg_sq"}) {
      for (int64_t i = 0; i < 150; ++i) {
        ASSERT_EQ(at_once.output(std::string(name) + "_out").bits(i), single.input(name).bits(i)) << name << i;
      }
    }
  }
}

// A gradient that cancels with its decay: 2^24 + 1 and the like lose what the bound says, no more.
TEST(AdamTest, CancellingGradientIsWithinItsBound) {
  Settings s;
  s.weight_decay = 0.25;
  const double params[] = {0x1p26, 0x1p26 + 4, -0x1p26, 1, 3e38, 1e-45};
  const double grads[] = {-0x1p24 + 1, -0x1p24 - 1, 0x1p24 + 2, -0.25, -7e37, -1e-45};
  Rig rig = adam_rig(FUSEDIFF_F32, 1, 6, s);
  for (int64_t i = 0; i < 6; ++i) {
    rig.input("param").put_number(i, params[i]);
    rig.input("grad").put_number(i, grads[i]);
    rig.input("exp_avg").put_number(i, grads[i] / -9);
    rig.input("exp_avg_sq").put_number(i, 1e-38);
  }
  ASSERT_TRUE(paths_agree(rig));
  for (int64_t i = 0; i < 6; ++i) {
    const State truth = by_definition(rig, i, s, false);
    const State terms = by_definition(rig, i, s, true);
    EXPECT_LE(std::abs(rig.output("exp_avg_out").number(i) - static_cast<double>(truth.m)),
              8 * spacing(FUSEDIFF_F32, static_cast<double>(terms.m)));
    if (terms.v < 3e38L) {
      EXPECT_LE(std::abs(rig.output("exp_avg_sq_out").number(i) - static_cast<double>(truth.v)),
                12 * spacing(FUSEDIFF_F32, static_cast<double>(terms.v)));
    }
  }
}

TEST(AdamTest, NoParametersIsLegal) {
  for (const int32_t dtype : kDtypes) {
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{0, 5}, {5, 0}, {0, 0}}) {
      Rig rig = adam_rig(dtype, rows, columns, {});
      EXPECT_TRUE(paths_agree(rig));
    }
  }
}

// Every output on its own input, on both paths.
TEST(AdamTest, OutputsMayLieOnTheirInputs) {
  constexpr size_t kCount = 300;
  const int64_t shape[] = {3, 100}, stride[] = {100, 1};
  std::vector<float> expected;
  for (const char* path : {"fused", "unfused"}) {
    for (const bool apart : {true, false}) {
      std::vector<float> in(4 * kCount), out(3 * kCount);
      for (size_t i = 0; i < in.size(); ++i) {
        in[i] = static_cast<float>(i * 7919 % 1000) / 500 - (i / kCount == 2 ? 0.0f : 1.0f);
      }
      // param, exp_avg, exp_avg_sq, grad lie one behind the other.
      float* const to = apart ? out.data() : in.data();
      const fusediff_tensor inputs[] = {{"param", shape, stride, in.data(), 2, FUSEDIFF_F32},
                                        {"exp_avg", shape, stride, in.data() + kCount, 2, FUSEDIFF_F32},
                                        {"exp_avg_sq", shape, stride, in.data() + 2 * kCount, 2, FUSEDIFF_F32},
                                        {"grad", shape, stride, in.data() + 3 * kCount, 2, FUSEDIFF_F32}};
      const fusediff_tensor outputs[] = {{"param_out", shape, stride, to, 2, FUSEDIFF_F32},
                                         {"exp_avg_out", shape, stride, to + kCount, 2, FUSEDIFF_F32},
                                         {"exp_avg_sq_out", shape, stride, to + 2 * kCount, 2, FUSEDIFF_F32}};
      const fusediff_attr attrs[] = {{"lr", FUSEDIFF_FLOAT, 0, 0.01, ""},
                                     {"beta1", FUSEDIFF_FLOAT, 0, 0.9, ""},
                                     {"beta2", FUSEDIFF_FLOAT, 0, 0.99, ""},
                                     {"eps", FUSEDIFF_FLOAT, 0, 1e-8, ""},
                                     {"weight_decay", FUSEDIFF_FLOAT, 0, 0.1, ""},
                                     {"mode", FUSEDIFF_STRING, 0, 0, "adam"},
                                     {"bias_correction", FUSEDIFF_INT, 1, 0, ""},
                                     {"step", FUSEDIFF_INT, 3, 0, ""},
                                     {"steps", FUSEDIFF_INT, 3, 0, ""}};
      std::vector<double> workspace(8 * kCount);
      fusediff_call call{};
      call.struct_size = sizeof(call);
      call.op = "adam";
      call.path = path;
      call.inputs = inputs;
      call.input_count = 4;
      call.outputs = outputs;
      call.output_count = 3;
      call.attrs = attrs;
      call.attr_count = 9;
      call.workspace = workspace.data();
      call.workspace_size = workspace.size() * sizeof(double);
      ASSERT_EQ(fusediff_target()->run(nullptr, &call), FUSEDIFF_OK) << fusediff_target()->last_error();
      const std::vector<float> got(to, to + 3 * kCount);
      expected = expected.empty() ? got : expected;
      ASSERT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0) << path << apart;
    }
  }
}

TEST(AdamTest, BrokenCallsAreRejected) {
  Settings s;
  s.steps = 5;
  Rig many = adam_rig(FUSEDIFF_F32, 1, 1, s);
  EXPECT_EQ(many.run(*fusediff_target(), "fused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(many.error(), "steps must be 1 to 4, not 5");
  s.steps = 1;
  s.step = 0;
  Rig before = adam_rig(FUSEDIFF_F32, 1, 1, s);
  EXPECT_EQ(before.run(*fusediff_target(), "unfused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(before.error(), "step must be at least 1, not 0");
}

TEST(AdamTest, SameBitsFromEveryCompiler) {
  const uint64_t golden[] = {0x830a7b567fdb2fd3u, 0x3bcaff3fdfdd3532u, 0xc191e5a27773939bu, 0x50fc8cfcdba7fba5u};
  for (size_t i = 0; i < 4; ++i) {
    Settings s;
    s.weight_decay = 0.1;
    s.steps = 2;
    Rig rig = adam_rig(kDtypes[i], 9, 31, s);
    EXPECT_EQ(counted_digest(rig), golden[i]) << dtype_name(kDtypes[i]);
  }
}

}  // namespace
}  // namespace fusediff::builtin
