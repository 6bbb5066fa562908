// The kernels' arithmetic against the kit's and the built-in operators': equal bits.
#include "cuda/arithmetic.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "builtin/exponential.h"
#include "builtin/lanes.h"

namespace fusediff::cuda {
namespace {

template <class T>
bool same(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class T>
class NarrowTest : public testing::Test {};
using NarrowTypes = testing::Types<Half, BFloat16, F8E4M3, F8E5M2>;
TYPED_TEST_SUITE(NarrowTest, NarrowTypes);

TYPED_TEST(NarrowTest, EveryValueDecodesAsInTheKit) {
  for (uint32_t bits = 0; bits < 1u << (8 * sizeof(TypeParam)); ++bits) {
    const TypeParam value{static_cast<typename TypeParam::bits_type>(bits)};
    ASSERT_TRUE(same(as_dtype<float>(value), kit::convert<float>(value))) << bits;
    ASSERT_TRUE(same(as_dtype<double>(value), kit::convert<double>(value))) << bits;
  }
}

// Every sign, exponent and leading digits, with low digits at, beside and between the ties.
TYPED_TEST(NarrowTest, EncodesAsTheKit) {
  for (uint32_t high = 0; high < 1u << 16; ++high) {
    for (const uint32_t low : {0x0u, 0x1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      const float value = std::bit_cast<float>(high << 16 | low);
      ASSERT_EQ(as_dtype<TypeParam>(value).bits, kit::convert<TypeParam>(value).bits) << high << " " << low;
    }
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    const uint64_t exponent = 1023 - 160 + random() % 320;
    const double value = std::bit_cast<double>((random() & 0x800fffffffffffffu) | exponent << 52);
    ASSERT_EQ(as_dtype<TypeParam>(value).bits, kit::convert<TypeParam>(value).bits) << value;
  }
}

std::vector<double> interesting() {
  std::vector<double> all = {0.0,         -0.0,  1e-40,  -1e-40, 5e-324, 88.72,
                             -103.9,      709.7, -745.2, 1e308,  -1e308, std::numeric_limits<double>::infinity(),
                             std::nan("")};
  all.push_back(-all[11]);
  std::mt19937_64 random(2);
  for (const double spread : {1.0, 20.0, 800.0}) {
    std::normal_distribution<double> normal(0, spread);
    for (int i = 0; i < 100000; ++i) {
      all.push_back(normal(random));
    }
  }
  return all;
}

TEST(ArithmeticTest, ExponentialsAreThoseOfTheBuiltInOperators) {
  for (const double wide : interesting()) {
    const float narrow = static_cast<float>(wide);
    ASSERT_TRUE(same(exponential(wide), builtin::exp(wide)) || std::isnan(wide)) << wide;
    ASSERT_TRUE(same(sigmoid(wide), builtin::sigmoid(wide)) || std::isnan(wide)) << wide;
    ASSERT_TRUE(same(exponential(narrow), builtin::exp(narrow)) || std::isnan(wide)) << wide;
    ASSERT_TRUE(same(sigmoid(narrow), builtin::sigmoid(narrow)) || std::isnan(wide)) << wide;
  }
  EXPECT_TRUE(std::isnan(exponential(std::nanf(""))) && std::isnan(sigmoid(std::nan(""))));
}

TEST(ArithmeticTest, KeysOrderAsValuesDoWithNanLeast) {
  const std::vector<double> all = interesting();
  for (size_t i = 1; i < all.size(); ++i) {
    const double a = all[i - 1], b = all[i];
    ASSERT_EQ(order_key(a) < order_key(b), std::isnan(a) ? !std::isnan(b) : a < b) << a << " " << b;
  }
  EXPECT_EQ(order_key(0.0), order_key(-0.0));
}

TEST(ArithmeticTest, LanesFoldAsInTheBuiltInOperators) {
  std::mt19937_64 random(3);
  std::normal_distribution<float> normal;
  for (int i = 0; i < 1000; ++i) {
    float lanes[kLanes];
    for (float& lane : lanes) {
      lane = normal(random);
    }
    const float mine = fold_lanes(lanes);
    ASSERT_EQ(mine, builtin::fold_lanes(lanes));
  }
}

}  // namespace
}  // namespace fusediff::cuda
