#include "mutate/experiments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "mutate/schemas_test.h"

namespace fusediff {
namespace {

// Rows, a gradient, outputs on inputs; an operator that answers none of it; one that wants a context a thread.
constexpr const char* kThree = R"({
  "fusediff_schema": 1,
  "operators": [
   {"name": "scale", "paths": ["fused", "unfused"],
    "dims": {"T": {"range": [0, 256]}, "N": {"range": [1, 512], "typical": [64, 128]}},
    "inputs": [{"name": "x", "shape": ["T", "N"], "dtype": ["f32", "bf16"], "layout": "any"},
               {"name": "w", "shape": ["N"], "dtype": "=x", "optional": true}],
    "outputs": [{"name": "y", "shape": ["T", "N"], "dtype": "=x", "layout": "any"}],
    "inplace": [["y", "x"]], "rows": {"dim": "T", "inputs": ["x"], "outputs": "all"}},
   {"name": "scale_grad", "paths": ["fused", "unfused"], "dims": {"T": {"range": [0, 256]}, "N": {"range": [1, 512]}},
    "inputs": [{"name": "grad_y", "shape": ["T", "N"], "dtype": ["f32", "f16"], "role": "cotangent", "layout": "any"},
               {"name": "x", "shape": ["T", "N"], "dtype": "=grad_y"}],
    "outputs": [{"name": "grad_x", "shape": ["T", "N"], "dtype": "=grad_y"}],
    "gradient": {"of": "scale", "wrt": {"grad_x": "x"}, "cotangents": {"grad_y": "y"}}},
   {"name": "count", "threads": "one_context_each", "paths": ["fused", "unfused"], "dims": {"N": {"range": [1, 64]}},
    "inputs": [{"name": "i", "shape": ["N"], "dtype": "i32"}],
    "outputs": [{"name": "n", "shape": ["N"], "dtype": "i64"}]}]
})";

// Each operator with calls of all of them.
struct Several {
  explicit Several(std::uint64_t seed) : schema(schema_of(kThree)), rng(seed) {
    for (const Operator& op : schema.operators) list.push_back(&op);
  }
  MutateContext context(std::size_t op, std::uint64_t max_bytes = kTestBytes) {
    return {*list[op], rng, max_bytes, probe, list};
  }
  Schema schema;
  Rng rng;
  Probe probe;
  std::vector<const Operator*> list;
};

using Weights = std::array<int, kExperimentKindCount>;
constexpr Weights only(ExperimentKind kind) {
  Weights weights{};
  weights[static_cast<std::size_t>(kind)] = 1;
  return weights;
}

Case drawn(MutateContext& context, ExperimentKind kind) {
  context.experiment_weights = only(kind);
  for (int i = 0; i < 100; ++i) {
    std::optional<Case> c = random_case(context);
    if (c && c->experiment.kind == kind) return *c;
  }
  ADD_FAILURE() << "none was drawn in 100 cases";
  return {};
}

TEST(Experiments, EveryMutantIsLegalWithAllItsCalls) {
  Several several(31);
  std::map<ExperimentKind, int> seen;
  int unchanged = 0;
  constexpr int kChains = 8000, kLength = 10;
  Case other;
  for (int chain = 0; chain < kChains; ++chain) {
    MutateContext context = several.context(static_cast<std::size_t>(chain) % 3, chain % 2 == 0 ? kTestBytes : 1 << 16);
    std::optional<Case> c = random_case(context);
    ASSERT_TRUE(c);
    for (int i = 0; i < kLength; ++i) {
      Case next = *c;
      const bool crossed = chain > 0 && i % 7 == 3;
      if (crossed ? !crossover(next, other, context) : !mutate(next, context)) {
        ++unchanged;
        continue;
      }
      ASSERT_EQ(why_illegal_inside(next, context), std::nullopt) << write_case(*c) << "\ninto " << write_case(next);
      const auto read = parse_case(write_case(next));
      ASSERT_TRUE(read.ok()) << read.error().what;
      ASSERT_EQ(read->experiment, next.experiment) << write_case(next);
      ++seen[next.experiment.kind];
      Case again = next;
      ASSERT_TRUE(repair(again, context));
      ASSERT_EQ(again, next) << "repaired once more: " << write_case(again);
      c = std::move(next);
    }
    other = *c;
  }
  EXPECT_LT(unchanged, kChains * kLength / 10);
  for (int kind = 0; kind < kExperimentKindCount; ++kind) {
    EXPECT_GT(seen[static_cast<ExperimentKind>(kind)], kChains * kLength / 200) << kind;
    RecordProperty(std::string(name_of(static_cast<ExperimentKind>(kind))), seen[static_cast<ExperimentKind>(kind)]);
  }
}

