#include "engine/minimize.h"

#include <limits>
#include <stdexcept>

#include "engine/toy_target.h"

namespace fusediff {
namespace {

using namespace toy;

// y [T, N] from x [T, N] and an optional w [N]; gain is off its default in the cases below.
constexpr const char* kOp = R"({"name": "op", "paths": ["fused", "unfused"],
    "dims": {"T": {"range": [0, 64]}, "N": {"range": [0, 256]}},
    "attrs": [{"name": "gain", "float": [0.5, 4.0], "default": 1.0}],
    "inputs": [{"name": "x", "shape": ["T", "N"], "dtype": ["f32"], "layout": "any"},
               {"name": "w", "shape": ["N"], "dtype": "=x", "optional": true}],
    "outputs": [{"name": "y", "shape": ["T", "N"], "dtype": "=x", "layout": "any", "stage": 1},
                {"name": "z", "shape": ["T"], "dtype": "=x", "stage": 2, "optional": true}]})";

// What the fused path adds to y[t, n]; 0: nothing.
using Fault = std::function<double(const fusediff_call&, std::int64_t t, std::int64_t n)>;

Path path(const Fault& fault) {
  return [fault](const fusediff_call& call) {
    const fusediff_tensor& y = out(call, "y");
    for (std::int64_t t = 0; t < y.shape[0]; ++t) {
      double sum = 0;
      for (std::int64_t n = 0; n < y.shape[1]; ++n) {
        const double x = get(in(call, "x"), t * y.shape[1] + n);
        set(y, t * y.shape[1] + n, x + 1 + fault(call, t, n));
        sum += x;
      }
      if (out(call, "z").data != nullptr) set(out(call, "z"), t, sum);
    }
    return FUSEDIFF_OK;
  };
}
double none(const fusediff_call&, std::int64_t, std::int64_t) { return 0; }

Case large() {
  return case_of(R"({"fusediff_case": 1, "op": "op", "dims": {"T": 20, "N": 100}, "dtypes": {"x": "f32"},
      "attrs": {"gain": 2.0},
      "inputs": {"x": {"fill": {"normal": {"mean": 0, "std": 1}, "seed": 9}, "set": {"1750": 777}},
                 "w": {"fill": {"uniform": [1, 2], "seed": 4}}},
      "layout": {"x": {"stride": [110, 1], "place": "middle"}, "y": {"stride": [200, 2]}}})");
}

class Minimize : public testing::Test {
 protected:
  Minimize() { toy.paths = {{"fused", path(none)}, {"unfused", path(none)}}; }

  Minimized minimized(const Case& c, MinimizeOptions options = {}) {
    Engine engine(fused_against_unfused(toy), quick());
    const Result<CheckResult> before = engine.check(c);
    EXPECT_TRUE(before.ok() && before->verdict.finding);
    const Result<Minimized> result = minimize(engine, c, options);
    if (!result.ok()) {
      ADD_FAILURE() << result.error().what;
      return {};
    }
    EXPECT_TRUE(result->finished);
    if (before.ok() && before->verdict.finding) {
      EXPECT_EQ(signature_of(result->finding), signature_of(*before->verdict.finding));
    }
    const Verdict again = verdict_of(engine, result->smallest);
    EXPECT_TRUE(again.finding && signature_of(*again.finding) == signature_of(result->finding)) << in_short(again);
    return *result;
  }

  Toy toy{kOp};
};

TEST_F(Minimize, AllThatDoesNotMatterGoes) {
  toy.paths["fused"] = path([](const fusediff_call&, std::int64_t, std::int64_t n) { return n == 2 ? 50 : 0; });
  const Minimized result = minimized(large());
  const Case& c = result.smallest;
  EXPECT_EQ(c.dims.at("T"), 1);
  EXPECT_EQ(c.dims.at("N"), 3);
  EXPECT_TRUE(c.attrs.empty());
  EXPECT_TRUE(c.layout.empty());
  EXPECT_FALSE(c.inputs.contains("w"));
  EXPECT_EQ(c.inputs.at("x").fill.kind, FillKind::kConstant);
  EXPECT_TRUE(c.inputs.at("x").set.empty());
  EXPECT_NE(std::find(result.notes.begin(), result.notes.end(), "passes with N = 2, fails with N = 3"),
            result.notes.end());
  EXPECT_GT(result.checks, 10);
}

