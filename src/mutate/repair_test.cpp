#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "mutate/schemas_test.h"
#include "mutate/scope.h"
#include "mutate/where.h"

namespace fusediff {
namespace {

TEST(Repair, AnEmptyCaseBecomesALegalOne) {
  for (const char* schema : {kGating, kGroups, kBackward}) {
    Workbench bench(schema);
    Case c;
    ASSERT_TRUE(repair(c, bench.context));
    EXPECT_EQ(c.op, bench.context.op.name);
    EXPECT_EQ(why_illegal(c, bench.context.op), std::nullopt);
  }
}

TEST(Repair, ALegalCaseStaysAsItIs) {
  Workbench bench(kGating);
  Case c;
  c.op = "moe_gating_topk";
  c.dims = {{"T", 3}, {"E", 96}, {"K", 7}, {"G", 4}, {"KG", 2}};
  c.attrs["norm_type"] = std::string("softmax");
  c.dtypes["x"] = DType::kBF16;
  c.inputs["x"].fill.kind = FillKind::kSpecial;
  c.inputs["x"].patches = {{1, 2, 8, 15, {}}};
  c.inputs["x"].set = {{287, Literal{Literal::Kind::kBits, 0, 0, 0x7fc1}}};
  c.layout["x"].stride = std::vector<std::int64_t>{1, 3};
  ASSERT_EQ(why_illegal(c, bench.context.op), std::nullopt);
  const Case before = c;
  ASSERT_TRUE(repair(c, bench.context));
  EXPECT_EQ(c, before);
}

// A rule is met by moving one side or the other, a little.
TEST(Repair, WhereIsMetFromBothSides) {
  std::set<std::int64_t> experts, groups;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Workbench bench(kGating, seed);
    Case c;
    c.dims = {{"T", 2}, {"E", 100}, {"K", 4}, {"G", 7}, {"KG", 1}};
    ASSERT_TRUE(repair(c, bench.context));
    EXPECT_EQ(why_illegal(c, bench.context.op), std::nullopt);
    EXPECT_EQ(c.dims["T"], 2);
    EXPECT_EQ(c.dims["E"] % c.dims["G"], 0);
    experts.insert(c.dims["E"]);
    groups.insert(c.dims["G"]);
  }
  EXPECT_TRUE(experts.contains(100));
  EXPECT_TRUE(experts.contains(98));
  EXPECT_TRUE(groups.contains(7));
  EXPECT_TRUE(groups.contains(5));
  EXPECT_LE(*experts.rbegin(), 112);
}

TEST(Repair, WhereOfRandomSizesIsAlwaysMet) {
  Workbench bench(kGating, 9);
  CaseScope scope(Case{}, bench.context.op);
  for (int i = 0; i < 5000; ++i) {
    for (std::size_t dim = 0; dim < scope.dims().size(); ++dim) {
      const DimRule& rule = bench.context.op.dims[dim];
      scope.dims()[dim] = bench.rng.between(rule.low, rule.high);
    }
    ASSERT_TRUE(meet_where(scope, bench.rng));
    ASSERT_TRUE(where_holds(scope));
  }
}

TEST(Repair, RulesOverAttributesAreMetByThem) {
  std::set<std::string> modes;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Workbench bench(kGroups, seed);
    Case c;
    c.dims = {{"T", 4}, {"K", 2}, {"E", 8}, {"H", 16}, {"N", 5}};
    c.attrs["mode"] = std::string("keep");
    ASSERT_TRUE(repair(c, bench.context));
    EXPECT_EQ(why_illegal(c, bench.context.op), std::nullopt);
    modes.insert(std::get<std::string>(c.attrs["mode"]));
  }
  EXPECT_EQ(modes, (std::set<std::string>{"drop", "keep"}));
}

TEST(Repair, ConditionalAttributesGoWhereTheyDoNotHold) {
  Workbench bench(kGroups);
  Case c;
  c.dims = {{"T", 4}, {"K", 2}, {"E", 8}, {"H", 16}, {"N", 8}};
  c.attrs = {{"mode", std::string("keep")}, {"limit", std::int64_t{5}}, {"cap", 1.5}, {"unknown", std::int64_t{1}}};
  ASSERT_TRUE(repair(c, bench.context));
  EXPECT_EQ(why_illegal(c, bench.context.op), std::nullopt);
  EXPECT_FALSE(c.attrs.contains("unknown"));
  EXPECT_FALSE(c.attrs.contains("limit"));
  EXPECT_FALSE(c.attrs.contains("cap"));
}