TEST(Experiments, RandomCasesArePairsMostOfTheTime) {
  Several several(32);
  MutateContext context = several.context(0);
  std::map<ExperimentKind, int> seen;
  constexpr int kCases = 6000;
  for (int i = 0; i < kCases; ++i) ++seen[random_case(context)->experiment.kind];
  EXPECT_GT(seen[ExperimentKind::kPair], kCases * 55 / 100);
  EXPECT_LT(seen[ExperimentKind::kPair], kCases * 70 / 100);
  EXPECT_GT(seen[ExperimentKind::kRepeat], kCases * 2 / 100);
  EXPECT_GT(seen[ExperimentKind::kThreads], kCases * 9 / 100);
  EXPECT_GT(seen[ExperimentKind::kRelation], kCases * 12 / 100);
  EXPECT_GT(seen[ExperimentKind::kHistory], kCases * 5 / 100);
  EXPECT_EQ(seen[ExperimentKind::kGradient], 0);  // no record of one
}

TEST(Experiments, AWeightOfZeroIsNeverDrawn) {
  Several several(33);
  for (int kind = 0; kind < kExperimentKindCount; ++kind) {
    MutateContext context = several.context(1);
    context.experiment_weights = only(static_cast<ExperimentKind>(kind));
    std::optional<Case> c = random_case(context);
    ASSERT_TRUE(c);
    for (int i = 0; i < 300; ++i) {
      if (!mutate(*c, context)) continue;
      const bool drawn_or_given_up =
          c->experiment.kind == static_cast<ExperimentKind>(kind) || c->experiment.kind == ExperimentKind::kPair;
      ASSERT_TRUE(drawn_or_given_up) << name_of(c->experiment.kind);
    }
  }
}

TEST(Experiments, OnlyWhatTheRecordAnswersIsDrawn) {
  Several several(34);
  std::set<RelationKind> of_scale, of_count;
  for (int i = 0; i < 2000; ++i) {
    MutateContext scale = several.context(0), count = several.context(2);
    const std::optional<Case> a = random_case(scale), b = random_case(count);
    ASSERT_TRUE(a && b);
    if (a->experiment.kind == ExperimentKind::kRelation) of_scale.insert(a->experiment.relation);
    if (b->experiment.kind == ExperimentKind::kRelation) of_count.insert(b->experiment.relation);
    EXPECT_NE(b->experiment.kind, ExperimentKind::kGradient);
    if (a->experiment.kind != ExperimentKind::kThreads) continue;
    for (const Case& mate : a->experiment.calls) EXPECT_NE(mate.op, "count");
  }
  EXPECT_EQ(of_scale.size(), static_cast<std::size_t>(kRelationKindCount));
  EXPECT_FALSE(of_count.contains(RelationKind::kRowAlone));
  EXPECT_FALSE(of_count.contains(RelationKind::kInplace));
  EXPECT_FALSE(of_count.contains(RelationKind::kSameValue));
  EXPECT_TRUE(of_count.contains(RelationKind::kMoved));
}

TEST(Experiments, ARelationHasWhatItLooksAt) {
  Several several(35);
  MutateContext context = several.context(0);
  context.experiment_weights = only(ExperimentKind::kRelation);
  std::set<std::int64_t> rows;
  for (int i = 0; i < 2000; ++i) {
    const std::optional<Case> c = random_case(context);
    ASSERT_TRUE(c);
    if (c->experiment.kind != ExperimentKind::kRelation) continue;
    const std::int64_t n = c->dims.at("T");
    switch (c->experiment.relation) {
      case RelationKind::kDense:
        EXPECT_FALSE(c->layout.empty());
        break;
      case RelationKind::kBatchSplit:
        EXPECT_GE(c->experiment.row, 1);
        [[fallthrough]];
      case RelationKind::kRowAlone:
        EXPECT_GE(n, 2);
        EXPECT_LT(c->experiment.row, n);
        rows.insert(c->experiment.row);
        break;
      default:
        break;
    }
  }
  EXPECT_GT(rows.size(), 50u);
}

TEST(Experiments, ThreadsAreFewAndCheapMoreOftenThanNot) {
  Several several(36);
  MutateContext context = several.context(0);
  int small = 0;
  std::set<std::int64_t> counts;
  constexpr int kCases = 500;
  for (int i = 0; i < kCases; ++i) {
    const Case c = drawn(context, ExperimentKind::kThreads);
    const Experiment& e = c.experiment;
    ASSERT_GE(e.count, 2);
    ASSERT_LE(e.count, kMostThreads);
    ASSERT_GE(e.rounds, 1);
    const std::uint64_t a_run = bytes_of_all(c, context) / (e.calls.size() + 1);
    const auto runs = static_cast<std::uint64_t>(e.count * e.rounds);
    EXPECT_TRUE(runs == 2 || runs * a_run <= (std::uint64_t{32} << 20)) << write_case(c);
    counts.insert(e.count);
    small += e.count <= 8;
  }
  EXPECT_GT(small, kCases * 3 / 4);
  EXPECT_GT(counts.size(), 12u);
  EXPECT_GT(*counts.rbegin(), 40);
}