TEST_F(Minimize, TheValueThatMattersStaysAndMovesWithItsColumn) {
  const Fault at_777 = [](const fusediff_call& call, std::int64_t t, std::int64_t n) {
    return get(in(call, "x"), t * in(call, "x").shape[1] + n) >= 700 ? 50 : 0;
  };
  toy.paths["fused"] = path(at_777);
  const Case c = minimized(large()).smallest;
  EXPECT_EQ(c.dims.at("T"), 1);
  EXPECT_EQ(c.dims.at("N"), 1);
  const InputValue& x = c.inputs.at("x");
  const double value =
      x.set.empty() ? (x.fill.constant.kind == Literal::Kind::kInteger ? static_cast<double>(x.fill.constant.integer)
                                                                       : x.fill.constant.real)
                    : x.set.at(0).real;
  EXPECT_GE(value, 700);
  EXPECT_LE(value, 777);
}

TEST_F(Minimize, AValueThatMattersSurvivesInACaseTooLargeToWriteOut) {
  Toy wide(
      R"({"name": "op", "paths": ["fused", "unfused"], "dims": {"T": {"range": [0, 4096]}, "N": {"range": [0, 4096]}},
      "inputs": [{"name": "x", "shape": ["T", "N"], "dtype": ["f32"]}],
      "outputs": [{"name": "y", "shape": ["T", "N"], "dtype": "=x"}]})");
  wide.paths = {{"unfused", each([](double x) { return x; })},
                {"fused", each([](double x) { return x >= 700 ? 1 : x; })}};
  Engine engine(fused_against_unfused(wide), quick());
  const Case c = case_of(R"({"fusediff_case": 1, "op": "op", "dims": {"T": 300, "N": 300}, "dtypes": {"x": "f32"},
      "inputs": {"x": {"fill": {"constant": 1}, "set": {"89999": 777}}}})");
  const Result<Minimized> result = minimize(engine, c, {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->smallest.dims.at("T"), 1);
  EXPECT_EQ(result->smallest.dims.at("N"), 1);
}

TEST_F(Minimize, AnAttributeOrInputThatMattersStays) {
  toy.paths["fused"] = path([](const fusediff_call& call, std::int64_t, std::int64_t) {
    return attr(call, "gain") == 2 && in(call, "w").data != nullptr ? 50 : 0;
  });
  const Case c = minimized(large()).smallest;
  EXPECT_EQ(std::get<double>(c.attrs.at("gain")), 2.0);
  EXPECT_TRUE(c.inputs.contains("w"));
  EXPECT_EQ(c.dims.at("T"), 1);
  EXPECT_EQ(c.dims.at("N"), 1);
}

TEST_F(Minimize, ALayoutThatMattersStays) {
  toy.paths["fused"] = path([](const fusediff_call& call, std::int64_t, std::int64_t) {
    return in(call, "x").stride[0] != in(call, "x").shape[1] ? 50 : 0;
  });
  const Case c = minimized(large()).smallest;
  EXPECT_TRUE(c.layout.contains("x"));
  EXPECT_FALSE(c.layout.contains("y"));
}

TEST_F(Minimize, NeverEndsInAnotherBug) {
  // Damage in wide rows; and, in the same operator, an exception for narrow ones.
  toy.paths["fused"] = [](const fusediff_call& call) {
    if (call.inputs[0].shape[1] < 6) throw std::runtime_error("narrow");
    return path([](const fusediff_call&, std::int64_t, std::int64_t n) { return n == 5 ? 50 : 0; })(call);
  };
  const Minimized result = minimized(large());
  EXPECT_EQ(result.finding.cls, FindingClass::kDamage);
  EXPECT_EQ(result.smallest.dims.at("N"), 6);
}

