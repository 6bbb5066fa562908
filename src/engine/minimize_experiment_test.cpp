// Minimising what an experiment showed: the experiment and its calls, by predicates made by hand; that the engine's own
// findings shrink is in the tests of the experiments.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "engine/minimize.h"
#include "model/case_json.h"
#include "model/schema_json.h"

namespace fusediff {
namespace {

constexpr const char* kTwo = R"({"fusediff_schema": 1, "operators": [
   {"name": "op", "paths": ["fused", "unfused"], "dims": {"T": {"range": [0, 64]}, "N": {"range": [1, 64]}},
    "attrs": [{"name": "gain", "float": [0.5, 4.0], "default": 1.0}],
    "inputs": [{"name": "x", "shape": ["T", "N"], "dtype": ["f32", "f16"], "layout": "any"}],
    "outputs": [{"name": "y", "shape": ["T", "N"], "dtype": "=x"}],
    "rows": {"dim": "T", "inputs": ["x"], "outputs": "all"}},
   {"name": "other", "paths": ["fused", "unfused"], "dims": {"M": {"range": [1, 64]}},
    "inputs": [{"name": "x", "shape": ["M"], "dtype": "f32"}], "outputs": [{"name": "y", "shape": ["M"], "dtype": "f32"}]}]})";

std::string call_of(std::int64_t t, std::int64_t n, int seed) {
  return R"({"fusediff_case": 1, "op": "op", "dims": {"T": )" + std::to_string(t) + R"(, "N": )" + std::to_string(n) +
         R"(}, "attrs": {"gain": 2.0}, "dtypes": {"x": "f32"},
             "inputs": {"x": {"fill": {"normal": {"mean": 0, "std": 1}, "seed": )" +
         std::to_string(seed) + "}}}}";
}
std::string other_of(std::int64_t m) {
  return R"({"fusediff_case": 1, "op": "other", "dims": {"M": )" + std::to_string(m) +
         R"(}, "inputs": {"x": {"fill": {"normal": {"mean": 0, "std": 1}, "seed": 5}}}})";
}

class MinimizeExperiment : public testing::Test {
 protected:
  MinimizeExperiment() {
    Result<Schema> read = parse_schema(kTwo, nullptr);
    EXPECT_TRUE(read.ok());
    if (read.ok()) schema = *std::move(read);
  }

  Case case_of(const std::string& json, const std::string& experiment) {
    Result<Case> c = parse_case(json.substr(0, json.size() - 1) + R"(, "experiment": )" + experiment + "}");
    EXPECT_TRUE(c.ok()) << c.error().what;
    return c.ok() ? *c : Case{};
  }

  // shows: is the finding there? Legal cases only are asked.
  Minimized minimized(const Case& c, const std::function<bool(const Case&)>& shows, const std::string& oracle,
                      MinimizeOptions options = {}) {
    const Predicate predicate{[&](const Case& candidate, bool) -> Result<CheckResult> {
                                ++asked;
                                if (Status legal = is_legal(candidate); !legal.ok()) return legal.error();
                                CheckResult result;
                                if (!shows(candidate)) return result;
                                result.verdict.kind = Verdict::Kind::kFinding;
                                Finding finding;
                                finding.cls = FindingClass::kContamination;
                                finding.oracle = oracle;
                                finding.op = candidate.op;
                                finding.output = "y";
                                result.verdict.finding = finding;
                                return result;
                              },
                              [&](std::string_view op) { return schema.find(op); }, [] { return false; },
                              std::uint64_t{1} << 24};
    const Result<Minimized> result = minimize(predicate, c, options);
    if (!result.ok()) {
      ADD_FAILURE() << result.error().what;
      return {};
    }
    EXPECT_TRUE(result->finished);
    EXPECT_TRUE(shows(result->smallest)) << write_case(result->smallest);
    return *result;
  }

  Status is_legal(const Case& c) {
    const Result<Call> call = bind(c, *schema.find(c.op), std::uint64_t{1} << 24);
    if (!call.ok()) return call.error();
    if (c.op == "op" && c.experiment.row > std::max<std::int64_t>(0, c.dims.at("T") - 1))
      return user_error("a row that is not there");
    for (const Case& inner : c.experiment.calls) {
      const Result<Call> inner_call = bind(inner, *schema.find(inner.op), std::uint64_t{1} << 24);
      if (!inner_call.ok()) return inner_call.error();
    }
    return {};
  }

  static bool has_note(const Minimized& result, const std::string& note) {
    return std::find(result.notes.begin(), result.notes.end(), note) != result.notes.end();
  }

  Schema schema;
  int asked = 0;
};

std::string mates(const std::vector<std::string>& calls, const std::string& numbers = R"("count": 16, "rounds": 9)") {
  std::string text;
  for (const std::string& call : calls) text += (text.empty() ? "" : ", ") + call;
  return R"({"threads": {)" + numbers + R"(, "seed": 7, "mates": [)" + text + "]}}";
}

TEST_F(MinimizeExperiment, ThreadsRoundsAndMatesFallToWhatItTakes) {
  const Case original =
      case_of(call_of(5, 12, 1), mates({call_of(5, 12, 2), other_of(9), call_of(9, 30, 3), call_of(2, 2, 4)}));
  const auto mixed_shapes = [](const Case& c) {
    const Experiment& e = c.experiment;
    return e.kind == ExperimentKind::kThreads && e.count >= 3 && e.rounds >= 2 &&
           std::any_of(e.calls.begin(), e.calls.end(),
                       [&](const Case& mate) { return mate.op == "op" && mate.dims.at("N") != c.dims.at("N"); });
  };
  const Minimized result = minimized(original, mixed_shapes, "threads");
  const Experiment& e = result.smallest.experiment;
  EXPECT_EQ(e.count, 3);
  EXPECT_EQ(e.rounds, 2);
  EXPECT_EQ(e.seed, 0u);
  ASSERT_EQ(e.calls.size(), 1u);
  EXPECT_EQ(e.calls[0].op, "op");
  EXPECT_EQ(e.calls[0].dims.at("T"), 0);
  EXPECT_TRUE(e.calls[0].attrs.empty());
  EXPECT_LE(result.smallest.dims.at("N") + e.calls[0].dims.at("N"), 3);
  EXPECT_TRUE(has_note(result, "needs at least 3 threads"));
  EXPECT_TRUE(has_note(result, "needs at least 2 calls of each thread"));
  EXPECT_TRUE(has_note(result, "needs at least one mate"));
  EXPECT_TRUE(has_note(result, "the mate need not be of another operator"));
  EXPECT_FALSE(has_note(result, "the mate may have the shape of the case"));
}

TEST_F(MinimizeExperiment, EqualShapesShrinkTogether) {
  const Case original = case_of(call_of(5, 40, 1), mates({call_of(5, 40, 2), call_of(3, 40, 3), call_of(5, 40, 4)}));
  const auto equal_shapes = [](const Case& c) {
    const Experiment& e = c.experiment;
    return e.kind == ExperimentKind::kThreads && c.dims.at("N") >= 6 &&
           std::any_of(e.calls.begin(), e.calls.end(),
                       [&](const Case& mate) { return mate.dims == c.dims && mate.attrs == c.attrs; });
  };
  const Minimized result = minimized(original, equal_shapes, "threads");
  const Experiment& e = result.smallest.experiment;
  EXPECT_EQ(result.smallest.dims, (std::map<std::string, std::int64_t>{{"T", 0}, {"N", 6}}));
  EXPECT_TRUE(result.smallest.attrs.empty());
  EXPECT_EQ(e.count, 2);
  EXPECT_EQ(e.rounds, 1);
  ASSERT_EQ(e.calls.size(), 1u);
  EXPECT_EQ(e.calls[0].dims, result.smallest.dims);
  EXPECT_TRUE(has_note(result, "needs at least one mate"));
  EXPECT_TRUE(has_note(result, "the mate may have the shape of the case"));
  EXPECT_TRUE(has_note(result, "needs at least 2 threads: one after another the same calls pass"));
  EXPECT_TRUE(has_note(result, "passes with N = 5, fails with N = 6"));
}

TEST_F(MinimizeExperiment, NoMateIsNeededWhereEqualCallsDo) {
  const Case original = case_of(call_of(5, 12, 1), mates({call_of(5, 12, 2), other_of(9)}));
  const Minimized result = minimized(
      original, [](const Case& c) { return c.experiment.kind == ExperimentKind::kThreads; }, "threads");
  EXPECT_TRUE(result.smallest.experiment.calls.empty());
  EXPECT_EQ(result.smallest.experiment.count, 2);
  EXPECT_TRUE(has_note(result, "needs no mate"));
}

TEST_F(MinimizeExperiment, AMateOfAnotherOperatorStaysWhereOnlyItDoes) {
  const Case original = case_of(call_of(5, 12, 1), mates({call_of(5, 12, 2), other_of(9)}));
  const auto with_other = [](const Case& c) {
    return std::any_of(c.experiment.calls.begin(), c.experiment.calls.end(),
                       [](const Case& mate) { return mate.op == "other" && mate.dims.at("M") >= 4; });
  };
  const Minimized result = minimized(original, with_other, "threads");
  ASSERT_EQ(result.smallest.experiment.calls.size(), 1u);
  EXPECT_EQ(result.smallest.experiment.calls[0].dims.at("M"), 4);
  EXPECT_EQ(result.smallest.experiment.calls[0].inputs.at("x").fill.kind, FillKind::kConstant);
  EXPECT_TRUE(
      has_note(result, "the mate of another operator: the case's own operator at a few other sizes does not do"));
}

TEST_F(MinimizeExperiment, TheCallThatDiffersTakesThePlaceOfTheCase) {
  const Case original = case_of(other_of(9), mates({call_of(5, 12, 2)}));
  const auto op_in_threads = [](const Case& c) {
    return c.op == "op" || std::any_of(c.experiment.calls.begin(), c.experiment.calls.end(),
                                       [](const Case& mate) { return mate.op == "op"; });
  };
  // Whichever case it is seen with, it is a finding of `op`.
  Case promoted;
  const Predicate predicate{[&](const Case& candidate, bool) -> Result<CheckResult> {
                              CheckResult result;
                              if (!is_legal(candidate).ok() || !op_in_threads(candidate)) return result;
                              result.verdict.kind = Verdict::Kind::kFinding;
                              result.verdict.finding.emplace();
                              result.verdict.finding->oracle = "threads";
                              result.verdict.finding->op = "op";
                              return result;
                            },
                            [&](std::string_view op) { return schema.find(op); }, [] { return false; },
                            std::uint64_t{1} << 24};
  const Result<Minimized> result = minimize(predicate, original, {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->smallest.op, "op");
  EXPECT_TRUE(result->smallest.experiment.calls.empty());
  EXPECT_EQ(result->smallest.experiment.kind, ExperimentKind::kThreads);
}

TEST_F(MinimizeExperiment, RepeatsFallToTheRunThatShowsIt) {
  const Case original = case_of(call_of(5, 12, 1), R"({"repeat": {"count": 300, "calls": [)" + other_of(9) + "]}}");
  const auto from_the_37th = [](const Case& c) {
    return c.experiment.kind == ExperimentKind::kRepeat && c.experiment.count >= 37;
  };
  const Minimized result = minimized(original, from_the_37th, "repeat");
  EXPECT_EQ(result.smallest.experiment.count, 37);
  EXPECT_TRUE(result.smallest.experiment.calls.empty());
  EXPECT_TRUE(has_note(result, "needs at least 37 runs"));
  EXPECT_TRUE(has_note(result, "needs no call between"));
}

TEST_F(MinimizeExperiment, TheEarlierCallThatMattersStays) {
  const Case original = case_of(call_of(5, 12, 1), R"({"history": {"calls": [)" + call_of(1, 1, 2) + "," + other_of(3) +
                                                       "," + other_of(40) + "," + call_of(2, 2, 3) + "]}}");
  const auto after_a_long_one = [](const Case& c) {
    return std::any_of(c.experiment.calls.begin(), c.experiment.calls.end(),
                       [](const Case& call) { return call.op == "other" && call.dims.at("M") >= 10; });
  };
  const Minimized result = minimized(original, after_a_long_one, "history");
  ASSERT_EQ(result.smallest.experiment.calls.size(), 1u);
  EXPECT_EQ(result.smallest.experiment.calls[0].dims.at("M"), 10);
  EXPECT_EQ(result.smallest.dims.at("T"), 0);
  EXPECT_TRUE(has_note(result, "needs at least one earlier call"));
}

TEST_F(MinimizeExperiment, TwoCallsThatNeedEachOtherBothStay) {
  const Case original =
      case_of(call_of(5, 12, 1), R"({"history": {"calls": [)" + call_of(7, 1, 2) + "," + other_of(3) + "," +
                                     other_of(40) + "," + call_of(2, 2, 3) + "," + call_of(1, 9, 3) + "]}}");
  const auto both = [](const Case& c) {
    bool other = false, wide = false;
    for (const Case& call : c.experiment.calls) {
      other = other || call.op == "other";
      wide = wide || (call.op == "op" && call.dims.at("N") >= 8);
    }
    return other && wide;
  };
  const Minimized result = minimized(original, both, "history");
  EXPECT_EQ(result.smallest.experiment.calls.size(), 2u);
  EXPECT_TRUE(has_note(result, "needs at least 2 earlier calls"));
}

TEST_F(MinimizeExperiment, TheRowMovesToTheFrontAndStaysInside) {
  const Case original = case_of(call_of(40, 12, 1), R"({"relation": {"row_alone": {"row": 33}}})");
  const auto any_row_of_two = [](const Case& c) {
    return c.experiment.kind == ExperimentKind::kRelation && c.dims.at("T") >= 2;
  };
  Minimized result = minimized(original, any_row_of_two, "relation");
  EXPECT_EQ(result.smallest.experiment.row, 0);
  EXPECT_EQ(result.smallest.dims.at("T"), 2);
  result = minimized(
      original, [](const Case& c) { return c.experiment.row >= 5; }, "relation");
  EXPECT_EQ(result.smallest.experiment.row, 5);
  EXPECT_EQ(result.smallest.dims.at("T"), 6);
}

// What shows in any experiment is a plain pair's; what is the experiment's own has that experiment in its signature.
TEST_F(MinimizeExperiment, AnExperimentThatDoesNotMatterGoes) {
  const Case original = case_of(call_of(5, 12, 1), mates({call_of(5, 12, 2)}));
  Minimized result = minimized(
      original, [](const Case&) { return true; }, "memory");
  EXPECT_EQ(result.smallest.experiment, Experiment{});
  EXPECT_TRUE(has_note(result, "the experiment does not matter: pair shows what threads showed"));
  result = minimized(
      original, [](const Case& c) { return c.experiment.kind != ExperimentKind::kPair; }, "memory");
  EXPECT_EQ(result.smallest.experiment.kind, ExperimentKind::kHistory);
  EXPECT_EQ(result.smallest.experiment.calls.size(), 1u);
}

// Fewer threads show it less often: three in four times with sixteen, hardly ever with two.
TEST_F(MinimizeExperiment, ARaceStaysOneThatShows) {
  const Case original = case_of(call_of(5, 12, 1), mates({}));
  std::uint64_t draw = 0;
  const auto race = [&](const Case& c) {
    draw = draw * 6364136223846793005u + 1442695040888963407u;
    return c.experiment.kind == ExperimentKind::kThreads &&
           static_cast<std::int64_t>(draw >> 33) % 64 < std::min<std::int64_t>(48, c.experiment.count * 3);
  };
  const Predicate predicate{[&](const Case& candidate, bool) -> Result<CheckResult> {
                              if (Status legal = is_legal(candidate); !legal.ok()) return legal.error();
                              CheckResult result;
                              if (!race(candidate)) return result;
                              result.verdict.kind = Verdict::Kind::kFinding;
                              result.verdict.finding.emplace();
                              result.verdict.finding->oracle = "threads";
                              return result;
                            },
                            [&](std::string_view op) { return schema.find(op); }, [] { return false; },
                            std::uint64_t{1} << 24};
  MinimizeOptions options;
  options.tries = 4;
  const Result<Minimized> result = minimize(predicate, original, options);
  ASSERT_TRUE(result.ok());
  EXPECT_GE(result->smallest.experiment.count, 4);  // a pair of threads: one in ten
}

}  // namespace
}  // namespace fusediff
