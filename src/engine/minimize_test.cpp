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

bool has_note(const Minimized& result, const std::string& note) {
  if (std::find(result.notes.begin(), result.notes.end(), note) != result.notes.end()) return true;
  for (const std::string& other : result.notes) ADD_FAILURE() << "has: " << other;
  return false;
}

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
  EXPECT_TRUE(has_note(result, "passes with N = 2, fails with N = 3"));
  EXPECT_TRUE(has_note(result,
                       "does not matter: the size of T (the same at 7 sizes from 2 to 64); attribute gain; input w; "
                       "the values of x; the layout of x; the layout of y"));
  EXPECT_GT(result.checks, 10);
}

TEST_F(Minimize, TheNearestSizeThatPassesIsFoundFarAway) {
  // From 6 to 40, and nowhere else.
  toy.paths["fused"] = path([](const fusediff_call& call, std::int64_t, std::int64_t) {
    const std::int64_t n = call.inputs[0].shape[1];
    return n >= 6 && n <= 40 ? 50 : 0;
  });
  Case c = large();
  c.dims["N"] = 30;
  c.inputs["x"].set.clear();
  c.layout.clear();
  const Minimized result = minimized(c);
  EXPECT_EQ(result.smallest.dims.at("N"), 6);
  EXPECT_TRUE(has_note(result, "passes with N = 5, fails with N = 6"));
  EXPECT_TRUE(has_note(result, "passes with N = 41, fails with N = 6"));
}

TEST_F(Minimize, AnAttributeThatMattersIsNamedWithTheValueThatPasses) {
  toy.paths["fused"] =
      path([](const fusediff_call& call, std::int64_t, std::int64_t) { return attr(call, "gain") == 2 ? 50 : 0; });
  EXPECT_TRUE(has_note(minimized(large()), "passes with gain = 1, fails with gain = 2"));
}

TEST_F(Minimize, OfTwoEmptyDimsNoneIsSaidNotToMatter) {
  // The gradient of an empty batch is left as it was.
  Toy sum(R"({"name": "op", "paths": ["fused", "unfused"],
      "dims": {"B": {"range": [0, 8]}, "S": {"range": [0, 8]}, "N": {"range": [1, 8]}},
      "inputs": [{"name": "x", "shape": ["B", "S"], "dtype": ["f32"]}],
      "outputs": [{"name": "y", "shape": ["N"], "dtype": "=x"}]})");
  const auto run = [](bool leaves_empty) {
    return [leaves_empty](const fusediff_call& call) {
      const fusediff_tensor& x = in(call, "x");
      if (leaves_empty && x.shape[0] * x.shape[1] == 0) return FUSEDIFF_OK;
      for (std::int64_t n = 0; n < out(call, "y").shape[0]; ++n) set(out(call, "y"), n, 1);
      return FUSEDIFF_OK;
    };
  };
  sum.paths = {{"fused", run(true)}, {"unfused", run(false)}};
  Engine engine(fused_against_unfused(sum), quick());
  const Case c = case_of(R"({"fusediff_case": 1, "op": "op", "dims": {"B": 0, "S": 5, "N": 3}, "dtypes": {"x": "f32"},
      "inputs": {"x": {"fill": {"constant": 1}}}})");
  const Result<Minimized> result = minimize(engine, c, {});
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->smallest.dims.at("S"), 0);
  EXPECT_TRUE(has_note(*result, "passes with B = 1, S = 1, fails where one of B, S is 0"));
  for (const std::string& note : result->notes) EXPECT_EQ(note.find("the size of B"), std::string::npos) << note;
}

TEST_F(Minimize, DimsThatOneRuleTiesFallTogether) {
  Toy tied(R"({"name": "op", "paths": ["fused", "unfused"],
      "dims": {"A": {"range": [1, 64]}, "B": {"range": [1, 64]}, "C": {"range": [1, 64]}},
      "where": ["A == B", "B == C"],
      "inputs": [{"name": "x", "shape": ["A", "B"], "dtype": ["f32"]}],
      "outputs": [{"name": "y", "shape": ["A", "B"], "dtype": "=x"}]})");
  tied.paths = {{"fused", each([](double x) { return x + 50; })}, {"unfused", each([](double x) { return x; })}};
  Engine engine(fused_against_unfused(tied), quick());
  const Case c = case_of(R"({"fusediff_case": 1, "op": "op", "dims": {"A": 24, "B": 24, "C": 24},
      "dtypes": {"x": "f32"}, "inputs": {"x": {"fill": {"constant": 1}}}})");
  const Result<Minimized> result = minimize(engine, c, {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->smallest.dims, (std::map<std::string, std::int64_t>{{"A", 1}, {"B", 1}, {"C", 1}}));
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

TEST_F(Minimize, NeverEndsInAnotherBugThatIsEasierToReach) {
  // Two faults of one operator: y in wide rows of a certain value, and z everywhere.
  const Path y_at_777 = path([](const fusediff_call& call, std::int64_t t, std::int64_t n) {
    const std::int64_t width = call.inputs[0].shape[1];
    return width > 40 && get(in(call, "x"), t * width + n) >= 700 ? 50 : 0;
  });
  toy.paths["fused"] = [y_at_777](const fusediff_call& call) {
    y_at_777(call);
    const fusediff_tensor& z = out(call, "z");
    for (std::int64_t t = 0; z.data != nullptr && t < z.shape[0]; ++t) set(z, t, -1e9);
    return FUSEDIFF_OK;
  };
  const Minimized result = minimized(large());
  EXPECT_EQ(result.finding.output, "y");
  EXPECT_EQ(result.smallest.dims.at("N"), 41);
  EXPECT_EQ(result.smallest.dims.at("T"), 1);
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
