#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "builtin/last_place.h"
#include "builtin/paths_agree.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr int32_t kDtypes[] = {FUSEDIFF_F32, FUSEDIFF_F16, FUSEDIFF_BF16, FUSEDIFF_F64};

int32_t wide_of(int32_t dtype) { return dtype == FUSEDIFF_F64 ? FUSEDIFF_F64 : FUSEDIFF_F32; }

Rig forward_rig(int32_t dtype, int64_t rows, int64_t classes, double smoothing) {
  Rig rig("cross_entropy");
  rig.input("logits", dtype, {rows, classes});
  rig.input("target", FUSEDIFF_I32, {rows});
  rig.output("lse", wide_of(dtype), {rows});
  rig.output("terms", wide_of(dtype), {rows, 4});
  rig.output("loss", wide_of(dtype), {rows});
  rig.real("label_smoothing", smoothing);
  return rig;
}

Rig backward_rig(int32_t dtype, int64_t rows, int64_t classes, double smoothing) {
  Rig rig("cross_entropy_grad");
  rig.input("grad_loss", wide_of(dtype), {rows});
  rig.input("logits", dtype, {rows, classes});
  rig.input("target", FUSEDIFF_I64, {rows});
  rig.input("lse", wide_of(dtype), {rows});
  rig.output("probs", wide_of(dtype), {rows, classes});
  rig.output("grad_logits", dtype, {rows, classes});
  rig.real("label_smoothing", smoothing);
  return rig;
}

void randomise(Rig& rig, std::mt19937_64& random, bool tame) {
  const double scale = std::ldexp(1.0, static_cast<int>(random() % 10) - 3);
  for (RigTensor& in : rig.inputs()) {
    random_layout(in, random, true);
    random_values(in, random, scale, tame);
  }
  RigTensor& target = rig.input("target");
  for (int64_t r = 0; r < target.count(); ++r) {
    const int64_t classes = rig.input("logits").shape[1];
    target.put_number(r, random() % 5 == 0 ? -100 : static_cast<double>(random() % static_cast<uint64_t>(classes)));
  }
  for (RigTensor& out : rig.outputs()) {
    random_layout(out, random, false);
  }
  rig.outputs()[rig.outputs().size() == 3 ? 1 : 0].absent = random() % 4 == 0;
}

double random_smoothing(std::mt19937_64& random) { return random() % 2 == 0 ? 0.0 : 0.1; }

TEST(CrossEntropyTest, PathsAgreeByBits) {
  std::mt19937_64 random(91);
  for (const int32_t dtype : kDtypes) {
    for (int i = 0; i < 500; ++i) {
      const int64_t rows = static_cast<int64_t>(random() % 5), classes = 1 + static_cast<int64_t>(random() % 300);
      Rig forward = forward_rig(dtype, rows, classes, random_smoothing(random));
      Rig backward = backward_rig(dtype, rows, classes, random_smoothing(random));
      for (Rig* rig : {&forward, &backward}) {
        randomise(*rig, random, false);
        ASSERT_TRUE(paths_agree(*rig)) << dtype_name(dtype) << " " << i;
      }
    }
  }
}

struct Row {
  long double lse, nll, smooth, loss, magnitudes;  // magnitudes: lse of the absolute logits
};

// The definition for one row in long double.
Row by_definition(Rig& rig, int64_t r, double smoothing) {
  const int64_t classes = rig.input("logits").shape[1];
  const auto lse = [&](bool magnitudes) {
    std::vector<long double> x;
    for (int64_t i = 0; i < classes; ++i) {
      const double value = rig.input("logits").number(r * classes + i);
      x.push_back(magnitudes ? std::abs(value) : value);
    }
    const long double most = *std::max_element(x.begin(), x.end());
    long double sum = 0;
    for (const long double value : x) {
      sum += std::exp(value - most);
    }
    return most + std::log(sum);
  };
  Row row{lse(false), 0, 0, 0, lse(true)};
  long double mean = 0;
  for (int64_t i = 0; i < classes; ++i) {
    mean += (row.lse - rig.input("logits").number(r * classes + i)) / static_cast<long double>(classes);
  }
  row.smooth = mean;
  const double label = rig.input("target").number(r);
  if (label >= 0) {
    row.nll = row.lse - rig.input("logits").number(r * classes + static_cast<int64_t>(label));
    row.loss = (1 - static_cast<long double>(smoothing)) * row.nll + smoothing * row.smooth;
  }
  return row;
}

