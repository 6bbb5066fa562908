// What the two sides offer, and what is known already.
#include "engine/toy_target.h"

namespace fusediff {
namespace {

using namespace toy;

double plus_one(double x) { return x + 1; }

Comparison between(const Toy& target, const Toy& against) {
  return {{PathOf{&target.target, "fused"}, PathOf{&against.target, "unfused"}}, nullptr};
}

TEST(Pair, UnsupportedIsASkipWithItsReason) {
  Toy toy(one_to_one());
  toy.paths = {{"fused",
                [](const fusediff_call&) {
                  Toy::message() = "no such kernel";
                  return FUSEDIFF_UNSUPPORTED;
                }},
               {"unfused", each(plus_one)}};
  const Verdict verdict = check(toy, ones());
  EXPECT_EQ(in_short(verdict), "skip");
  EXPECT_EQ(verdict.reason, "toy:fused: unsupported: no such kernel");
}

TEST(Pair, WhatTheOtherSideDoesNotOfferIsSkipped) {
  Toy toy(one_to_one()), other(R"({"name": "else", "paths": ["unfused"], "dims": {"N": {"range": [0, 4]}},
      "inputs": [{"name": "x", "shape": ["N"], "dtype": "f32"}], "outputs": [{"name": "y", "shape": ["N"], "dtype": "=x"}]})",
                               "other");
  toy.paths = other.paths = {{"fused", each(plus_one)}, {"unfused", each(plus_one)}};
  EXPECT_EQ(check(between(toy, other), ones()).reason, "other does not offer op");
  EXPECT_EQ(check(between(other, toy), ones()).reason, "other does not offer op");
  Comparison wrong_path = between(toy, toy);
  wrong_path.sides[1].path = "reference";
  EXPECT_EQ(check(wrong_path, ones()).reason, "toy offers no path reference of op");
}

TEST(Pair, AnIllegalCaseIsTheUsersError) {
  Toy even(one_to_one("", R"(, "where": ["N % 2 == 0"])"));
  even.paths = {{"fused", each(plus_one)}, {"unfused", each(plus_one)}};
  Engine engine(fused_against_unfused(even), quick());
  const Result<CheckResult> result = engine.check(ones(7));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().blame, Blame::kUser);
}

TEST(Pair, FreshContextsForEveryRunUnlessKept) {
  Toy toy(one_to_one());
  toy.paths = {{"fused", each(plus_one)}, {"unfused", each(plus_one)}};
  EXPECT_EQ(in_short(check(toy, ones())), "pass");
  EXPECT_EQ(toy.opened, 2);
  CheckOptions keep = quick();
  keep.keep_context = true;
  toy.opened = 0;
  Engine engine(fused_against_unfused(toy), keep);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(in_short(verdict_of(engine, ones())), "pass");
  EXPECT_EQ(toy.opened, 2);
}

TEST(Pair, AKnownFindingIsExplainedAnewAtPowersOfTwo) {
  Toy toy(one_to_one());
  toy.paths = {{"fused", each([](double x) { return x + 2; })}, {"unfused", each(plus_one)}};
  bool known = false;
  CheckOptions options = quick();
  options.is_known = [&](const std::string&) { return known; };
  Engine engine(fused_against_unfused(toy), options);
  const auto runs = [&] {
    const Result<CheckResult> result = engine.check(ones());
    EXPECT_EQ(in_short(result->verdict), "damage y");
    return result->runs;
  };
  EXPECT_GT(runs(), 2u);
  EXPECT_GT(runs(), 2u);  // nobody knows it yet
  known = true;
  std::vector<bool> explained;
  for (int i = 0; i < 9; ++i) explained.push_back(runs() > 2);
  EXPECT_EQ(explained, (std::vector<bool>{true, true, false, true, false, false, false, true, false}));
  EXPECT_GT(engine.check(ones(), true)->runs, 2u);
}

TEST(Pair, AnotherBugBehindTheSameFirstLookComesToLight) {
  // Damage or rounding: the first look cannot tell them apart.
  Toy toy(one_to_one());
  double error = 1;
  toy.paths = {{"fused", each([&error](double x) { return x + error; })},
               {"unfused", each([](double x) { return x; })}};
  CheckOptions options = quick();
  options.is_known = [](const std::string& signature) { return signature.find("damage") != std::string::npos; };
  Engine engine(fused_against_unfused(toy), options);
  EXPECT_EQ(in_short(verdict_of(engine, ones())), "damage y");
  error = 0x1p-23;
  std::vector<std::string> seen;
  for (int i = 0; i < 4; ++i) seen.push_back(in_short(verdict_of(engine, ones())));
  EXPECT_NE(std::find(seen.begin(), seen.end(), "rounding y"), seen.end());
}

