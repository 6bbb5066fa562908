#include "oracle/gradient.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "oracle/hand_made.h"

namespace fusediff {
namespace {

using Function = std::function<double(double)>;

std::array<DifferenceStep, kDifferenceSteps> steps_of(const Function& f, double x, double first) {
  std::array<DifferenceStep, kDifferenceSteps> steps;
  for (DifferenceStep& d : steps) {
    d.step = first;
    d.slope = (f(x + first) - f(x - first)) / (2 * first);
    d.bend = (f(x + first) - 2 * f(x) + f(x - first)) / first;
    d.bends = std::abs(d.bend);
    d.magnitude = std::abs(f(x));
    first /= 2;
  }
  return steps;
}
std::optional<Quotient> settled(const Function& f, double x, double first = 0x1p-7, double noise = 0) {
  return settle(steps_of(f, x, first), noise);
}

TEST(Settle, ASmoothFunctionIsKnownToWithinItsStatedError) {
  const std::vector<std::pair<Function, Function>> smooth = {
      {[](double x) { return std::exp(x); }, [](double x) { return std::exp(x); }},
      {[](double x) { return x * x * x; }, [](double x) { return 3 * x * x; }},
      {[](double x) { return std::sin(8 * x); }, [](double x) { return 8 * std::cos(8 * x); }},
      {[](double x) { return 1 / (1 + std::exp(-x)); },
       [](double x) { return std::exp(-x) / ((1 + std::exp(-x)) * (1 + std::exp(-x))); }},
      {[](double x) { return 1 / std::sqrt(x * x + 1e-6); },
       [](double x) { return -x * std::pow(x * x + 1e-6, -1.5); }}};
  for (std::size_t f = 0; f < smooth.size(); ++f) {
    for (double x = 0.3; x < 4; x += 0.1) {
      const std::optional<Quotient> q = settled(smooth[f].first, x);
      ASSERT_TRUE(q);
      EXPECT_LE(std::abs(q->value - smooth[f].second(x)), q->error) << f << " " << x;
      EXPECT_LT(q->error, 1e-6 * (1 + std::abs(q->value))) << f << " " << x;
      EXPECT_FALSE(contradicts(smooth[f].second(x), *q, 0));
      EXPECT_TRUE(contradicts(smooth[f].second(x) * 1.001 + 1e-5, *q, 0)) << f << " " << x;
    }
  }
}

// Wherever the kink lies between the steps, either side's slope stays within the error.
TEST(Settle, AKinkIsNoContradiction) {
  const double first = 0x1p-7;
  for (double at = -1.5; at <= 1.5; at += 0.003) {
    const double kink = at * first;
    const std::optional<Quotient> q = settled([&](double x) { return std::max(x - kink, 0.0); }, 0, first);
    ASSERT_TRUE(q);
    const double right = kink < 0 ? 1 : 0;
    EXPECT_FALSE(tells(*q, right) && contradicts(right, *q, 0)) << at << " " << q->value << " " << q->error;
  }
  const std::optional<Quotient> exact = settled([](double x) { return std::abs(x); }, 0);
  EXPECT_FALSE(tells(*exact, 1) && contradicts(1, *exact, 0));
}

TEST(Settle, AJumpIsNoContradiction) {
  for (double at = -1.5; at <= 1.5; at += 0.003) {
    const double jump = at * 0x1p-7;
    const std::optional<Quotient> q = settled([&](double x) { return x + (x > jump ? 1 : 0); }, 0);
    EXPECT_FALSE(q && tells(*q, 1) && contradicts(1, *q, 0)) << at;
  }
}

// A sigmoid so steep that every step is far outside of where it rises.
TEST(Settle, ABendOnAShorterScaleThanTheStepsIsNoContradiction) {
  for (const double steepness : {1e5, 1e8, 1e12}) {
    const std::optional<Quotient> q = settled([&](double x) { return std::tanh(steepness * x); }, 0);
    EXPECT_FALSE(q && tells(*q, steepness) && contradicts(steepness, *q, 0)) << steepness;
  }
}

TEST(Settle, NoiseWidensTheError) {
  const Function f = [](double x) { return x * x; };
  EXPECT_LT(settled(f, 1)->error, 1e-9);
  EXPECT_GT(settled(f, 1, 0x1p-7, 1e-6)->error, 1e-4);
  EXPECT_FALSE(tells({1, 0.2, true, 1e300}, 1));
  EXPECT_TRUE(tells({0, 1e-9, true, 1e300}, 1));
  EXPECT_TRUE(tells({0, 0, true, 1e300}, 0));
}

TEST(Settle, WhatIsNotFiniteIsNotJudged) {
  EXPECT_FALSE(settled([](double x) { return std::log(x); }, 0));
  EXPECT_FALSE(contradicts(std::numeric_limits<double>::quiet_NaN(), {1, 0, true, 1e300}, 0));
}

struct Allowed : testing::Test {
  static HandMade made(const std::string& bound) {
    return HandMade(R"("dims": {"N": {"range": [0, 8]}}, "inputs": [{"name": "x", "shape": ["N"], "dtype": "f32"}],
        "outputs": [{"name": "y", "shape": ["N"], "dtype": "f32")" +
                        bound + "}]",
                    {{"N", 2}});
  }
  const OutputTruth truth{{1, 0x1p-10}, {}};
  const std::vector<double> sensitivity{1, 8};
  const std::vector<double> natural{1, 1};
};

TEST_F(Allowed, AStatedBoundIsTakenAtItsScale) {
  const HandMade h = made(R"(, "bound": {"ulp": "3", "of": "row_max", "why": "a test"})");
  const Bytes against = elements(DType::kF32, {1, 0});
  for (const Side side : kSides) {
    EXPECT_EQ(allowed_of_path(h.call, 0, side, against, truth, sensitivity, natural),
              (std::vector<double>{3 * 0x1p-23, 3 * 0x1p-23}));
  }
  EXPECT_EQ(allowed_without_truth(h.call, 0, elements(DType::kF32, {2, 0})), 3 * 0x1p-22);
}

TEST_F(Allowed, WithoutABoundTheTargetIsHeldAgainstTheOtherSide) {
  const HandMade h = made("");
  const Bytes against = elements(DType::kF32, {1 + 0x1p-22, 0x1p-10});  // 2 ULP off
  const std::vector<double> allowed = allowed_of_path(h.call, 0, Side::kTarget, against, truth, sensitivity, natural);
  EXPECT_EQ(allowed, (std::vector<double>{8 * 0x1p-23, 8 * 0x1p-33}));
  const Bytes infinite = elements(DType::kF32, {std::numeric_limits<double>::infinity(), 0});
  EXPECT_TRUE(std::isinf(allowed_of_path(h.call, 0, Side::kTarget, infinite, truth, sensitivity, natural)[1]));
}

TEST_F(Allowed, WithoutABoundTheOtherSideMustBeGrosslyWrong) {
  const HandMade h = made("");
  const Bytes against = elements(DType::kF32, {1, 0});
  EXPECT_EQ(allowed_of_path(h.call, 0, Side::kAgainst, against, truth, sensitivity, natural),
            (std::vector<double>{0x1p-12, 0x1p-12}));
  const std::vector<double> shaky{1, 0x1p20};
  EXPECT_EQ(allowed_of_path(h.call, 0, Side::kAgainst, against, truth, shaky, natural)[1], 8 * 0x1p-24 * 0x1p20);
}

}  // namespace
}  // namespace fusediff
