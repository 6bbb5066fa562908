#include "report/text_gradient.h"

#include <gtest/gtest.h>

#include <sstream>

namespace fusediff {
namespace {

// The facts of a public report: the backward drifts by 2e-2 from the derivative of its own forward.
Finding drifting() {
  Finding f;
  f.targets = {"mhc", "builtin"};
  f.paths = {"fused", "unfused"};
  f.sweeps = {{"grad_bias",
               12,
               {-0.012569, 0.010901},
               0.010901,
               0.010901,
               2e-12,
               {{0.2, 0.0112}, {0.1, 0.01098}, {0.005, 0.010902}}},
              {"grad_bias", 8, {0.277309, std::nullopt}, std::nullopt, 0.290012, 1e-9, {}},
              {"grad_phi", -1, {1, 2}, 2, 2, 1e-20, {}}};
  return f;
}

TEST(TextGradient, ShowsWhatEachGaveAndWhereTheQuotientSettles) {
  const std::string text = gradient_text(drifting());
  EXPECT_NE(text.find("derivative at grad_bias[12]: +0.010901 by central difference in f64"), std::string::npos)
      << text;
  EXPECT_NE(text.find("fused -0.012569 (opposite sign)"), std::string::npos) << text;
  EXPECT_NE(text.find("unfused +0.010901"), std::string::npos) << text;
  EXPECT_NE(text.find("mhc:fused: eps 0.2 +0.011200, 0.1 +0.010980, 0.005 +0.010902"), std::string::npos) << text;
  EXPECT_NE(text.find("grad_phi along a seeded direction"), std::string::npos) << text;
  EXPECT_EQ(text.find("+0.277309 (opposite"), std::string::npos) << text;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << line;
}

TEST(TextGradient, NoSweepIsNoText) { EXPECT_EQ(gradient_text({}), ""); }

}  // namespace
}  // namespace fusediff