TEST_F(Minimize, NeverEndsInAMilderClassOfTheSameOutput) {
  // Damage for large values, rounding for small ones.
  toy.paths["fused"] = path([](const fusediff_call& call, std::int64_t t, std::int64_t n) {
    const double x = get(in(call, "x"), t * in(call, "x").shape[1] + n);
    return x >= 700 ? 50 : 0x1p-23;
  });
  const Minimized result = minimized(large());
  EXPECT_EQ(result.finding.cls, FindingClass::kDamage);
}

TEST_F(Minimize, WhatIsKnownIsExplainedAnewBeforeItIsBelieved) {
  toy.paths["fused"] = path([](const fusediff_call& call, std::int64_t t, std::int64_t n) {
    const double x = get(in(call, "x"), t * in(call, "x").shape[1] + n);
    return x >= 700 ? 50 : 0x1p-23;
  });
  CheckOptions options = quick();
  options.is_known = [](const std::string&) { return true; };
  Engine engine(fused_against_unfused(toy), options);
  ASSERT_EQ(in_short(verdict_of(engine, large())), "damage y");
  const Result<Minimized> result = minimize(engine, large(), {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->finding.cls, FindingClass::kDamage);
  EXPECT_EQ(in_short(engine.check(result->smallest, true)->verdict), "damage y");
}

TEST_F(Minimize, AFlakyFindingNeedsItsShareOfTries) {
  int runs = 0;
  toy.paths["fused"] = path([&runs](const fusediff_call& call, std::int64_t t, std::int64_t n) {
    if (t == 0 && n == 0) ++runs;
    return runs % 3 == 0 && n == call.outputs[0].shape[1] - 1 && call.outputs[0].shape[1] > 3 ? 50 : 0;
  });
  Engine engine(fused_against_unfused(toy), quick());
  MinimizeOptions options;
  options.tries = 12;
  options.needed = 1;
  const Result<Minimized> result = minimize(engine, large(), options);
  ASSERT_TRUE(result.ok()) << result.error().what;
  EXPECT_EQ(result->finding.cls, FindingClass::kNondeterminism);
  EXPECT_EQ(result->smallest.dims.at("N"), 4);
}

TEST_F(Minimize, ACaseThatIsNoFindingIsTheUsersError) {
  Engine engine(fused_against_unfused(toy), quick());
  const Result<Minimized> result = minimize(engine, large(), {});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().what, "nothing to minimise: the case gives pass, not a finding");
}

TEST_F(Minimize, AnOutputThatIsUnwantedIsWantedAgain) {
  toy.paths["fused"] = path([](const fusediff_call&, std::int64_t, std::int64_t) { return 50; });
  Case c = large();
  c.unwanted = {"z"};
  EXPECT_TRUE(minimized(c).smallest.unwanted.empty());
}

TEST_F(Minimize, AnEmptyOutputThatFailsIsTheSmallestCase) {
  toy.paths["fused"] = [](const fusediff_call&) -> fusediff_status { throw std::runtime_error("always"); };
  const Case c = minimized(large()).smallest;
  EXPECT_EQ(c.dims.at("T"), 0);
  EXPECT_EQ(c.dims.at("N"), 0);
}

TEST_F(Minimize, TheTimeCapIsSaid) {
  toy.paths["fused"] = path([](const fusediff_call&, std::int64_t, std::int64_t) { return 50; });
  Engine engine(fused_against_unfused(toy), quick());
  MinimizeOptions options;
  options.seconds = 0;
  const Result<Minimized> result = minimize(engine, large(), options);
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->finished);
  EXPECT_EQ(result->smallest, large());
}

}  // namespace
}  // namespace fusediff