void expect_within_bounds(Rig& rig, double smoothing) {
  const int64_t classes = rig.input("logits").shape[1];
  const double v = static_cast<double>(classes);
  for (int64_t r = 0; r < rig.output("lse").count(); ++r) {
    const Row truth = by_definition(rig, r, smoothing);
    const int32_t dtype = rig.output("lse").dtype;
    const auto error = [](double got, long double right) {
      return static_cast<double>(std::abs(static_cast<long double>(got) - right));
    };
    ASSERT_LE(error(rig.output("lse").number(r), truth.lse),
              (2 * v + 16) * spacing(dtype, static_cast<double>(truth.magnitudes)));
    const long double largest = std::max({std::abs(truth.lse), truth.nll, truth.smooth});
    const double allowed = (5 * v + 36) * spacing(dtype, static_cast<double>(largest));
    const long double right[] = {truth.lse, truth.nll, truth.smooth, truth.loss};
    for (int64_t i = 0; i < 4 && !rig.output("terms").absent; ++i) {
      ASSERT_LE(error(rig.output("terms").number(r * 4 + i), right[i]), allowed) << r << " " << i;
    }
    ASSERT_LE(error(rig.output("loss").number(r), truth.loss), allowed);
  }
}

TEST(CrossEntropyTest, IsWithinItsBounds) {
  std::mt19937_64 random(92);
  for (const int32_t dtype : kDtypes) {
    for (int i = 0; i < 300; ++i) {
      const double smoothing = random_smoothing(random);
      Rig rig = forward_rig(dtype, 3, 1 + static_cast<int64_t>(random() % 200), smoothing);
      randomise(rig, random, true);
      ASSERT_TRUE(paths_agree(rig));
      ASSERT_NO_FATAL_FAILURE(expect_within_bounds(rig, smoothing)) << dtype_name(dtype) << " " << i;
    }
  }
}

// Large numbers of changing sign, far offsets, many equal terms, rows that are sure.
TEST(CrossEntropyTest, AdversarialRowsAreWithinTheBounds) {
  const std::vector<std::vector<double>> rows = {{1e8, -1e8, 1e8, 1, -1e8, 1e8, 3, -1},
                                                 {0x1p24, 0x1p24, 1, 1, 1, 1, 1, 1},
                                                 {50, 0, 0, 0, 0, 0, 0, 0},
                                                 {0, -17, -17, -17, -17, -17, -17, -17},
                                                 {-1e4, -1e4, -1e4, -1e4, -1e4, -1e4, -1e4, -1e4},
                                                 {1e-40, -1e-40, 1e-45, 0, 0, -0.0, 1e-38, 2e-38}};
  for (const double smoothing : {0.0, 0.25}) {
    for (const auto& row : rows) {
      Rig rig = forward_rig(FUSEDIFF_F32, 2, 8, smoothing);
      for (int64_t i = 0; i < 16; ++i) {
        rig.input("logits").put_number(i, row[static_cast<size_t>(i % 8)]);
      }
      rig.input("target").put(0, int32_t{0});
      rig.input("target").put(1, int32_t{4});
      ASSERT_TRUE(paths_agree(rig));
      ASSERT_NO_FATAL_FAILURE(expect_within_bounds(rig, smoothing));
    }
  }
  Rig many = forward_rig(FUSEDIFF_BF16, 1, 512, 0.1);
  many.input("target").put(0, int32_t{511});
  for (int64_t i = 0; i < 512; ++i) {
    many.input("logits").put_number(i, 0.1);
  }
  ASSERT_TRUE(paths_agree(many));
  ASSERT_NO_FATAL_FAILURE(expect_within_bounds(many, 0.1));
  EXPECT_NEAR(many.output("loss").number(0), std::log(512.0), 1e-6);
}

