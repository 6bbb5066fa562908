// The gradient experiment on backwards that are right, wrong in the usual ways, and right at a kink.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/files.h"
#include "engine/toy_target.h"

namespace fusediff {
namespace {

using namespace toy;

// y [T, N] = gain * x * w / sqrt(eps + sum of the row's squares), and its backward; grad_w sums over rows.
constexpr const char* kOps = R"({"name": "norm", "paths": ["fused", "unfused"],
    "dims": {"T": {"range": [0, 64]}, "N": {"range": [1, 64]}},
    "attrs": [{"name": "gain", "float": [0.5, 2.0], "default": 1.0}, {"name": "eps", "float": [0.0, 1.0], "default": 0.5}],
    "inputs": [{"name": "x", "shape": ["T", "N"], "dtype": ["f32", "bf16"], "layout": "any"},
               {"name": "w", "shape": ["N"], "dtype": "f32"}],
    "outputs": [{"name": "y", "shape": ["T", "N"], "dtype": "=x"},
                {"name": "s", "shape": ["T"], "dtype": "f32", "optional": true}]},
  {"name": "norm_grad", "paths": ["fused", "unfused"],
    "dims": {"T": {"range": [0, 64]}, "N": {"range": [1, 64]}},
    "attrs": [{"name": "gain", "float": [0.5, 2.0], "default": 1.0}],
    "inputs": [{"name": "g", "shape": ["T", "N"], "dtype": "=x", "role": "cotangent", "layout": "any"},
               {"name": "x", "shape": ["T", "N"], "dtype": ["f32", "bf16"], "layout": "any"},
               {"name": "w", "shape": ["N"], "dtype": "f32"},
               {"name": "s", "shape": ["T"], "dtype": "f32", "role": "saved",
                "saved": {"op": "norm", "output": "s", "inputs": {"x": "x", "w": "w"}}}],
    "outputs": [{"name": "grad_w", "shape": ["N"], "dtype": "f32", "stage": 1, "optional": true},
                {"name": "grad_x", "shape": ["T", "N"], "dtype": "=x", "stage": 2}],
    "gradient": {"of": "norm", "wrt": {"grad_x": "x", "grad_w": "w"}, "cotangents": {"g": "y"}}})";

fusediff_status forward(const fusediff_call& call) {
  const fusediff_tensor &x = in(call, "x"), &w = in(call, "w"), &y = out(call, "y"), &s = out(call, "s");
  const std::int64_t n = x.shape[1];
  for (std::int64_t t = 0; t < x.shape[0]; ++t) {
    double sum = attr(call, "eps");
    for (std::int64_t i = 0; i < n; ++i) sum += get(x, t * n + i) * get(x, t * n + i);
    if (s.data != nullptr) set(s, t, sum);
    for (std::int64_t i = 0; i < n; ++i)
      set(y, t * n + i, attr(call, "gain") * get(x, t * n + i) * get(w, i) / std::sqrt(sum));
  }
  return FUSEDIFF_OK;
}

// What a faulty backward does otherwise.
struct Fault {
  double factor = 1;          // of grad_w
  double sign = 1;            // of the term through the sum
  bool drop_sum = false;      // that term is forgotten
  bool transposed = false;    // reads g as [N, T]
  double drift_from = 1e300;  // T * N from which grad_w is off
  bool narrow_only = false;   // the f64 path is right
};

