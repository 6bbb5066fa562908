#include "builtin/logarithm.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "builtin/last_place.h"

namespace fusediff::builtin {
namespace {

TEST(LogarithmTest, DoubleIsWithinOneUlp) {
  double worst = 0;
  const auto look = [&](double x) {
    const long double truth = std::log(static_cast<long double>(x));
    const double error = static_cast<double>(std::abs(static_cast<long double>(log(x)) - truth));
    worst = std::max(worst, error / spacing(FUSEDIFF_F64, static_cast<double>(truth)));
  };
  for (double x = 0.3; x < 3; x += 1.7e-6) {
    look(x);
  }
  // Around 1, where the result is small, and through all exponents, subnormals included.
  for (double d = 1e-16; d < 0.5; d *= 1.0003) {
    look(1 + d);
    look(1 - d);
  }
  for (uint64_t bits = 1; bits < std::bit_cast<uint64_t>(std::numeric_limits<double>::max());
       bits += 9007199254740881u) {
    look(std::bit_cast<double>(bits));
  }
  EXPECT_LE(worst, 1.0);
}

TEST(LogarithmTest, FloatIsWithin501ThousandthsOfAUlp) {
  double worst = 0;
  for (uint32_t bits = 1; bits < std::bit_cast<uint32_t>(std::numeric_limits<float>::max()); bits += 997) {
    const float x = std::bit_cast<float>(bits);
    const double truth = std::log(static_cast<double>(x));
    const double error = std::abs(static_cast<double>(log(x)) - truth);
    worst = std::max(worst, error / spacing(FUSEDIFF_F32, truth));
  }
  EXPECT_LE(worst, 0.501);
}

TEST(LogarithmTest, EndsAreDefined) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(log(1.0), 0.0);
  EXPECT_EQ(log(1.0f), 0.0f);
  EXPECT_FALSE(std::signbit(log(1.0f)));
  EXPECT_EQ(log(0.0), -kInf);
  EXPECT_EQ(log(-0.0), -kInf);
  EXPECT_EQ(log(kInf), kInf);
  EXPECT_TRUE(std::isnan(log(-1.0)));
  EXPECT_TRUE(std::isnan(log(-kInf)));
  EXPECT_TRUE(std::isnan(log(std::numeric_limits<double>::quiet_NaN())));
  EXPECT_EQ(log(std::numeric_limits<float>::infinity()), std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace fusediff::builtin
