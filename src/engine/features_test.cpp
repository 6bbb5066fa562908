// Feedback that only a finding gives.
#include <gtest/gtest.h>

#include "engine/toy_target.h"

namespace fusediff {
namespace {

std::uint8_t margin(double off, const std::string& more) {
  toy::Toy toy(toy::one_to_one(more));
  toy.paths["unfused"] = toy::each([](double x) { return x; });
  toy.paths["fused"] = [off](const fusediff_call& call) {
    const bool wide = call.outputs[0].dtype == FUSEDIFF_F64;
    return toy::each([&](double x) { return wide ? x : x + off; })(call);
  };
  CheckOptions options = toy::quick();
  options.feedback = true;
  Engine engine(toy::fused_against_unfused(toy), options);
  const Result<CheckResult> result = engine.check(toy::ones());
  EXPECT_TRUE(result.ok());
  return result->features.margin;
}

TEST(Features, TheMarginSaysHowNearAnErrorIsToItsBound) {
  const std::string bound = R"(, "bound": {"ulp": "8", "of": "element", "why": "a test"})";
  EXPECT_EQ(margin(0, bound), 255);
  EXPECT_EQ(margin(0x1p-23, bound), 3);
  EXPECT_EQ(margin(0x1p-22, bound), 2);
  EXPECT_EQ(margin(0x1p-12, bound), 0);
  EXPECT_EQ(margin(0x1p-22, ""), 255);
}

}  // namespace
}  // namespace fusediff