Path backward(const Fault& fault = {}) {
  return [fault](const fusediff_call& call) {
    const fusediff_tensor &g = in(call, "g"), &x = in(call, "x"), &w = in(call, "w"), &s = in(call, "s");
    const fusediff_tensor &grad_w = out(call, "grad_w"), &grad_x = out(call, "grad_x");
    const bool faulty = !fault.narrow_only || x.dtype != FUSEDIFF_F64;
    const std::int64_t rows = x.shape[0], n = x.shape[1];
    const double gain = attr(call, "gain");
    const auto upstream = [&](std::int64_t t, std::int64_t i) {
      return get(g, fault.transposed && faulty ? i * rows + t : t * n + i);
    };
    std::vector<double> sums(static_cast<std::size_t>(n));
    for (std::int64_t t = 0; t < rows; ++t) {
      const double inverse = 1 / std::sqrt(get(s, t));
      double dot = 0;
      for (std::int64_t i = 0; i < n; ++i) dot += upstream(t, i) * get(w, i) * get(x, t * n + i);
      if (faulty) dot *= fault.drop_sum ? 0 : fault.sign;
      for (std::int64_t i = 0; i < n; ++i) {
        const double v = get(x, t * n + i);
        sums[static_cast<std::size_t>(i)] += gain * upstream(t, i) * v * inverse;
        set(grad_x, t * n + i, gain * (upstream(t, i) * get(w, i) * inverse - v * dot * inverse * inverse * inverse));
      }
    }
    for (std::int64_t i = 0; i < n && grad_w.data != nullptr; ++i) {
      double value = sums[static_cast<std::size_t>(i)];
      if (faulty) value *= fault.factor;
      if (faulty && static_cast<double>(rows * n) >= fault.drift_from) value -= 0.02 * (i % 3 == 0 ? 1 : 0.5);
      set(grad_w, i, value);
    }
    return FUSEDIFF_OK;
  };
}

Case plain(const std::string& dtype = "f32", std::int64_t rows = 5, std::int64_t columns = 7,
           const std::string& x = R"({"normal": {"mean": 0, "std": 1}, "seed": 1})",
           const std::string& g = R"({"normal": {"mean": 0, "std": 1}, "seed": 2})", const std::string& more = "") {
  return case_of(R"({"fusediff_case": 1, "op": "norm_grad", "dims": {"T": )" + std::to_string(rows) + R"(, "N": )" +
                 std::to_string(columns) + R"(}, "dtypes": {"x": ")" + dtype + R"("}, "inputs": {"x": {"fill": )" + x +
                 R"(}, "g": {"fill": )" + g + R"(}, "w": {"fill": {"uniform": [0.5, 2], "seed": 3}})" + more +
                 R"(}, "experiment": {"gradient": {"seed": 4}}})");
}

class Gradient : public testing::Test {
 protected:
  Gradient() { of(backward(), backward()); }
  void of(const Path& fused, const Path& unfused) {
    toy.paths = {
        {"norm_grad:fused", fused}, {"norm_grad:unfused", unfused}, {"norm:fused", forward}, {"norm:unfused", forward}};
  }
  std::string verdict(const Case& c = plain()) { return in_short(check(toy, c)); }
  Finding finding(const Case& c = plain()) {
    const Verdict v = check(toy, c);
    EXPECT_TRUE(v.finding) << name_of(v.kind) << " " << v.reason;
    return v.finding.value_or(Finding{});
  }
  Toy toy{kOps};
};

TEST_F(Gradient, ARightBackwardPasses) {
  for (const char* dtype : {"f32", "bf16"}) {
    for (const std::int64_t columns : {1, 3, 7, 40})
      EXPECT_EQ(verdict(plain(dtype, 6, columns)), "pass") << dtype << columns;
  }
  EXPECT_EQ(verdict(plain("f32", 40, 50)), "pass");  // directions, and a few elements
}

TEST_F(Gradient, AWrongFactorInBothPathsIsTheUnfusedDefinition) {
  Fault fault;
  fault.factor = 1.01;
  of(backward(fault), backward(fault));
  const Finding f = finding();
  EXPECT_EQ(f.cls, FindingClass::kGradient);
  EXPECT_EQ(f.output, "grad_w");
  EXPECT_EQ(f.oracle, "gradient");
  EXPECT_EQ(f.experiment, "gradient");
  EXPECT_EQ(f.stage, 1);
  ASSERT_FALSE(f.sweeps.empty());
  const GradientSweep& s = f.sweeps[0];
  EXPECT_NEAR(*s.truth, 1.01 * s.quotient, 1e-6 * std::abs(s.quotient));
  EXPECT_LT(s.quotient_error, 1e-6 * std::abs(s.quotient));
  ASSERT_GT(s.own.size(), 5u);
  EXPECT_EQ(s.own[0][0], 0.2);
  EXPECT_NEAR(s.own[5][0], 0.005, 1e-12);
  EXPECT_NEAR(s.own[3][1], s.quotient, 1e-3 * std::abs(s.quotient));
}