TEST(Experiments, RepeatsAreFewerOfALargerCase) {
  Several several(37);
  MutateContext context = several.context(0);
  std::int64_t most = 0;
  for (int i = 0; i < 300; ++i) {
    const Case c = drawn(context, ExperimentKind::kRepeat);
    ASSERT_GE(c.experiment.count, 2);
    ASSERT_LE(c.experiment.count, 300);
    most = std::max(most, c.experiment.count);
  }
  EXPECT_EQ(most, 300);
  Case large = drawn(context, ExperimentKind::kRepeat);
  large.dims = {{"T", 256}, {"N", 16384}};
  large.experiment.count = 300;
  large.experiment.calls.clear();
  ASSERT_TRUE(repair(large, context));
  EXPECT_LT(large.experiment.count, 10);
  EXPECT_GE(large.experiment.count, 2);
}

// Some faults need calls of the same shape in flight, some calls of another.
TEST(Experiments, MatesAreEqualAndMixedOften) {
  Several several(38);
  MutateContext context = several.context(0);
  int mates = 0, alone = 0, equal = 0, same_shape = 0, other_shape = 0, other_op = 0;
  constexpr int kCases = 1000;
  for (int i = 0; i < kCases; ++i) {
    const Case c = drawn(context, ExperimentKind::kThreads);
    alone += c.experiment.calls.empty();
    Case itself = c;
    itself.experiment = {};
    for (const Case& mate : c.experiment.calls) {
      ++mates;
      equal += mate == itself;
      same_shape += !(mate == itself) && mate.op == c.op && mate.dims == c.dims && mate.dtypes == c.dtypes;
      other_shape += mate.op == c.op && mate.dims != c.dims;
      other_op += mate.op != c.op;
    }
  }
  EXPECT_GT(alone, kCases / 5);
  EXPECT_LT(alone, kCases / 2);
  for (const int share : {equal, same_shape, other_shape}) EXPECT_GT(share, mates * 15 / 100);
  EXPECT_GT(other_op, mates * 3 / 100);
}

TEST(Experiments, AHistoryHasOneToFourCalls) {
  Several several(39);
  MutateContext context = several.context(0);
  std::set<std::size_t> counts;
  for (int i = 0; i < 300; ++i) counts.insert(drawn(context, ExperimentKind::kHistory).experiment.calls.size());
  EXPECT_EQ(counts, (std::set<std::size_t>{1, 2, 3, 4}));
}

TEST(Experiments, ParametersAndCallsChangeOneByOne) {
  Several several(40);
  MutateContext context = several.context(0);
  const Case start = drawn(context, ExperimentKind::kThreads);
  bool count = false, rounds = false, seed = false, added = false, dropped = false, changed = false;
  Case one = start;
  one.experiment.calls = {start};
  one.experiment.calls[0].experiment = {};
  for (int i = 0; i < 200; ++i) {
    Case c = start;
    if (change_experiment_parameters(c, context)) {
      count = count || c.experiment.count != start.experiment.count;
      rounds = rounds || c.experiment.rounds != start.experiment.rounds;
      seed = seed || c.experiment.seed != start.experiment.seed;
    }
    c = one;
    added = (add_call(c, context) && c.experiment.calls.size() == 2) || added;
    c = one;
    dropped = (drop_call(c, context) && c.experiment.calls.empty()) || dropped;
    c = one;
    changed = (change_call(c, context) && c.experiment.calls.size() == 1 &&
               !(c.experiment.calls[0] == one.experiment.calls[0])) ||
              changed;
  }
  EXPECT_TRUE(count && rounds && seed && added && dropped && changed);
  Case pair = start;
  pair.experiment = {};
  for (const auto apply : {change_experiment_parameters, add_call, drop_call, change_call})
    EXPECT_FALSE(apply(pair, context));
  Case history = one;
  history.experiment.kind = ExperimentKind::kHistory;
  EXPECT_FALSE(drop_call(history, context));  // it needs one
}