// Ordinary rows: a class left out of the sum, or smoothing forgotten, is outside the bound of terms.
TEST(CrossEntropyTest, TheBoundRejectsDamage) {
  std::mt19937_64 random(93);
  Rig rig = forward_rig(FUSEDIFF_F32, 20, 64, 0.1);
  randomise(rig, random, true);
  for (int64_t i = 0; i < 20 * 64; ++i) {
    rig.input("logits").put_number(i, std::normal_distribution<double>(0, 1)(random));
  }
  rig.input("logits").lay_out();
  for (int64_t i = 0; i < 20 * 64; ++i) {
    rig.input("logits").put_number(i, std::normal_distribution<double>(0, 1)(random));
  }
  for (int64_t r = 0; r < 20; ++r) {
    const Row truth = by_definition(rig, r, 0.1);
    const double allowed =
        (5 * 64 + 36) * spacing(FUSEDIFF_F32, static_cast<double>(std::max(truth.lse, truth.smooth)));
    const double missing = std::exp(rig.input("logits").number(r * 64) - static_cast<double>(truth.lse));
    EXPECT_GT(missing, allowed);
  }
}

TEST(CrossEntropyTest, IgnoredRowsAreZero) {
  for (const int32_t dtype : kDtypes) {
    Rig forward = forward_rig(dtype, 2, 5, 0.1);
    Rig backward = backward_rig(dtype, 2, 5, 0.1);
    for (Rig* rig : {&forward, &backward}) {
      for (RigTensor& in : rig->inputs()) {
        for (int64_t i = 0; i < in.count(); ++i) {
          in.put_number(i, in.name == "target" ? -100 : std::numeric_limits<double>::infinity());
        }
      }
      ASSERT_TRUE(paths_agree(*rig));
    }
    for (int64_t i = 0; i < 10; ++i) {
      EXPECT_EQ(backward.output("grad_logits").bits(i), 0u);
      EXPECT_EQ(forward.output("loss").bits(i / 5), 0u);
    }
  }
}

TEST(CrossEntropyTest, NoRowsIsLegal) {
  for (const int32_t dtype : kDtypes) {
    Rig forward = forward_rig(dtype, 0, 5, 0);
    Rig backward = backward_rig(dtype, 0, 5, 0);
    EXPECT_TRUE(paths_agree(forward));
    EXPECT_TRUE(paths_agree(backward));
  }
}

// A row alone gives the bits that it has among others.
TEST(CrossEntropyTest, RowsAreIndependent) {
  std::mt19937_64 random(94);
  Rig batch = forward_rig(FUSEDIFF_F32, 7, 100, 0.1);
  randomise(batch, random, false);
  batch.output("terms").absent = false;
  ASSERT_TRUE(paths_agree(batch));
  for (int64_t r = 0; r < 7; ++r) {
    Rig alone = forward_rig(FUSEDIFF_F32, 1, 100, 0.1);
    for (int64_t i = 0; i < 100; ++i) {
      alone.input("logits").put(i, batch.input("logits").get<float>(r * 100 + i));
    }
    alone.input("target").put(0, batch.input("target").get<int32_t>(r));
    ASSERT_TRUE(paths_agree(alone));
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(alone.output("terms").bits(i), batch.output("terms").bits(r * 4 + i));
    }
  }
}

