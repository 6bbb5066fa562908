#include "mutate/mutate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "mutate/schemas_test.h"

namespace fusediff {
namespace {

// Random cases, chains of mutations on them, crossings of both: everything that leaves is legal.
void expect_legal_chains(const char* schema, int chains, int length) {
  Workbench bench(schema, 21);
  Case other;
  int unchanged = 0;
  for (int chain = 0; chain < chains; ++chain) {
    std::optional<Case> c = random_case(bench.context);
    ASSERT_TRUE(c) << chain;
    ASSERT_EQ(why_illegal_inside(*c, bench.context), std::nullopt) << write_case(*c);
    for (int i = 0; i < length; ++i) {
      Case next = *c;
      const bool crossed = chain > 0 && i % 7 == 3;
      const bool changed = crossed ? crossover(next, other, bench.context) : mutate(next, bench.context);
      if (!changed) {
        ++unchanged;
        continue;
      }
      ASSERT_EQ(why_illegal_inside(next, bench.context), std::nullopt)
          << (crossed ? "crossed " : "mutated ") << write_case(*c) << "\ninto " << write_case(next);
      const auto read = parse_case(write_case(next));
      ASSERT_TRUE(read.ok()) << read.error().what;
      ASSERT_EQ(write_case(*read), write_case(next));
      c = std::move(next);
    }
    other = *c;
  }
  EXPECT_LT(unchanged, chains * length / 20);
}

TEST(Mutate, ChainsOfGatingStayLegal) { expect_legal_chains(kGating, 700, 10); }
TEST(Mutate, ChainsOfGroupsStayLegal) { expect_legal_chains(kGroups, 700, 10); }
TEST(Mutate, ChainsOfBackwardStayLegal) { expect_legal_chains(kBackward, 700, 10); }

TEST(Mutate, TheSameSeedGivesTheSameCases) {
  for (const char* schema : {kGating, kGroups, kBackward}) {
    std::string texts[2];
    for (std::string& text : texts) {
      Workbench bench(schema, 5);
      for (int i = 0; i < 50; ++i) {
        std::optional<Case> c = random_case(bench.context);
        ASSERT_TRUE(c);
        mutate(*c, bench.context);
        text += write_case(*c) + "\n";
      }
    }
    EXPECT_EQ(texts[0], texts[1]);
  }
}

TEST(Mutate, RandomGatingCasesSpread) {
  Workbench bench(kGating, 6);
  std::set<std::int64_t> rows, experts, picks, groups;
  std::set<DType> dtypes;
  int empty = 0, small = 0, bias = 0;
  constexpr int kCases = 4000;
  for (int i = 0; i < kCases; ++i) {
    const std::optional<Case> c = random_case(bench.context);
    ASSERT_TRUE(c);
    const std::int64_t t = c->dims.at("T"), e = c->dims.at("E");
    rows.insert(t);
    experts.insert(e);
    picks.insert(c->dims.at("K"));
    groups.insert(c->dims.at("G"));
    dtypes.insert(c->dtypes.at("x"));
    empty += t == 0;
    small += t * e <= 65536;
    bias += c->inputs.contains("bias");
  }
  EXPECT_EQ(dtypes.size(), 3u);
  EXPECT_EQ(groups.size(), 16u);
  EXPECT_GT(rows.size(), 80u);
  EXPECT_GT(experts.size(), 250u);
  EXPECT_GT(picks.size(), 45u);
  EXPECT_GT(empty, kCases / 25);
  EXPECT_LT(empty, kCases / 4);
  EXPECT_GT(small, kCases * 97 / 100);
  EXPECT_GT(bias, kCases / 3);
  EXPECT_LT(bias, kCases * 2 / 3);
}

TEST(Mutate, EveryMutatorOfTheTableHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const Mutator& mutator : mutators()) {
    EXPECT_TRUE(names.insert(mutator.name).second) << mutator.name;
    EXPECT_NE(mutator.apply, nullptr);
  }
}

// One in eight, so that the runs that a tie costs stay a share of the whole.
TEST(Mutate, TiesAreOneInEightWhereThereIsAProbe) {
  Workbench bench(kGating, 7);
  int asked = 0;
  bench.probe = [&](const Case&, std::size_t, bool) {
    ++asked;
    return std::optional<Ranking>();
  };
  std::optional<Case> start = random_case(bench.context);
  ASSERT_TRUE(start);
  for (int i = 0; i < 2000; ++i) {
    Case c = *start;
    mutate(c, bench.context);
  }
  EXPECT_GT(asked, 180);
  EXPECT_LT(asked, 320);
}

TEST(Crossover, TakesOfBoth) {
  Workbench bench(kGating, 8);
  Case a, b;
  a.dims = {{"T", 3}, {"E", 32}, {"K", 2}, {"G", 1}, {"KG", 1}};
  b.dims = {{"T", 5}, {"E", 64}, {"K", 4}, {"G", 2}, {"KG", 2}};
  b.attrs["norm_type"] = std::string("softmax");
  b.dtypes["x"] = DType::kBF16;
  b.inputs["x"].fill.kind = FillKind::kSpecial;
  b.inputs["bias"].fill.kind = FillKind::kUniform;
  b.layout["x"].place = Place::kMiddle;
  ASSERT_TRUE(repair(a, bench.context));
  ASSERT_TRUE(repair(b, bench.context));
  bool dims = false, attrs = false, dtypes = false, fills = false, added = false, layout = false, mixed = false;
  for (int i = 0; i < 500; ++i) {
    Case c = a;
    if (!crossover(c, b, bench.context)) continue;
    ASSERT_EQ(why_illegal(c, bench.context.op), std::nullopt);
    dims = dims || c.dims == b.dims;
    mixed = mixed || (c.dims["T"] == 5 && c.dims["E"] == 32);
    attrs = attrs || c.attrs == b.attrs;
    dtypes = dtypes || c.dtypes == b.dtypes;
    fills = fills || c.inputs["x"].fill == b.inputs["x"].fill;
    added = added || c.inputs.contains("bias");
    layout = layout || c.layout == b.layout;
  }
  EXPECT_TRUE(dims && mixed && attrs && dtypes && fills && added && layout);
}

TEST(Crossover, OfAnotherOperatorIsACopyOfTheOneThatFits) {
  Workbench bench(kGating, 9);
  std::optional<Case> c = random_case(bench.context);
  ASSERT_TRUE(c);
  const Case before = *c;
  Case other;
  other.op = "weighted";
  EXPECT_TRUE(crossover(*c, other, bench.context));
  EXPECT_EQ(*c, before);
  EXPECT_TRUE(crossover(other, before, bench.context));
  EXPECT_EQ(other, before);
}

}  // namespace
}  // namespace fusediff
