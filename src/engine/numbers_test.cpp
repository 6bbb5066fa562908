// The sides' numbers differ: truth, bounds, classes, stages to blame, outputs that are not asked for.
#include <cmath>
#include <limits>

#include "engine/toy_target.h"

namespace fusediff {
namespace {

using namespace toy;

constexpr double kUlp = 0x1p-23;  // of f32 at 1
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double same(double x) { return x; }

// y = x with element 2 replaced by what f makes of it.
Path with_odd_element(const std::function<double(double)>& f) {
  return [f](const fusediff_call& call) {
    each(same)(call);
    set(call.outputs[0], 2, f(get(call.inputs[0], 2)));
    return FUSEDIFF_OK;
  };
}

Verdict compare(const Path& fused, const Path& unfused, const Case& c, const std::string& output = "",
                const std::string& members = "") {
  Toy toy(one_to_one(output, members));
  toy.paths = {{"fused", fused}, {"unfused", unfused}};
  return check(toy, c);
}
std::string class_of(const Path& fused, const std::string& output = "", const Case& c = ones()) {
  return in_short(compare(fused, each(same), c, output));
}

TEST(Numbers, FewUlpAreRoundingManyAreDamage) {
  EXPECT_EQ(class_of(with_odd_element([](double x) { return x + 4 * kUlp; })), "rounding y");
  EXPECT_EQ(class_of(with_odd_element([](double x) { return x + 5 * kUlp; })), "damage y");
  EXPECT_EQ(class_of(with_odd_element(same)), "pass");
}

TEST(Numbers, ABoundDecidesWhereThereIsOne) {
  const std::string bound = R"(, "bound": {"ulp": "N + 2", "of": "element", "why": "a test"})";
  EXPECT_EQ(class_of(with_odd_element([](double x) { return x + 10 * kUlp; }), bound), "rounding y");
  EXPECT_EQ(class_of(with_odd_element([](double x) { return x + 11 * kUlp; }), bound), "damage y");
}

TEST(Numbers, BoundsOnMagnitudesGetTheTruthOnThem) {
  // y[i] = x[i] + x[N - 1 - i] cancels to 2^-20; its terms are of size 1.
  const auto sum = [](double error) -> Path {
    return [error](const fusediff_call& call) {
      const std::int64_t n = count(call.outputs[0]);
      for (std::int64_t i = 0; i < n; ++i)
        set(call.outputs[0], i, get(call.inputs[0], i) + get(call.inputs[0], n - 1 - i) + error);
      return FUSEDIFF_OK;
    };
  };
  const Case cancelling = ones(2, R"({"constant": 1}, "set": {"1": "-0x1.ffffep-1"})");
  const auto class_with = [&](const std::string& of) {
    return in_short(
        compare(sum(kUlp), sum(0), cancelling, R"(, "bound": {"ulp": "1", "of": ")" + of + R"(", "why": "a test"})"));
  };
  EXPECT_EQ(class_with("abs_inputs"), "rounding y");
  EXPECT_EQ(class_with("element"), "damage y");
}

TEST(Numbers, WithoutTruthADifferenceIsDamage) {
  const auto no_wide = [](const Path& path) -> Path {
    return [path](const fusediff_call& call) {
      return call.inputs[0].dtype == FUSEDIFF_F64 ? FUSEDIFF_UNSUPPORTED : path(call);
    };
  };
  const Verdict verdict =
      compare(no_wide(with_odd_element([](double x) { return x + kUlp; })), no_wide(each(same)), ones());
  ASSERT_EQ(in_short(verdict), "damage y");
  EXPECT_NE(verdict.finding->differences[0].judged_by.find("no f64 truth"), std::string::npos);
}

TEST(Numbers, TheFallbackGivesTruthWhenNoSideDoes) {
  const auto no_wide = [](const Path& path) -> Path {
    return [path](const fusediff_call& call) {
      return call.inputs[0].dtype == FUSEDIFF_F64 ? FUSEDIFF_UNSUPPORTED : path(call);
    };
  };
  Toy toy(one_to_one()), fallback(one_to_one(), "builtin");
  toy.paths = {{"fused", no_wide(with_odd_element([](double x) { return x + kUlp; }))},
               {"unfused", no_wide(each(same))}};
  fallback.paths = {{"unfused", each(same)}};
  Comparison comparison = fused_against_unfused(toy);
  comparison.fallback = &fallback.target;
  const Verdict verdict = check(comparison, ones());
  ASSERT_EQ(in_short(verdict), "rounding y");
  EXPECT_EQ(verdict.finding->notes[0], "truth: builtin:unfused in f64");
}

TEST(Numbers, AReferencePathIsTheTruthBeforeUnfused) {
  Toy toy(R"({"name": "op", "paths": ["fused", "unfused", "reference"], "dims": {"N": {"range": [0, 64]}},
              "inputs": [{"name": "x", "shape": ["N"], "dtype": ["f32"]}],
              "outputs": [{"name": "y", "shape": ["N"], "dtype": "=x",
                           "bound": {"ulp": "1", "of": "element", "why": "a test"}}]})");
  toy.paths = {
      {"fused", each(same)}, {"unfused", each([](double x) { return x + 3 * kUlp; })}, {"reference", each(same)}};
  const Verdict verdict = check(toy, ones());
  ASSERT_EQ(in_short(verdict), "damage y");
  EXPECT_EQ(verdict.finding->evidence[0].accused, Side::kAgainst);
  EXPECT_EQ(verdict.finding->notes[0], "truth: toy:reference in f64");
}

TEST(Numbers, NonFinite) {
  EXPECT_EQ(class_of(with_odd_element([](double) { return kNan; })), "non_finite y");
  EXPECT_EQ(class_of(with_odd_element([](double) { return 1e300; })), "non_finite y");
}

TEST(Numbers, ZeroSign) {
  const Case zeros = ones(8, R"({"grid": {"range": [0, 1], "count": 2}, "seed": 5})");
  EXPECT_EQ(class_of(each([](double x) { return x == 0 ? -0.0 : x; }), "", zeros), "zero_sign y");
}

TEST(Numbers, NanBitsPassUnlessTheyArePartOfTheContract) {
  const Path other_nan = [](const fusediff_call& call) {
    each(same)(call);
    set_bits(call.outputs[0], 2, 0x7FC00077);
    return FUSEDIFF_OK;
  };
  const Case nan = ones(8, R"({"constant": 1})");
  Case with_nan = nan;
  with_nan.inputs["x"].set[2] = Literal{Literal::Kind::kBits, 0, 0, 0x7FC00000};
  EXPECT_EQ(class_of(other_nan, "", with_nan), "pass");
  EXPECT_EQ(class_of(other_nan, R"(, "nan": "bits")", with_nan), "nan_bits y");
}

TEST(Numbers, AgreementPasses) {
  const std::string agree = R"(, "agree": {"ulp": 4, "why": "a test"})";
  EXPECT_EQ(class_of(with_odd_element([](double x) { return x + 4 * kUlp; }), agree), "pass");
  EXPECT_EQ(class_of(with_odd_element([](double x) { return x + 5 * kUlp; }), agree), "damage y");
}

TEST(Numbers, FindingsSayWhereHowManyAndWhatBothSidesReceived) {
  const Verdict verdict = compare(with_odd_element([](double) { return 7; }), each(same), ones());
  ASSERT_TRUE(verdict.finding);
  const Finding& f = *verdict.finding;
  ASSERT_EQ(f.differences.size(), 1u);
  EXPECT_EQ(f.differences[0].first, 2);
  EXPECT_EQ(f.differences[0].differing, 1);
  EXPECT_EQ(f.differences[0].elements, 8);
  ASSERT_EQ(f.input_hashes.size(), 1u);
  EXPECT_EQ(f.input_hashes[0].hash[0], f.input_hashes[0].hash[1]);
  ASSERT_EQ(f.output_hashes.size(), 1u);
  EXPECT_NE(f.output_hashes[0].hash[0], f.output_hashes[0].hash[1]);
  EXPECT_EQ(f.rates[0].runs, 16);
  EXPECT_EQ(f.rates[0].differing, 0);
  EXPECT_EQ(f.dtype, "f32");
}

TEST(Numbers, TheSignatureKnowsNoShapeAndNoValue) {
  const Path fused = with_odd_element([](double x) { return x + 99; });
  const auto signature = [&](const Case& c) { return signature_of(*compare(fused, each(same), c).finding); };
  EXPECT_EQ(signature(ones(8)), signature(ones(33, R"({"uniform": [1, 2], "seed": 4})")));
  Case half = ones();
  half.dtypes["x"] = DType::kF16;
  EXPECT_NE(signature(ones()), signature(half));
}

// Three steps, each an output: a = x + 1, b = 2 a, c = b + x.
constexpr const char* kSteps = R"({"name": "op", "paths": ["fused", "unfused"], "dims": {"N": {"range": [0, 64]}},
    "inputs": [{"name": "x", "shape": ["N"], "dtype": ["f32"]}],
    "outputs": [{"name": "c", "shape": ["N"], "dtype": "=x", "stage": 3},
                {"name": "b", "shape": ["N"], "dtype": "=x", "stage": 2, "optional": true},
                {"name": "a", "shape": ["N"], "dtype": "=x", "stage": 1, "optional": true}]})";

