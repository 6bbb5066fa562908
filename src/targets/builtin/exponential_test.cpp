#include "builtin/exponential.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "builtin/exponential_rows.h"

namespace fusediff::builtin {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Distance of `got` from `truth` in units of the last place of a float there.
double ulp_error(float got, double truth) {
  if (std::abs(truth) > static_cast<double>(std::numeric_limits<float>::max())) {
    return std::isinf(got) ? 0 : 1e9;
  }
  const double step = std::ldexp(1.0, std::max(std::ilogb(truth), -126) - 23);
  return std::abs(static_cast<double>(got) - truth) / step;
}

double ulp_error(double got, long double truth) {
  const long double step = std::ldexp(1.0L, std::max(std::ilogb(truth), -1022) - 52);
  return static_cast<double>(std::abs(static_cast<long double>(got) - truth) / step);
}

TEST(ExponentialTest, FloatIsWithin501ThousandthsOfAUlp) {
  double worst_exp = 0;
  double worst_sigmoid = 0;
  // Every 997th float between -120 and 120, subnormals included.
  for (uint32_t bits = 0; bits < std::bit_cast<uint32_t>(120.0f); bits += 997) {
    for (const float x : {std::bit_cast<float>(bits), -std::bit_cast<float>(bits)}) {
      const double wide = static_cast<double>(x);
      worst_exp = std::max(worst_exp, ulp_error(exp(x), std::exp(wide)));
      const double truth = x < 0 ? std::exp(wide) / (1 + std::exp(wide)) : 1 / (1 + std::exp(-wide));
      worst_sigmoid = std::max(worst_sigmoid, ulp_error(sigmoid(x), truth));
    }
  }
  EXPECT_LE(worst_exp, 0.501);
  EXPECT_LE(worst_sigmoid, 0.501);
}

TEST(ExponentialTest, DoubleIsWithinItsBound) {
  double worst_exp = 0;
  double worst_sigmoid = 0;
  for (double x = -707; x < 709.7; x += 0.000917) {
    worst_exp = std::max(worst_exp, ulp_error(exp(x), std::exp(static_cast<long double>(x))));
    const long double truth = 1 / (1 + std::exp(-static_cast<long double>(x)));
    worst_sigmoid = std::max(worst_sigmoid, ulp_error(sigmoid(x), truth));
  }
  EXPECT_LE(worst_exp, 0.9);
  EXPECT_LE(worst_sigmoid, 2.5);
  // Subnormal results are rounded twice.
  for (double x = -745.1; x < -708; x += 0.00173) {
    EXPECT_LE(ulp_error(exp(x), std::exp(static_cast<long double>(x))), 1.5) << x;
  }
}

TEST(ExponentialTest, EndsAreDefined) {
  EXPECT_EQ(exp(0.0f), 1.0f);
  EXPECT_EQ(exp(-0.0f), 1.0f);
  EXPECT_EQ(exp(kInf), kInf);
  EXPECT_EQ(exp(-kInf), 0.0f);
  EXPECT_EQ(exp(88.73f), kInf);
  EXPECT_EQ(exp(-104.1f), 0.0f);
  EXPECT_TRUE(std::isnan(exp(kNan)));
  EXPECT_EQ(exp(0.0), 1.0);
  EXPECT_EQ(exp(static_cast<double>(kInf)), static_cast<double>(kInf));
  EXPECT_EQ(exp(-static_cast<double>(kInf)), 0.0);
  EXPECT_TRUE(std::isnan(exp(static_cast<double>(kNan))));
  EXPECT_EQ(sigmoid(kInf), 1.0f);
  EXPECT_EQ(sigmoid(-kInf), 0.0f);
  EXPECT_EQ(sigmoid(0.0f), 0.5f);
  EXPECT_EQ(sigmoid(18.0f), 1.0f);
  EXPECT_TRUE(std::isnan(sigmoid(kNan)));
  EXPECT_TRUE(std::isnan(sigmoid(static_cast<double>(kNan))));
}

template <class A>
void expect_rows_as_elements() {
  std::vector<A> values = {A(kInf), -A(kInf), A(kNan), A(-0.0)};
  for (int i = -20000; i < 20000; ++i) {
    values.push_back(static_cast<A>(i) * A(0.0371));
  }
  std::vector<A> exps = values;
  std::vector<A> sigmoids = values;
  exp_row(exps.data(), static_cast<int64_t>(exps.size()));
  sigmoid_row(sigmoids.data(), static_cast<int64_t>(sigmoids.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    const volatile A one = values[i];
    const A exp_alone = exp(A{one});
    const A sigmoid_alone = sigmoid(A{one});
    const bool nan = std::isnan(one);
    ASSERT_TRUE(nan ? std::isnan(exps[i]) : std::memcmp(&exp_alone, &exps[i], sizeof(A)) == 0) << values[i];
    ASSERT_TRUE(nan ? std::isnan(sigmoids[i]) : std::memcmp(&sigmoid_alone, &sigmoids[i], sizeof(A)) == 0) << values[i];
  }
}

TEST(ExponentialTest, RowsGiveTheBitsOfSingleElements) {
  expect_rows_as_elements<float>();
  expect_rows_as_elements<double>();
}

}  // namespace
}  // namespace fusediff::builtin