TEST(Pair, CapturedTensorsAreThoseOfTheLastCase) {
  Toy toy(one_to_one());
  toy.paths = {{"fused", each([](double x) { return x + 2; })}, {"unfused", each(plus_one)}};
  Engine engine(fused_against_unfused(toy), quick());
  (void)verdict_of(engine, ones(3, R"({"ramp": [0, 2]})", R"(, "layout": {"x": {"stride": [2]}})"));
  const std::vector<Engine::Captured> inputs = engine.captured_inputs(), outputs = engine.captured_outputs();
  ASSERT_EQ(inputs.size(), 1u);
  EXPECT_EQ(inputs[0].name, "x");
  EXPECT_EQ(inputs[0].shape, std::vector<std::int64_t>{3});
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0].name, "target/y");
  EXPECT_EQ(float_value(DType::kF32, load_bits(DType::kF32, outputs[0].bytes.data() + 8)), 4);
  EXPECT_EQ(outputs[1].name, "against/y");
}

TEST(Pair, StagesGiveTheBitsOfOneSide) {
  Toy toy(one_to_one());
  toy.paths = {{"fused", each([](double x) { return x + 2; })}, {"unfused", each(plus_one)}};
  Engine engine(fused_against_unfused(toy), quick());
  const auto stages = engine.stages(ones(2), Side::kAgainst, {"y", "x"});
  ASSERT_TRUE(stages);
  ASSERT_EQ(stages->size(), 2u);
  EXPECT_EQ(float_value(DType::kF32, load_bits(DType::kF32, (*stages)[0].bytes.data())), 2);
  EXPECT_EQ(float_value(DType::kF32, load_bits(DType::kF32, (*stages)[1].bytes.data())), 1);
  EXPECT_FALSE(engine.stages(ones(2), Side::kTarget, {"z"}));
}

TEST(Pair, StagesThatTheCaseDoesWithoutAreAskedForWhereTheirIfHolds) {
  Toy toy(R"({"name": "op", "paths": ["fused", "unfused"], "dims": {"N": {"range": [0, 64]}},
      "attrs": [{"name": "more", "bool": true, "default": false}],
      "inputs": [{"name": "x", "shape": ["N"], "dtype": "f32"}],
      "outputs": [{"name": "y", "shape": ["N"], "dtype": "f32"},
                  {"name": "w", "shape": ["N"], "dtype": "f32", "optional": true, "if": "more == 1"}]})");
  bool asked = false;
  const Path path = [&asked](const fusediff_call& call) {
    const fusediff_tensor& w = out(call, "w");
    asked = w.data != nullptr;
    for (std::int64_t i = 0; i < count(in(call, "x")); ++i) {
      set(out(call, "y"), i, get(in(call, "x"), i));
      if (asked) set(w, i, 7);
    }
    return FUSEDIFF_OK;
  };
  toy.paths = {{"fused", path}, {"unfused", path}};
  Engine engine(fused_against_unfused(toy), quick());
  const char* const unwanted = R"(, "unwanted": ["w"])";
  const std::string with = std::string(R"(, "attrs": {"more": true})") + unwanted;
  const auto stages = engine.stages(ones(2, R"({"constant": 1})", with), Side::kAgainst, {"w"});
  ASSERT_TRUE(stages);
  EXPECT_EQ(float_value(DType::kF32, load_bits(DType::kF32, stages->front().bytes.data())), 7);
  EXPECT_FALSE(engine.stages(ones(2, R"({"constant": 1})", unwanted), Side::kAgainst, {"w"}));
  EXPECT_FALSE(engine.stages(ones(2), Side::kAgainst, {"w"}));
  EXPECT_FALSE(asked);
}

TEST(Pair, FeaturesTellCoarselyWhatHappened) {
  Toy toy(one_to_one());
  toy.paths = {{"fused", each([](double x) { return x + 0x1p-23; })}, {"unfused", each([](double x) { return x; })}};
  CheckOptions options = quick();
  options.feedback = true;
  Engine engine(fused_against_unfused(toy), options);
  const Features apart = engine.check(ones())->features;
  EXPECT_EQ(apart.max_ulp, 1);
  EXPECT_EQ(apart.differing_share, 2);
  EXPECT_EQ(apart.ending[0], static_cast<std::uint8_t>(Ending::kOk));
  toy.paths["fused"] = toy.paths["unfused"];
  const Features same = engine.check(ones())->features;
  EXPECT_EQ(same.max_ulp, 0);
  EXPECT_EQ(same.differing_share, 0);
  EXPECT_NE(engine.check(ones(64))->features.shape_class, same.shape_class);
  EXPECT_NE(engine.check(ones(8, R"({"special": {}, "seed": 3})"))->features.value_class, same.value_class);
}

}  // namespace
}  // namespace fusediff