Path steps(double error_in_b, bool refuse_b = false) {
  return [=](const fusediff_call& call) {
    if (refuse_b && out(call, "b").data != nullptr) return FUSEDIFF_UNSUPPORTED;
    for (std::int64_t i = 0; i < count(out(call, "c")); ++i) {
      const double x = get(in(call, "x"), i), a = x + 1, b = 2 * a + error_in_b;
      if (out(call, "a").data != nullptr) set(out(call, "a"), i, a);
      if (out(call, "b").data != nullptr) set(out(call, "b"), i, b);
      set(out(call, "c"), i, b + x);
    }
    return FUSEDIFF_OK;
  };
}

TEST(Blame, TheLowestStageThatDiffers) {
  Toy toy(kSteps);
  toy.paths = {{"fused", steps(0.5)}, {"unfused", steps(0)}};
  const Verdict verdict = check(toy, ones());
  ASSERT_EQ(in_short(verdict), "damage b");  // lowest stage first
  EXPECT_EQ(verdict.finding->stage, 2);
  EXPECT_EQ(verdict.finding->stage_outputs, std::vector<std::string>{"b"});
  EXPECT_EQ(verdict.finding->differences.size(), 2u);
}

TEST(Blame, OutputsThatTheCaseDoesNotWantAreAskedForWhenBlameIsSought) {
  Toy toy(kSteps);
  toy.paths = {{"fused", steps(0.5)}, {"unfused", steps(0)}};
  const Case narrow = ones(8, R"({"constant": 1})", R"(, "unwanted": ["b", "a"])");
  const Verdict verdict = check(toy, narrow);
  ASSERT_EQ(in_short(verdict), "damage b");
  EXPECT_EQ(verdict.finding->stage, 2);
}