TEST(Repair, DropsWhatFellOutside) {
  Workbench bench(kGating);
  Case c;
  c.dims = {{"T", 2}, {"E", 16}, {"K", 2}, {"G", 1}, {"KG", 1}};
  c.inputs["x"].fill.kind = FillKind::kNormal;
  c.inputs["x"].fill.b = 1;
  Fill zero;
  c.inputs["x"].patches = {{0, 7, 8, 40, zero}, {2, 3, 0, 3, zero}, {0, 0, 16, 17, zero}};
  c.inputs["x"].set = {{31, {}}, {32, {}}, {-1, {}}};
  ASSERT_TRUE(repair(c, bench.context));
  EXPECT_EQ(why_illegal(c, bench.context.op), std::nullopt);
  EXPECT_EQ(c.inputs["x"].patches, (std::vector<Patch>{{0, 1, 8, 15, zero}}));
  ASSERT_EQ(c.inputs["x"].set.size(), 1u);
  EXPECT_EQ(c.inputs["x"].set.begin()->first, 31);
}

TEST(Repair, StridesFollowTheShapeInTheirOrder) {
  Workbench bench(kGating);
  Case c;
  c.dims = {{"T", 8}, {"E", 600}, {"K", 2}, {"G", 1}, {"KG", 1}};
  c.layout["x"].stride = std::vector<std::int64_t>{520, 1};
  ASSERT_TRUE(repair(c, bench.context));
  EXPECT_EQ(c.layout.find("x"), c.layout.end());  // 600 wide: dense
  c.layout["x"].stride = std::vector<std::int64_t>{1, 4};
  ASSERT_TRUE(repair(c, bench.context));
  EXPECT_EQ(*c.layout.at("x").stride, (std::vector<std::int64_t>{1, 8}));
  c.layout["x"].stride = std::vector<std::int64_t>{1, 2, 3};
  ASSERT_TRUE(repair(c, bench.context));
  EXPECT_EQ(why_illegal(c, bench.context.op), std::nullopt);
  c.layout["y"].stride = std::vector<std::int64_t>{9, 1};  // dense by the schema
  c.layout["nothing"].offset = 3;
  ASSERT_TRUE(repair(c, bench.context));
  EXPECT_EQ(why_illegal(c, bench.context.op), std::nullopt);
  EXPECT_FALSE(c.layout.contains("y") || c.layout.contains("nothing"));
}

TEST(Repair, InplaceIsKeptWhereItIsLegal) {
  Workbench bench(kBackward);
  Case c;
  c.dims = {{"B", 2}, {"S", 4}, {"C", 4}};
  c.layout["y"].on = "x";
  ASSERT_TRUE(repair(c, bench.context));
  EXPECT_EQ(why_illegal(c, bench.context.op), std::nullopt);
  EXPECT_EQ(c.layout["y"].on, "x");
  EXPECT_EQ(c.layout["grad_x"].on, "grad");  // always
  // A repeated input cannot be written on.
  c.layout["x"].stride = std::vector<std::int64_t>{0, 4, 1};
  ASSERT_TRUE(repair(c, bench.context));
  EXPECT_EQ(why_illegal(c, bench.context.op), std::nullopt);
  c.layout["y"].on = "grad";
  ASSERT_TRUE(repair(c, bench.context));
  EXPECT_EQ(why_illegal(c, bench.context.op), std::nullopt);
  EXPECT_EQ(c.layout["y"].on, "");
}

TEST(Repair, InputsComeAndGoWithTheirConditions) {
  Workbench bench(kBackward);
  Case c;
  c.dims = {{"B", 2}, {"S", 4}, {"C", 4}};
  c.attrs["masked"] = std::int64_t{1};
  c.inputs["h"].fill.kind = FillKind::kNormal;  // saved: not for the case to draw
  c.inputs["nothing"] = {};
  ASSERT_TRUE(repair(c, bench.context));
  EXPECT_TRUE(c.inputs.contains("mask"));
  EXPECT_TRUE(c.inputs.contains("raw"));
  EXPECT_FALSE(c.inputs.contains("h") || c.inputs.contains("nothing"));
  c.attrs["masked"] = std::int64_t{0};
  ASSERT_TRUE(repair(c, bench.context));
  EXPECT_FALSE(c.inputs.contains("mask"));
  EXPECT_EQ(why_illegal(c, bench.context.op), std::nullopt);
}

TEST(Repair, TheByteLimitShrinksDims) {
  Workbench bench(kGating);
  MutateContext small{bench.context.op, bench.rng, 4096, bench.probe};
  for (int i = 0; i < 200; ++i) {
    Case c;
    c.dims = {{"T", 4096}, {"E", 2048}, {"K", 10}, {"G", 1}, {"KG", 1}};
    ASSERT_TRUE(repair(c, small));
    EXPECT_EQ(why_illegal(c, bench.context.op, 4096), std::nullopt);
  }
}

// More distinct values than the range holds: no rule of `where` says so.
TEST(Repair, SizesMoveWhereNoValueIsLegal) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Workbench bench(kGroups, seed);
    Case c;
    c.dims = {{"T", 4}, {"K", 8}, {"E", 3}, {"H", 16}, {"N", 5}};
    c.attrs["mode"] = std::string("drop");
    ASSERT_TRUE(repair(c, bench.context));
    EXPECT_EQ(why_illegal(c, bench.context.op), std::nullopt);
  }
}

}  // namespace
}  // namespace fusediff