TEST_F(Gradient, ADroppedTermAWrongSignAndATransposedUpstreamAreFound) {
  Fault dropped, sign, transposed;
  dropped.drop_sum = true;
  sign.sign = -1;
  transposed.transposed = true;
  for (const Fault& fault : {dropped, sign, transposed}) {
    of(backward(fault), backward(fault));
    EXPECT_EQ(verdict().substr(0, 8), "gradient");
    EXPECT_EQ(verdict(plain("bf16", 40, 50)).substr(0, 8), "gradient");
  }
  of(backward(transposed), backward(transposed));
  EXPECT_EQ(verdict(plain("f32", 5, 7, R"({"normal": {"mean": 0, "std": 1}, "seed": 1})", R"({"constant": 1})")),
            "pass")
      << "ones hide a transposition: the mutators do not draw them alone";
}

TEST_F(Gradient, APathThatIsWrongBesideARightDefinitionIsAccused) {
  Fault fault;
  fault.drop_sum = true;
  of(backward(fault), backward());
  const Finding f = finding();
  EXPECT_EQ(f.cls, FindingClass::kGradient);
  EXPECT_EQ(f.output, "grad_x");
  EXPECT_EQ(f.evidence[0].accused, Side::kTarget);
  of(backward(), backward(fault));
  EXPECT_EQ(finding().evidence[0].accused, Side::kAgainst);
}

TEST_F(Gradient, ADriftInBf16IsFoundWithItsSweep) {
  Fault fault;
  fault.drift_from = 100;
  fault.narrow_only = true;
  of(backward(fault), backward());
  EXPECT_EQ(verdict(plain("bf16", 8, 12)), "pass");
  const Finding f = finding(plain("bf16", 20, 12));
  EXPECT_EQ(f.cls, FindingClass::kGradient);
  EXPECT_EQ(f.output, "grad_w");
  EXPECT_EQ(f.evidence[0].accused, Side::kTarget);
  ASSERT_FALSE(f.sweeps.empty());
  EXPECT_NEAR(*f.sweeps[0].path[0], f.sweeps[0].quotient - 0.015, 6e-3);
  EXPECT_NEAR(*f.sweeps[0].path[1], f.sweeps[0].quotient, 1e-3);
  EXPECT_FALSE(f.sweeps[0].own.empty());
  // Both narrow paths: the other side is accused where no rounding of its inputs explains it.
  fault.factor = 1.5;
  of(backward(fault), backward(fault));
  EXPECT_EQ(verdict(plain("f32", 20, 12)), "gradient grad_w");
}

TEST_F(Gradient, WithoutAnF64BackwardThePathsAreJudgedByTheQuotient) {
  const auto narrow = [](const Path& path) -> Path {
    return [path](const fusediff_call& call) {
      return call.inputs[0].dtype == FUSEDIFF_F64 ? FUSEDIFF_UNSUPPORTED : path(call);
    };
  };
  of(narrow(backward()), narrow(backward()));
  EXPECT_EQ(verdict(), "pass");
  EXPECT_EQ(verdict(plain("bf16", 8, 12)), "pass");
  Fault fault;
  fault.sign = -1;
  of(narrow(backward(fault)), narrow(backward()));
  const Finding f = finding();
  EXPECT_EQ(f.output, "grad_x");
  EXPECT_EQ(f.evidence[0].accused, Side::kTarget);
  EXPECT_FALSE(f.sweeps[0].truth);
}

TEST_F(Gradient, WhatProvesNothingIsSaidToProveNothing) {
  EXPECT_EQ(check(toy, plain("f32", 0, 7)).kind, Verdict::Kind::kVacuous);
  EXPECT_EQ(check(toy, plain("f32", 5, 7, R"({"constant": "inf"})")).kind, Verdict::Kind::kVacuous);
  EXPECT_EQ(check(toy, plain("f32", 5, 7, R"({"ramp": [0, 1]})", R"({"constant": 0})")).kind, Verdict::Kind::kVacuous);
  const Verdict stated = check(
      toy, plain("f32", 1, 1, R"({"constant": 1})", R"({"constant": 1})", R"(, "s": {"fill": {"bits": "AACAPw=="}})"));
  EXPECT_EQ(stated.kind, Verdict::Kind::kVacuous);
  EXPECT_NE(stated.reason.find("states the saved tensor s"), std::string::npos);
}