TEST(Blame, AFindingThatNeedsAnOutputToBeUnwantedStands) {
  Toy toy(kSteps);
  toy.paths = {
      {"fused", [](const fusediff_call& call) { return steps(out(call, "b").data == nullptr ? 0.5 : 0)(call); }},
      {"unfused", steps(0)}};
  const Case narrow = ones(8, R"({"constant": 1})", R"(, "unwanted": ["b"])");
  const Verdict verdict = check(toy, narrow);
  ASSERT_EQ(in_short(verdict), "damage c");
  EXPECT_NE(verdict.finding->notes[0].find("shows only while b"), std::string::npos);
  EXPECT_EQ(in_short(check(toy, ones())), "pass");
}

TEST(Blame, ASideThatCannotGiveTheUnwantedOutputHidesNothing) {
  Toy toy(kSteps);
  toy.paths = {{"fused", steps(0.5, true)}, {"unfused", steps(0)}};
  const Case narrow = ones(8, R"({"constant": 1})", R"(, "unwanted": ["b"])");
  EXPECT_EQ(in_short(check(toy, narrow)), "damage c");
  toy.paths["fused"] = [](const fusediff_call& call) {  // one element unwritten
    if (out(call, "b").data != nullptr) return FUSEDIFF_UNSUPPORTED;
    const std::uint64_t held = bits(out(call, "c"), 3);
    const fusediff_status status = steps(0)(call);
    set_bits(out(call, "c"), 3, held);
    return status;
  };
  toy.paths["unfused"] = toy.paths["fused"];
  EXPECT_EQ(in_short(check(toy, narrow)), "unwritten c");
}

