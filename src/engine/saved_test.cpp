// Saved and given tensors: computed once by the producer's unfused path, anew in f64 for the truth.
#include <cmath>

#include "engine/toy_target.h"

namespace fusediff {
namespace {

using namespace toy;

constexpr double kUlp = 0x1p-23;

// Forward: h = x / 3 (rounded), of a size that follows from x. Backward: y = g * h, of x's gradient.
constexpr const char* kOps = R"({"name": "forward", "paths": ["fused", "unfused"], "dims": {"M": {"range": [0, 64]}},
    "attrs": [{"name": "by", "float": [1.0, 8.0], "default": 3.0}],
    "inputs": [{"name": "in", "shape": ["M"], "dtype": ["f32"]}],
    "outputs": [{"name": "h", "shape": ["M"], "dtype": "=in"}]},
  {"name": "op", "paths": ["fused", "unfused"], "dims": {"N": {"range": [0, 64]}},
    "attrs": [{"name": "by", "float": [1.0, 8.0], "default": 3.0}],
    "given": [{"name": "x", "shape": ["N"], "dtype": ["f32"]}],
    "inputs": [{"name": "g", "shape": ["N"], "dtype": "=x"},
               {"name": "h", "shape": ["N"], "dtype": "=x",
                "saved": {"op": "forward", "output": "h", "inputs": {"in": "x"}}}],
    "outputs": [{"name": "y", "shape": ["N"], "dtype": "=x", "bound": {"ulp": "2", "of": "element", "why": "a test"}}]})";

Path backward(double error = 0) {
  return [error](const fusediff_call& call) {
    for (std::int64_t i = 0; i < count(out(call, "y")); ++i)
      set(out(call, "y"), i, get(in(call, "g"), i) * get(in(call, "h"), i) + error);
    return FUSEDIFF_OK;
  };
}

class Saved : public testing::Test {
 protected:
  Saved() {
    toy.paths = {
        {"op:fused", backward()}, {"op:unfused", backward()}, {"forward:unfused", [this](const fusediff_call& call) {
                                                                 ++forwards;
                                                                 by = attr(call, "by");
                                                                 return each([this](double x) { return x / by; })(call);
                                                               }}};
  }
  static Case plain(const std::string& inputs = "", const std::string& members = "") {
    return case_of(R"({"fusediff_case": 1, "op": "op", "dims": {"N": 4}, "dtypes": {"x": "f32"}, "inputs": {
        "x": {"fill": {"ramp": [1, 4]}}, "g": {"fill": {"constant": 1}})" +
                   inputs + "}" + members + "}");
  }
  Toy toy{kOps};
  int forwards = 0;
  double by = 0;
};

TEST_F(Saved, BothSidesGetWhatTheUnfusedProducerComputedOnce) {
  Engine engine(fused_against_unfused(toy), quick());
  EXPECT_EQ(in_short(verdict_of(engine, plain())), "pass");
  EXPECT_EQ(forwards, 1);
  const std::vector<Engine::Captured> inputs = engine.captured_inputs();
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(inputs[1].name, "h");
  EXPECT_EQ(load_bits(DType::kF32, inputs[1].bytes.data() + 4), round_to_bits(DType::kF32, 2.0 / 3.0));
}

TEST_F(Saved, AttributesOfTheSameNameReachTheProducer) {
  EXPECT_EQ(in_short(check(toy, plain("", R"(, "attrs": {"by": 5.0})"))), "pass");
  EXPECT_EQ(by, 5);
}

TEST_F(Saved, BitsMayOverrideIt) {
  EXPECT_EQ(in_short(check(toy, plain(R"(, "h": {"fill": {"bits": "AACAPwAAgD8AAIA/AACAPw=="}})"))), "pass");
  EXPECT_EQ(forwards, 0);
}

TEST_F(Saved, ForTheTruthItIsComputedAnewInF64) {
  // y = g * h with h = x / 3: against a truth from a widened h the error of 2 ULP stays within 2; so it does not tell.
  // A fused side that is exact against the rounded h is off by h's own rounding against the f64 h: at most half an ULP.
  toy.paths["op:fused"] = backward(kUlp);
  int wide = 0;
  const Path forward = toy.paths["forward:unfused"];
  toy.paths["forward:unfused"] = [&wide, forward](const fusediff_call& call) {
    wide += call.inputs[0].dtype == FUSEDIFF_F64 ? 1 : 0;
    return forward(call);
  };
  const Verdict verdict = check(toy, plain());
  ASSERT_TRUE(verdict.finding) << verdict.reason;
  EXPECT_EQ(wide, 1);
  EXPECT_EQ(in_short(verdict), "damage y");  // 1 ULP at 1 is several at 1/3
  const std::array<double, 2> error = *verdict.finding->differences[0].error;
  EXPECT_GT(error[1], 0);     // the rounding of h shows against the f64 h
  EXPECT_LE(error[1], 0.51);  // and is no more than that
}

TEST_F(Saved, AProducerThatFailsIsASkip) {
  toy.paths["forward:unfused"] = [](const fusediff_call&) {
    Toy::message() = "too small";
    return FUSEDIFF_FAILED;
  };
  const Verdict verdict = check(toy, plain());
  EXPECT_EQ(in_short(verdict), "skip");
  EXPECT_EQ(verdict.reason, "cannot compute the saved tensor h by forward: too small");
}

TEST_F(Saved, TheFallbackProducesWhatTheSidesDoNotOffer) {
  const std::string all = kOps;
  Toy only_backward(all.substr(all.find(R"({"name": "op")")), "narrow");
  only_backward.paths = toy.paths;
  only_backward.paths.erase("forward:unfused");
  Comparison comparison = fused_against_unfused(only_backward);
  EXPECT_EQ(check(comparison, plain()).reason,
            "cannot compute the saved tensor h by forward: no target here offers it with a path unfused");
  comparison.fallback = &toy.target;
  EXPECT_EQ(in_short(check(comparison, plain())), "pass");
  EXPECT_EQ(forwards, 1);
}

}  // namespace
}  // namespace fusediff