TEST_F(Gradient, NoGradientRuleAndNoForwardAreSkips) {
  Case other = case_of(R"({"fusediff_case": 1, "op": "norm", "dims": {"T": 2, "N": 2}, "dtypes": {"x": "f32"},
      "inputs": {"x": {"fill": {"ramp": [1, 2]}}, "w": {"fill": {"constant": 1}}}, "experiment": {"gradient": {}}})");
  EXPECT_NE(check(toy, other).reason.find("has no `gradient`"), std::string::npos);
  const Path usual = toy.paths["norm:unfused"];
  toy.paths["norm:unfused"] = [usual](const fusediff_call& call) {
    return call.inputs[0].dtype == FUSEDIFF_F64 ? FUSEDIFF_UNSUPPORTED : usual(call);
  };
  EXPECT_EQ(check(toy, plain()).kind, Verdict::Kind::kSkip);
}

TEST_F(Gradient, APathThatDisagreesWithItselfIsNoGradient) {
  int calls = 0;
  Fault fault;
  fault.sign = -1;
  const Path right = backward(), wrong = backward(fault);
  of([&calls, right, wrong](const fusediff_call& call) { return ++calls % 3 == 1 ? wrong(call) : right(call); },
     backward());
  EXPECT_EQ(finding().cls, FindingClass::kNondeterminism);
}

TEST_F(Gradient, AGradientThatNobodyWroteIsUnwritten) {
  const Path right = backward();
  of(
      [right](const fusediff_call& call) {
        fusediff_call fewer = call;
        std::vector<fusediff_tensor> outputs(call.outputs, call.outputs + call.output_count);
        outputs[0].data = nullptr;
        fewer.outputs = outputs.data();
        return right(fewer);
      },
      backward());
  EXPECT_EQ(verdict(), "unwritten grad_w");
}

// Near misses: kinks where the point lies, saturation, huge and tiny numbers, cancellation.
constexpr const char* kKinks = R"({"name": "act", "paths": ["fused", "unfused"], "dims": {"N": {"range": [0, 64]}},
    "inputs": [{"name": "x", "shape": ["N"], "dtype": ["f32"]}],
    "outputs": [{"name": "y", "shape": ["N"], "dtype": "=x"}]},
  {"name": "act_grad", "paths": ["fused", "unfused"], "dims": {"N": {"range": [0, 64]}},
    "inputs": [{"name": "g", "shape": ["N"], "dtype": "=x", "role": "cotangent"},
               {"name": "x", "shape": ["N"], "dtype": ["f32"]}],
    "outputs": [{"name": "grad_x", "shape": ["N"], "dtype": "=x"}],
    "gradient": {"of": "act", "wrt": {"grad_x": "x"}, "cotangents": {"g": "y"}}})";

std::string verdict_at(const std::function<double(double)>& f, const std::function<double(double)>& derivative,
                       const std::string& x, std::int64_t n = 32) {
  Toy toy(kKinks);
  const Path grad = [derivative](const fusediff_call& call) {
    for (std::int64_t i = 0; i < count(out(call, "grad_x")); ++i)
      set(out(call, "grad_x"), i, get(in(call, "g"), i) * derivative(get(in(call, "x"), i)));
    return FUSEDIFF_OK;
  };
  toy.paths = {{"act:fused", each(f)}, {"act:unfused", each(f)}, {"act_grad:fused", grad}, {"act_grad:unfused", grad}};
  const Verdict verdict =
      check(toy, case_of(R"({"fusediff_case": 1, "op": "act_grad", "dims": {"N": )" + std::to_string(n) +
                         R"(}, "dtypes": {"x": "f32"}, "inputs": {"x": {"fill": )" + x +
                         R"(}, "g": {"fill": {"normal": {"mean": 0, "std": 1}, "seed": 9}}},
                                     "experiment": {"gradient": {"seed": 1}}})"));
  return in_short(verdict) + (verdict.finding ? ": " + verdict.finding->evidence[0].what : "");
}