TEST(Blame, AConditionalOutputIsNeverAskedForWhereItsConditionDoesNotHold) {
  Toy toy(R"({"name": "op", "paths": ["fused", "unfused"], "dims": {"N": {"range": [0, 64]}},
      "attrs": [{"name": "training", "bool": true, "default": false}],
      "inputs": [{"name": "x", "shape": ["N"], "dtype": ["f32"]}],
      "outputs": [{"name": "c", "shape": ["N"], "dtype": "=x", "stage": 3},
                  {"name": "b", "shape": ["N"], "dtype": "=x", "stage": 2, "optional": true, "if": "training == 1"},
                  {"name": "a", "shape": ["N"], "dtype": "=x", "stage": 1, "optional": true}]})");
  toy.paths = {{"fused", steps(3 * kUlp, true)}, {"unfused", steps(0, true)}};
  const Verdict verdict = check(toy, ones(8, R"({"constant": 1})", R"(, "unwanted": ["a"])"));
  EXPECT_EQ(in_short(verdict), "rounding c");  // there is a truth, without b
}

// Two operators' worth of picks: rank r = x + bias, pick the largest.
constexpr const char* kPicks = R"({"name": "op", "paths": ["fused", "unfused"],
    "dims": {"N": {"range": [1, 64]}}, "inputs": [{"name": "x", "shape": [1, "N"], "dtype": ["f32"]}],
    "outputs": [{"name": "n", "shape": [1, "N"], "dtype": "f32", "stage": 1},
                {"name": "r", "shape": [1, "N"], "dtype": "f32", "stage": 2, "optional": true},
                {"name": "p", "shape": [1, 1], "dtype": "i32", "stage": 3, "always": [{"range": [0, "N - 1"]}]},
                {"name": "v", "shape": [1, 1], "dtype": "f32", "stage": 4}],
    "decide": [{"by": "r", "pick": "p", "count": 1 TIE}]})";

std::string picks_with(const std::string& tie) {
  std::string text = kPicks;
  return text.replace(text.find(" TIE"), 4, tie);
}

// n = x + error at `at`; r = n; v = what `value` says of the pick. prefer_last: among equals the last.
Path pick(double error, std::int64_t at, bool prefer_last = false, std::int64_t forced = -1) {
  return [=](const fusediff_call& call) {
    const std::int64_t n = count(in(call, "x"));
    std::int64_t best = 0;
    double best_rank = -std::numeric_limits<double>::infinity();
    for (std::int64_t i = 0; i < n; ++i) {
      const double value = get(in(call, "x"), i) + (i == at ? error : 0);
      set(out(call, "n"), i, value);
      const double rank = get(out(call, "n"), i);
      if (out(call, "r").data != nullptr) set(out(call, "r"), i, rank);
      if (rank > best_rank || (rank == best_rank && prefer_last)) best = i, best_rank = rank;
    }
    if (forced >= 0) best = forced;
    set(out(call, "p"), 0, static_cast<double>(best));
    set(out(call, "v"), 0, static_cast<double>(10 * best) + 1);
    return FUSEDIFF_OK;
  };
}