// The f64 backward against the central difference of the f64 forward.
TEST(CrossEntropyTest, BackwardIsTheDerivative) {
  std::mt19937_64 random(95);
  constexpr int64_t kRows = 3, kClasses = 7;
  constexpr double kStep = 1e-5;
  for (const double smoothing : {0.0, 0.2}) {
    Rig forward = forward_rig(FUSEDIFF_F64, kRows, kClasses, smoothing);
    Rig backward = backward_rig(FUSEDIFF_F64, kRows, kClasses, smoothing);
    for (RigTensor& in : backward.inputs()) {
      random_values(in, random, 1.0, true);
    }
    for (int64_t r = 0; r < kRows; ++r) {
      forward.input("target").put_number(r, r == 1 ? -100 : static_cast<double>(2 * r));
      backward.input("target").put_number(r, r == 1 ? -100 : static_cast<double>(2 * r));
    }
    const auto total = [&] {
      EXPECT_TRUE(paths_agree(forward));
      double sum = 0;
      for (int64_t r = 0; r < kRows; ++r) {
        sum += forward.output("loss").number(r) * backward.input("grad_loss").number(r);
      }
      return sum;
    };
    for (int64_t i = 0; i < kRows * kClasses; ++i) {
      backward.input("logits").put_number(i, std::normal_distribution<double>(0, 1)(random));
      forward.input("logits").put_number(i, backward.input("logits").number(i));
    }
    (void)total();
    for (int64_t r = 0; r < kRows; ++r) {
      backward.input("lse").put_number(r, forward.output("lse").number(r));
    }
    ASSERT_TRUE(paths_agree(backward));
    for (int64_t i = 0; i < kRows * kClasses; ++i) {
      const double at = backward.input("logits").number(i);
      forward.input("logits").put_number(i, at + kStep);
      const double above = total();
      forward.input("logits").put_number(i, at - kStep);
      const double below = total();
      forward.input("logits").put_number(i, at);
      EXPECT_NEAR(backward.output("grad_logits").number(i), (above - below) / (2 * kStep), 1e-8) << i;
    }
  }
}

TEST(CrossEntropyTest, BrokenCallsAreRejected) {
  Rig label = forward_rig(FUSEDIFF_F32, 1, 3, 0);
  label.input("target").put(0, int32_t{3});
  for (const char* path : {"fused", "unfused"}) {
    EXPECT_EQ(label.run(*fusediff_target(), path), FUSEDIFF_REJECTED);
    EXPECT_EQ(label.error(), "target[0] is 3, not one of 3 classes or -100");
  }
  Rig smooth = backward_rig(FUSEDIFF_F32, 1, 3, 1);
  EXPECT_EQ(smooth.run(*fusediff_target(), "fused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(smooth.error(), "label_smoothing must be 0 or more and below 1");
}

TEST(CrossEntropyTest, SameBitsFromEveryCompiler) {
  const uint64_t golden[] = {0xde9155a39c41266du, 0x48845c717f75963eu, 0x9161074fee8907e2u, 0x1c95037d02ad38abu,
                             0xae478f0c3143d425u, 0x2a3950fc87eb71a0u, 0x469d1b7f47938f84u, 0xef40bbcaedcf18edu};
  for (size_t i = 0; i < 8; ++i) {
    const int32_t dtype = kDtypes[i / 2];
    Rig rig = i % 2 == 0 ? forward_rig(dtype, 5, 77, 0.1) : backward_rig(dtype, 5, 77, 0.1);
    uint64_t seed = 1;
    for (RigTensor& in : rig.inputs()) {
      if (in.name != "target") {
        counted_values(in, seed++);
      }
    }
    for (int64_t r = 0; r < 5; ++r) {
      rig.input("target").put_number(r, r == 1 ? -100 : static_cast<double>(19 * r));
    }
    ASSERT_TRUE(paths_agree(rig));
    EXPECT_EQ(digest(rig), golden[i]) << dtype_name(dtype) << i;
  }
}

}  // namespace
}  // namespace fusediff::builtin