TEST(GradientNearMiss, KinksSaturationAndOddSizesPass) {
  const auto relu = [](double x) { return std::max(x, 0.0); };
  const auto step = [](double x) { return x > 0 ? 1.0 : 0.0; };
  const auto no_finding = testing::AnyOf("pass", "vacuous");
  for (const char* x :
       {R"({"constant": 0})", R"({"normal": {"mean": 0, "std": 1}, "seed": 5})", R"({"constant": 1e-30})",
        R"({"grid": {"range": [-1, 1], "count": 3}, "seed": 5})", R"({"uniform": [-0.001, 0.001], "seed": 2})",
        R"({"special": {}, "seed": 4})", R"({"finite_special": {}, "seed": 4})"}) {
    for (const std::int64_t n : {1, 4, 32, 64}) EXPECT_THAT(verdict_at(relu, step, x, n), no_finding) << x << n;
  }
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const auto slope = [](double v) {
    const double e = std::exp(-std::abs(v));
    return e / ((1 + e) * (1 + e));
  };
  const auto hard = [](double v) { return std::clamp(v, -1.0, 1.0); };
  const auto inside = [](double v) { return v > -1 && v < 1 ? 1.0 : 0.0; };
  for (const char* x : {R"({"normal": {"mean": 0, "std": 1000}, "seed": 5})", R"({"constant": 40})",
                        R"({"uniform": [-1e30, 1e30], "seed": 2})", R"({"uniform": [-1e-30, 1e-30], "seed": 2})",
                        R"({"shifted": {"mean_power": 6, "spread_power": 6}, "seed": 2})"}) {
    EXPECT_THAT(verdict_at(sigmoid, slope, x), no_finding) << x;
    EXPECT_THAT(verdict_at(hard, inside, x), no_finding) << x;
  }
  EXPECT_EQ(verdict_at(
                relu, [](double) { return 1.0; }, R"({"normal": {"mean": 0, "std": 1}, "seed": 5})")
                .substr(0, 15),
            "gradient grad_x");
  EXPECT_EQ(verdict_at(sigmoid, sigmoid, R"({"normal": {"mean": 0, "std": 1}, "seed": 5})").substr(0, 15),
            "gradient grad_x");
}

// Every seed case of an operator with a gradient: the built-in backwards are the derivatives of their forwards.
TEST(GradientCorpus, NoSeedCaseIsAFinding) {
  namespace fs = std::filesystem;
  constexpr std::int64_t kMostRows = 1024;
  TargetLoader loader({fs::path(FUSEDIFF_BIN_DIR) / "targets"});
  const Result<const Target*> builtin = loader.load("builtin");
  ASSERT_TRUE(builtin.ok()) << builtin.error().what;
  Engine engine({{PathOf{*builtin, "fused"}, PathOf{*builtin, "unfused"}}, *builtin}, {});
  int passed = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(fs::path(FUSEDIFF_SOURCE_DIR) / "corpus")) {
    if (entry.path().extension() != ".json") continue;
    const Operator* op = (*builtin)->schema.find(entry.path().parent_path().filename().string());
    if (op == nullptr || !op->gradient) continue;
    SCOPED_TRACE(entry.path().string());
    const Result<std::string> text = read_file(entry.path(), kMaxCaseBytes);
    ASSERT_TRUE(text.ok()) << text.error().what;
    Result<Case> c = parse_case(*text, entry.path().parent_path());
    ASSERT_TRUE(c.ok()) << c.error().what;
    const auto rows = c->dims.find("T");
    if (rows != c->dims.end() && rows->second > kMostRows) continue;
    for (const std::uint64_t seed : {1u, 2u}) {
      c->experiment = {};
      c->experiment.kind = ExperimentKind::kGradient;
      c->experiment.seed = seed;
      const Verdict verdict = verdict_of(engine, *c);
      EXPECT_TRUE(verdict.kind == Verdict::Kind::kPass || verdict.kind == Verdict::Kind::kVacuous)
          << name_of(verdict.kind) << " " << verdict.reason
          << (verdict.finding ? verdict.finding->evidence[0].what : "");
      passed += verdict.kind == Verdict::Kind::kPass ? 1 : 0;
    }
  }
  EXPECT_GT(passed, 60);
}

}  // namespace
}  // namespace fusediff