Case two_largest(const std::string& members = "") {
  return case_of(R"({"fusediff_case": 1, "op": "op", "dims": {"N": 8}, "dtypes": {"x": "f32"},
      "inputs": {"x": {"fill": {"constant": 1}, "set": {"2": 2, "5": 2}}})" +
                 members + "}");
}

TEST(Picks, AFlipThroughATieBlamesTheStageThatDiffers) {
  Toy toy(picks_with(""));
  toy.paths = {{"fused", pick(2 * kUlp, 5)}, {"unfused", pick(0, 0)}};
  const Verdict verdict = check(toy, two_largest());
  ASSERT_EQ(in_short(verdict), "flip p");
  const Finding& f = *verdict.finding;
  EXPECT_EQ(f.stage, 1);
  ASSERT_EQ(f.flips.size(), 1u);
  EXPECT_EQ(f.flips[0].picked, (std::array<std::int64_t, 2>{5, 2}));
  EXPECT_EQ(f.flips[0].gap_ulp, (std::array<std::uint64_t, 2>{1, 0}));
  EXPECT_FALSE(f.flips[0].stages.empty());
  for (const Difference& d : f.differences) {
    EXPECT_EQ(d.follows_pick, d.output == "v" || d.output == "p") << d.output;
  }
  EXPECT_FALSE(has(f, FindingClass::kDamage));
}

TEST(Picks, APickAgainstItsOwnRanksIsWrong) {
  Toy toy(picks_with(""));
  toy.paths = {{"fused", pick(0, 0, true)}, {"unfused", pick(0, 0)}};
  EXPECT_EQ(in_short(check(toy, two_largest())), "wrong_pick p");
  toy.paths["fused"] = toy.paths["unfused"] = pick(0, 0, false, 7);  // wrong alike
  EXPECT_EQ(in_short(check(toy, two_largest())), "wrong_pick p");
}

TEST(Picks, AnyOfEqualsWithAllThatFollowsPasses) {
  Toy toy(picks_with(R"(, "tie": "any")"));
  toy.paths = {{"fused", pick(0, 0, true)}, {"unfused", pick(0, 0)}};
  EXPECT_EQ(in_short(check(toy, two_largest())), "pass");
}

TEST(Picks, UnknownRanksOfADifferentPickPointAtTheStageBefore) {
  std::string no_rank = picks_with("");
  Toy toy(no_rank), other(no_rank, "other");
  other.target.schema.operators[0].outputs.erase(other.target.schema.operators[0].outputs.begin() + 1);
  other.target.schema.operators[0].decide.clear();
  const auto without_rank = [](double error, std::int64_t forced) -> Path {
    return [=](const fusediff_call& call) {
      for (std::int64_t i = 0; i < 8; ++i) set(out(call, "n"), i, get(in(call, "x"), i) + (i == 5 ? error : 0));
      set(out(call, "p"), 0, static_cast<double>(forced));
      set(out(call, "v"), 0, static_cast<double>(10 * forced) + 1);
      return FUSEDIFF_OK;
    };
  };
  toy.paths = {{"fused", pick(2 * kUlp, 5)}};
  other.paths = {{"unfused", without_rank(0, 2)}};
  const Comparison comparison{{PathOf{&toy.target, "fused"}, PathOf{&other.target, "unfused"}}, nullptr};
  EXPECT_EQ(in_short(check(comparison, two_largest())), "flip p");
  toy.paths = {{"fused", pick(0, 5)}};
  other.paths = {{"unfused", without_rank(0, 5)}};
  EXPECT_EQ(in_short(check(comparison, two_largest())), "wrong_pick p");
}

TEST(Picks, APickOutOfRangeIsNoFlip) {
  Toy toy(picks_with(""));
  for (OutputRule& output : toy.target.schema.operators[0].outputs) output.always.clear();
  toy.paths = {{"fused", pick(2 * kUlp, 5, false, 8)}, {"unfused", pick(0, 0)}};
  EXPECT_EQ(in_short(check(toy, two_largest())), "wrong_pick p");
}

}  // namespace
}  // namespace fusediff
