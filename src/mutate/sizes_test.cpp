#include "mutate/sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "mutate/schemas_test.h"

namespace fusediff {
namespace {

TEST(Sizes, ReachTheEdgesOfEveryTileAndPowerOfTwo) {
  Rng rng(1);
  std::set<std::int64_t> seen;
  std::int64_t zeros = 0;
  constexpr int kDraws = 400000;
  for (int i = 0; i < kDraws; ++i) {
    const std::int64_t size = draw_size(rng, 0, 4096);
    ASSERT_GE(size, 0);
    ASSERT_LE(size, 4096);
    seen.insert(size);
    zeros += size == 0;
  }
  for (std::int64_t size = 0; size <= 17; ++size) EXPECT_TRUE(seen.contains(size)) << size;
  for (const std::int64_t tile : {8, 16, 32, 64, 128, 256}) {
    for (std::int64_t multiple = tile; multiple <= std::max<std::int64_t>(1024, 16 * tile); multiple += tile) {
      for (const std::int64_t size : {multiple - 1, multiple, multiple + 1}) {
        if (size <= 4096) {
          EXPECT_TRUE(seen.contains(size)) << size;
        }
      }
    }
  }
  EXPECT_GT(zeros, kDraws / 12);
}

TEST(Sizes, StayInNarrowRanges) {
  Rng rng(2);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(draw_size(rng, 4, 4), 4);
    const std::int64_t size = draw_size(rng, 300, 302);
    EXPECT_GE(size, 300);
    EXPECT_LE(size, 302);
  }
}

TEST(Sizes, TypicalOnesAreHalf) {
  Rng rng(3);
  const DimRule rule{"E", 1, 2048, {67, 1999}};
  int typical = 0;
  for (int i = 0; i < 10000; ++i) {
    const std::int64_t size = draw_dim(rule, rng);
    typical += size == 67 || size == 1999;
  }
  EXPECT_GT(typical, 4800);
  EXPECT_LT(typical, 5600);
}

TEST(Sizes, AttributesReachDefaultsEndsAndListedValues) {
  Workbench bench(kGating, 4);
  const Operator& op = bench.context.op;
  std::set<std::string> choices;
  std::set<std::int64_t> bools;
  std::set<double> factors, epsilons;
  bool absent = false;
  for (int i = 0; i < 4000; ++i) {
    if (const auto value = draw_attr(*op.attr("norm_type"), bench.rng)) choices.insert(std::get<std::string>(*value));
    if (const auto value = draw_attr(*op.attr("renorm"), bench.rng)) bools.insert(std::get<std::int64_t>(*value));
    if (const auto value = draw_attr(*op.attr("eps"), bench.rng)) epsilons.insert(std::get<double>(*value));
    const auto factor = draw_attr(*op.attr("routed_scaling_factor"), bench.rng);
    absent = absent || !factor;
    if (factor) factors.insert(std::get<double>(*factor));
  }
  EXPECT_EQ(choices, (std::set<std::string>{"sigmoid", "softmax"}));
  EXPECT_EQ(bools, (std::set<std::int64_t>{0, 1}));
  EXPECT_TRUE(absent);
  EXPECT_EQ(*factors.begin(), 0.0);
  EXPECT_EQ(*++factors.begin(), 0.5);
  EXPECT_EQ(*factors.rbegin(), 4.0);
  EXPECT_EQ(*epsilons.begin(), 1e-20);
  EXPECT_EQ(*epsilons.rbegin(), 1e-3);
  // Log scale: every decade is met.
  for (double decade = 1e-19; decade < 1e-3; decade *= 10) {
    const auto at = epsilons.lower_bound(decade);
    ASSERT_NE(at, epsilons.end());
    EXPECT_LT(*at, decade * 10);
  }
}

TEST(Sizes, ShrinkToBudgetAndStayInRange) {
  Workbench bench(kGating, 5);
  Case c;
  for (int i = 0; i < 500; ++i) {
    CaseScope scope(c, bench.context.op);
    scope.dims() = {4096, 2048, 64, 16, 16};
    ASSERT_TRUE(shrink_dims(c, scope, 20000, kTestBytes, bench.rng));
    const auto volume = volume_of(c, scope);
    ASSERT_TRUE(volume);
    EXPECT_LE(volume->elements, 20000u);
    // Dims that no shape follows stay.
    EXPECT_EQ(scope.dims()[3], 16);
    for (std::size_t dim = 0; dim < 3; ++dim) EXPECT_GE(scope.dims()[dim], 1);
  }
}

}  // namespace
}  // namespace fusediff