TEST(Experiments, RepairKeepsWhatIsLegalAndDropsWhatCannotBe) {
  Several several(41);
  MutateContext context = several.context(0);
  Case c;
  c.op = "scale";
  c.dims = {{"T", 4}, {"N", 8}};
  c.experiment.kind = ExperimentKind::kThreads;
  c.experiment.count = 200;
  c.experiment.rounds = 0;
  c.experiment.row = 7;
  Case mate;
  mate.op = "scale_grad";
  mate.dims = {{"T", 3}, {"N", 5}, {"unknown", 1}};
  mate.experiment.kind = ExperimentKind::kHistory;
  Case unknown;
  unknown.op = "nothing";
  Case not_shared;
  not_shared.op = "count";
  c.experiment.calls = {mate, unknown, not_shared};
  ASSERT_TRUE(repair(c, context));
  EXPECT_EQ(why_illegal_inside(c, context), std::nullopt);
  EXPECT_EQ(c.experiment.count, kMostThreads);
  EXPECT_EQ(c.experiment.rounds, 1);
  EXPECT_EQ(c.experiment.row, 0);
  ASSERT_EQ(c.experiment.calls.size(), 1u);
  EXPECT_EQ(c.experiment.calls[0].op, "scale_grad");
  EXPECT_EQ(c.experiment.calls[0].dims, (std::map<std::string, std::int64_t>{{"T", 3}, {"N", 5}}));
}

TEST(Experiments, ARowThatIsGoneBecomesTheLast) {
  Several several(42);
  MutateContext context = several.context(0);
  for (const std::int64_t rows : {5, 1, 0}) {
    Case c;
    c.dims = {{"T", rows}, {"N", 8}};
    c.experiment.kind = ExperimentKind::kRelation;
    c.experiment.relation = RelationKind::kRowAlone;
    c.experiment.row = 40;
    ASSERT_TRUE(repair(c, context));
    EXPECT_EQ(c.experiment.row, std::max<std::int64_t>(rows - 1, 0));
  }
}

TEST(Experiments, WhatTheRecordDoesNotAnswerBecomesAPair) {
  Several several(43);
  const auto kind_after = [&](std::size_t op, const Experiment& experiment) {
    MutateContext context = several.context(op);
    Case c;
    c.experiment = experiment;
    EXPECT_TRUE(repair(c, context));
    EXPECT_TRUE(c.experiment.kind != ExperimentKind::kPair || c.experiment == Experiment{});
    return c.experiment.kind;
  };
  Experiment e;
  e.kind = ExperimentKind::kGradient;
  EXPECT_EQ(kind_after(0, e), ExperimentKind::kPair);
  EXPECT_EQ(kind_after(1, e), ExperimentKind::kGradient);
  e.kind = ExperimentKind::kHistory;  // no calls
  EXPECT_EQ(kind_after(0, e), ExperimentKind::kPair);
  e.kind = ExperimentKind::kRelation;
  for (const RelationKind relation : {RelationKind::kRowAlone, RelationKind::kRowsPermuted, RelationKind::kInplace}) {
    e.relation = relation;
    EXPECT_EQ(kind_after(0, e), ExperimentKind::kRelation);
    EXPECT_EQ(kind_after(1, e), ExperimentKind::kPair);
  }
  e.relation = RelationKind::kDense;  // of a case that is dense
  EXPECT_EQ(kind_after(0, e), ExperimentKind::kPair);
}

TEST(Experiments, TheCallsShareTheByteLimit) {
  Several several(44);
  constexpr std::uint64_t kBytes = 40000;
  MutateContext context = several.context(0, kBytes);
  Case c;
  c.dims = {{"T", 64}, {"N", 64}};  // 32 KiB in f32
  c.dtypes["x"] = DType::kF32;
  ASSERT_TRUE(repair(c, context));
  const Case itself = c;
  c.experiment.kind = ExperimentKind::kHistory;
  c.experiment.calls.assign(3, itself);
  ASSERT_TRUE(repair(c, context));
  EXPECT_EQ(c.dims, itself.dims);
  EXPECT_FALSE(c.experiment.calls.empty());
  EXPECT_LE(bytes_of_all(c, context), kBytes);
  EXPECT_EQ(why_illegal_inside(c, context), std::nullopt);
}

TEST(Experiments, CrossoverLendsAnExperimentAndCalls) {
  Several several(45);
  MutateContext context = several.context(0);
  const Case threads = drawn(context, ExperimentKind::kThreads);
  Case plain;
  plain.dims = {{"T", 2}, {"N", 3}};
  ASSERT_TRUE(repair(plain, context));
  context.experiment_weights = kExperimentWeights;
  bool lent = false;
  for (int i = 0; i < 200 && !lent; ++i) {
    Case c = plain;
    lent = crossover(c, threads, context) && c.experiment.kind == ExperimentKind::kThreads;
  }
  EXPECT_TRUE(lent);
  Case history = plain;
  history.experiment.kind = ExperimentKind::kHistory;
  history.experiment.calls = {plain};
  MutateContext other_context = several.context(1);
  const Case other = drawn(other_context, ExperimentKind::kPair);
  ASSERT_TRUE(crossover(history, other, context));
  ASSERT_EQ(history.experiment.calls.size(), 2u);
  EXPECT_EQ(history.experiment.calls[1].op, "scale_grad");
  EXPECT_EQ(why_illegal_inside(history, context), std::nullopt);
}

}  // namespace
}  // namespace fusediff
