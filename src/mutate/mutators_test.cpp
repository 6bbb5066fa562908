// What each mutator can reach, collected over many seeds.
#include "mutate/mutators.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>

#include "mutate/roles.h"
#include "mutate/schemas_test.h"

namespace fusediff {
namespace {

// A plain legal case of the schema's first operator: each result of the mutator on it, unrepaired.
void each_result(const char* schema, bool (*apply)(Case&, MutateContext&), int draws,
                 const std::function<void(const Case& before, const Case& after, const MutateContext&)>& look,
                 const std::function<void(Case&)>& prepare = {}) {
  Workbench bench(schema, 11);
  Case plain;
  plain.op = bench.context.op.name;
  if (prepare) prepare(plain);
  ASSERT_TRUE(repair(plain, bench.context));
  ASSERT_EQ(why_illegal(plain, bench.context.op), std::nullopt);
  int changed = 0;
  for (int i = 0; i < draws; ++i) {
    Case c = plain;
    if (!apply(c, bench.context)) {
      ASSERT_EQ(c, plain);
      continue;
    }
    ++changed;
    look(plain, c, bench.context);
  }
  EXPECT_GT(changed, 0);
}

void ordinary_gating(Case& c) { c.dims = {{"T", 4}, {"E", 64}, {"K", 4}, {"G", 1}, {"KG", 1}}; }

TEST(Mutators, OneDimReachesEdgesAndLeavesTheOthers) {
  std::set<std::int64_t> rows, experts;
  each_result(
      kGating, change_one_dim, 20000,
      [&](const Case& before, const Case& after, const MutateContext&) {
        int moved = 0;
        for (const auto& [name, size] : after.dims) moved += size != before.dims.at(name);
        EXPECT_LE(moved, 4);  // the budget may shrink others, never all
        rows.insert(after.dims.at("T"));
        experts.insert(after.dims.at("E"));
      },
      ordinary_gating);
  for (const std::int64_t size :
       {0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256}) {
    EXPECT_TRUE(rows.contains(size)) << size;
  }
  for (const std::int64_t size : {1, 31, 32, 33, 63, 64, 65, 128, 256, 257, 512, 2048}) {
    EXPECT_TRUE(experts.contains(size)) << size;
  }
  EXPECT_FALSE(experts.contains(0));
  EXPECT_LE(*experts.rbegin(), 2048);
}

TEST(Mutators, TwoDimsMoveTogether) {
  bool equal = false, product = false, both_odd = false;
  each_result(
      kGating, change_two_dims, 5000,
      [&](const Case& before, const Case& after, const MutateContext&) {
        const std::int64_t rows = after.dims.at("T"), experts = after.dims.at("E");
        equal = equal || (rows == experts && rows != before.dims.at("T") && experts != before.dims.at("E"));
        product = product || (rows == 8 && experts == 32);
        both_odd = both_odd || (rows % 8 == 1 && experts % 8 == 1 && rows > 8);
      },
      ordinary_gating);
  EXPECT_TRUE(equal);
  EXPECT_TRUE(product);
  EXPECT_TRUE(both_odd);
}

TEST(Mutators, TypicalDimsReachEveryCombination) {
  std::set<std::pair<std::int64_t, std::int64_t>> pairs;
  each_result(
      kGating, change_to_typical_dims, 2000,
      [&](const Case&, const Case& after, const MutateContext&) {
        pairs.insert({after.dims.at("E"), after.dims.at("K")});
      },
      ordinary_gating);
  // All but the one that is there.
  for (const std::int64_t e : {64, 128, 256, 512}) {
    for (const std::int64_t k : {2, 4, 6, 8, 10}) {
      if (e != 64 || k != 4) {
        EXPECT_TRUE(pairs.contains({e, k})) << e << " " << k;
      }
    }
  }
}

TEST(Mutators, ZeroOnlyWhereItIsTried) {
  std::set<std::string> zeros;
  each_result(
      kGroups, change_dim_to_zero, 200,
      [&](const Case&, const Case& after, const MutateContext&) {
        for (const auto& [name, size] : after.dims) {
          if (size == 0) zeros.insert(name);
        }
      },
      [](Case& c) {
        c.dims = {{"T", 2}, {"K", 2}, {"E", 4}, {"H", 16}, {"N", 4}};
      });
  EXPECT_EQ(zeros, (std::set<std::string>{"N", "T"}));
}

TEST(Mutators, DTypesReachEveryChoice) {
  std::set<std::pair<std::string, DType>> seen;
  each_result(kGroups, change_dtype, 500, [&](const Case& before, const Case& after, const MutateContext&) {
    for (const auto& [name, dtype] : after.dtypes) {
      if (dtype != before.dtypes.at(name)) seen.insert({name, dtype});
    }
  });
  EXPECT_EQ(seen, (std::set<std::pair<std::string, DType>>{{"tokens", DType::kF8E4M3FN},
                                                           {"tokens", DType::kF8E5M2},
                                                           {"picks", DType::kI64},
                                                           {"steps", DType::kU8},
                                                           {"steps", DType::kI16},
                                                           {"steps", DType::kBool}}));
}

TEST(Mutators, AttributesReachOffDefaultsAndComeBack) {
  std::set<std::string> off;
  each_result(kGating, change_attribute, 500, [&](const Case& before, const Case& after, const MutateContext&) {
    EXPECT_NE(before.attrs, after.attrs);
    for (const auto& [name, value] : after.attrs) off.insert(name);
  });
  EXPECT_EQ(off, (std::set<std::string>{"eps", "norm_type", "renorm", "routed_scaling_factor"}));
  bool back = false;
  each_result(
      kGating, change_attribute, 500,
      [&](const Case&, const Case& after, const MutateContext&) { back = back || after.attrs.empty(); },
      [](Case& c) { c.attrs["renorm"] = std::int64_t{1}; });
  EXPECT_TRUE(back);
}

TEST(Mutators, CornersReachBothEnds) {
  std::set<double> factors;
  std::set<std::int64_t> bools;
  each_result(kGating, change_attributes_to_corners, 200, [&](const Case&, const Case& after, const MutateContext&) {
    factors.insert(std::get<double>(after.attrs.at("routed_scaling_factor")));
    bools.insert(std::get<std::int64_t>(after.attrs.at("renorm")));
  });
  EXPECT_EQ(factors, (std::set<double>{0.5, 4.0}));
  EXPECT_EQ(bools, (std::set<std::int64_t>{0, 1}));
}

TEST(Mutators, PlacesAndOffsetsWithinACacheLine) {
  std::set<std::string> named;
  std::set<Place> places;
  std::set<std::int64_t> offsets, aligned;
  each_result(
      kGating, change_place, 5000,
      [&](const Case&, const Case& after, const MutateContext&) {
        for (const auto& [name, layout] : after.layout) {
          named.insert(name);
          places.insert(layout.place);
          if (name == "x") offsets.insert(layout.offset);
          if (layout.place == Place::kEnd) {
            EXPECT_EQ(layout.offset, 0);
          }
        }
      },
      [](Case& c) {
        ordinary_gating(c);
        c.inputs["bias"].fill.kind = FillKind::kUniform;
        c.layout["x"].place = Place::kStart;
      });
  EXPECT_EQ(named, (std::set<std::string>{"bias", "expert_idx", "norm_out", "rank", "x", "y"}));
  EXPECT_EQ(places, (std::set<Place>{Place::kStart, Place::kMiddle}));  // kEnd without offset is no entry
  for (std::int64_t offset = 0; offset <= 16; ++offset) EXPECT_TRUE(offsets.contains(offset)) << offset;
  EXPECT_LE(*offsets.rbegin(), 16);
  each_result(kGroups, change_place, 5000, [&](const Case&, const Case& after, const MutateContext&) {
    const auto at = after.layout.find("tokens");
    if (at != after.layout.end()) aligned.insert(at->second.offset);
  });
  EXPECT_EQ(aligned, (std::set<std::int64_t>{0, 4, 8, 12, 16}));  // 16 bytes of f32
}

TEST(Mutators, StridesAreOfEveryKindThatTheRuleAllows) {
  bool gap = false, transposed = false, repeated_row = false, repeated_column = false, inner_gap = false;
  std::set<std::string> named;
  each_result(
      kGating, change_strides, 5000,
      [&](const Case&, const Case& after, const MutateContext&) {
        const auto& [name, layout] = *after.layout.begin();
        named.insert(name);
        if (name != "x") return;
        const std::vector<std::int64_t>& stride = *layout.stride;
        gap = gap || (stride[1] == 1 && stride[0] > 64);
        inner_gap = inner_gap || (stride[1] > 1 && stride[0] >= stride[1] * 64);
        transposed = transposed || (stride[0] == 1 && stride[1] >= 4);
        repeated_row = repeated_row || (stride[0] == 0 && stride[1] != 0);
        repeated_column = repeated_column || (stride[1] == 0 && stride[0] != 0);
      },
      ordinary_gating);
  EXPECT_TRUE(gap && transposed && repeated_row && repeated_column && inner_gap);
  EXPECT_EQ(named, std::set<std::string>{"x"});
  // inner_dense: unit stride in the last dim, never 0; outputs of layout any never repeat either.
  each_result(
      kGroups, change_strides, 5000,
      [&](const Case&, const Case& after, const MutateContext&) {
        const auto& [name, layout] = *after.layout.begin();
        named.insert(name);
        for (const std::int64_t stride : *layout.stride) {
          if (name == "tokens" || name == "out") {
            EXPECT_NE(stride, 0);
          }
        }
        if (name == "tokens") {
          EXPECT_EQ(layout.stride->back(), 1);
        }
        if (name == "picks") {  // distinct in a row
          EXPECT_NE(layout.stride->back(), 0);
        }
      },
      [](Case& c) {
        c.dims = {{"T", 5}, {"K", 3}, {"E", 8}, {"H", 16}, {"N", 15}};
        c.attrs["mode"] = std::string("keep");
      });
  EXPECT_EQ(named, (std::set<std::string>{"labels", "out", "picks", "steps", "tokens", "x"}));
}

TEST(Mutators, InplaceGoesOnAndOff) {
  bool on = false, off = false;
  each_result(kBackward, change_inplace, 100,
              [&](const Case&, const Case& after, const MutateContext&) { on = on || after.layout.at("y").on == "x"; });
  each_result(
      kBackward, change_inplace, 100,
      [&](const Case&, const Case& after, const MutateContext&) { off = off || !after.layout.contains("y"); },
      [](Case& c) { c.layout["y"].on = "x"; });
  EXPECT_TRUE(on);
  EXPECT_TRUE(off);
}

// Of each role: exactly the recipes that are meant for it.
TEST(Mutators, FillsReachEveryRecipeOfTheRole) {
  std::map<std::string, std::set<FillKind>> seen;
  const auto look = [&](const Case& before, const Case& after, const MutateContext&) {
    for (const auto& [name, value] : after.inputs) {
      if (!(value == before.inputs.at(name))) seen[name].insert(value.fill.kind);
    }
  };
  each_result(kGroups, change_fill, 20000, look, [](Case& c) { c.dims = {{"T", 2}, {"H", 8}, {"E", 8}, {"K", 2}}; });
  each_result(kBackward, change_fill, 20000, look, [](Case& c) {
    c.dims = {{"B", 2}, {"S", 3}, {"C", 3}};
    c.attrs["masked"] = std::int64_t{1};
  });
  using enum FillKind;
  const std::set<FillKind> any = {kNormal,  kUniform,  kGrid, kConstant, kSpecial, kFiniteSpecial,
                                  kShifted, kNegative, kRamp, kOneHot,   kBits};
  const std::set<FillKind> groups = {kIndexUniform, kSkewed, kUnused, kPermutation};
  EXPECT_EQ(seen["tokens"], any);
  EXPECT_EQ(seen["x"], any);
  EXPECT_EQ(seen["grad"], any);
  EXPECT_EQ(seen["raw"], any);
  EXPECT_EQ(seen["score"], any);
  for (const char* name : {"picks", "order", "labels", "sizes", "free_sizes", "starts"}) {
    EXPECT_EQ(seen[name], groups) << name;
  }
  EXPECT_EQ(seen["mask"], (std::set<FillKind>{kIndexUniform, kUnused, kSkewed, kPermutation, kConstant, kOneHot}));
  EXPECT_EQ(seen["p"], (std::set<FillKind>{kUniform, kNormal, kGrid, kConstant, kRamp, kOneHot, kShifted, kNegative}));
  EXPECT_EQ(seen["scale"],
            (std::set<FillKind>{kUniform, kNormal, kGrid, kConstant, kRamp, kShifted, kNegative, kFiniteSpecial}));
  EXPECT_FALSE(seen.contains("h"));
  // Every recipe is one that draw_values takes.
  const Schema schema = schema_of(kBackward);
  for (const InputRule& rule : schema.operators.front().inputs) {
    const auto legal = legal_fills(rule.role);
    for (const FillKind kind : seen[rule.name]) {
      EXPECT_NE(std::find(legal.begin(), legal.end(), kind), legal.end()) << rule.name << " " << name_of(kind);
    }
  }
}

TEST(Mutators, SeedChangesNothingElse) {
  each_result(kGating, change_seed, 100, [](const Case& before, const Case& after, const MutateContext&) {
    Case same = after;
    same.inputs["x"].fill.seed = before.inputs.at("x").fill.seed;
    EXPECT_EQ(same, before);
  });
}

TEST(Mutators, PatchesReachRowsColumnsTilesAndDeadValues) {
  bool one_row = false, all_rows = false, whole_row = false, tile = false, element = false;
  bool dead = false, zero = false, nan = false, special = false;
  std::set<std::int64_t> edges;
  each_result(
      kGating, add_patch, 20000,
      [&](const Case&, const Case& after, const MutateContext&) {
        const auto at = after.inputs.find("x");
        if (at->second.patches.empty()) return;
        const Patch& patch = at->second.patches.front();
        one_row = one_row || (patch.row_low == patch.row_high && patch.row_low == 5);
        all_rows = all_rows || (patch.row_low == 0 && patch.row_high == 39);
        whole_row = whole_row || (patch.column_low == 0 && patch.column_high == 255);
        element = element || (patch.row_low == patch.row_high && patch.column_low == patch.column_high);
        tile =
            tile || (patch.row_low == 16 && patch.row_high == 31 && patch.column_low == 64 && patch.column_high == 127);
        edges.insert(patch.column_low);
        edges.insert(patch.column_high + 1);
        special = special || patch.fill.kind == FillKind::kSpecial;
        if (patch.fill.kind != FillKind::kConstant) return;
        const Literal& constant = patch.fill.constant;
        nan = nan || constant.kind == Literal::Kind::kBits;
        dead = dead || (std::isinf(constant.real) && constant.real < 0);
        zero = zero || (constant.kind == Literal::Kind::kReal && constant.real == 0);
      },
      [](Case& c) {
        c.dims = {{"T", 40}, {"E", 256}, {"K", 4}, {"G", 1}, {"KG", 1}};
      });
  EXPECT_TRUE(one_row && all_rows && whole_row && tile && element);
  EXPECT_TRUE(dead && zero && nan && special);
  for (std::int64_t edge = 0; edge <= 256; edge += 8) EXPECT_TRUE(edges.contains(edge)) << edge;
}

TEST(Mutators, PatchesOfRolesStayLegal) {
  std::set<std::string> named;
  const auto look = [&](const Case&, const Case& after, const MutateContext& context) {
    for (const auto& [name, value] : after.inputs) {
      if (!value.patches.empty()) named.insert(name);
    }
    EXPECT_EQ(why_illegal(after, context.op), std::nullopt);
  };
  each_result(kGroups, add_patch, 3000, look, [](Case& c) { c.dims = {{"T", 9}, {"H", 16}, {"E", 8}, {"K", 2}}; });
  each_result(kBackward, add_patch, 3000, look, [](Case& c) {
    c.dims = {{"B", 3}, {"S", 40}, {"C", 8}};
    c.attrs["masked"] = std::int64_t{1};
  });
  EXPECT_EQ(named,
            (std::set<std::string>{"grad", "labels", "mask", "p", "raw", "scale", "score", "steps", "tokens", "x"}));
}

TEST(Mutators, ElementsReachSpecialsNeighboursCopiesAndRangeEnds) {
  bool nan = false, inf = false, minus_zero = false, denormal = false;
  std::set<std::int64_t> labels, columns;
  std::set<std::string> named;
  each_result(
      kGroups, set_elements, 20000,
      [&](const Case&, const Case& after, const MutateContext&) {
        for (const auto& [name, value] : after.inputs) {
          if (!value.set.empty()) named.insert(name);
        }
        for (const auto& [index, literal] : after.inputs.at("tokens").set) {
          nan = nan || literal.kind == Literal::Kind::kBits;
          inf = inf || std::isinf(literal.real);
          minus_zero = minus_zero || (literal.real == 0 && std::signbit(literal.real));
          denormal = denormal || (literal.real > 0 && literal.real < 1.17e-38);
          columns.insert(index % 16);
        }
        for (const auto& [index, literal] : after.inputs.at("labels").set) labels.insert(literal.integer);
      },
      [](Case& c) {
        c.dims = {{"T", 9}, {"H", 16}, {"E", 8}, {"K", 2}};
      });
  EXPECT_TRUE(nan && inf && minus_zero && denormal);
  EXPECT_EQ(columns.size(), 16u);
  EXPECT_TRUE(labels.contains(0) && labels.contains(15) && labels.contains(-100) && labels.contains(7));
  EXPECT_EQ(named, (std::set<std::string>{"free_sizes", "labels", "order", "picks", "steps", "tokens"}));
}

TEST(Mutators, ElementsReachNeighboursAndCopies) {
  bool neighbour = false, copy = false;
  Workbench bench(kGating);
  Case plain;
  plain.op = "moe_gating_topk";
  ordinary_gating(plain);
  ASSERT_TRUE(repair(plain, bench.context));
  const auto call = bind(plain, bench.context.op, kTestBytes);
  ASSERT_TRUE(call.ok());
  const auto bytes = draw_values(plain.inputs["x"], bench.context.op.inputs[0], call->inputs[0], *call);
  ASSERT_TRUE(bytes.ok());
  std::set<double> held;
  for (std::size_t i = 0; i < 256; ++i) {
    held.insert(float_value(DType::kF32, load_bits(DType::kF32, bytes->data() + i * 4)));
  }
  for (int i = 0; i < 500; ++i) {
    Case c = plain;
    if (!set_elements(c, bench.context)) continue;
    for (const auto& [index, literal] : c.inputs["x"].set) {
      const std::uint64_t was = load_bits(DType::kF32, bytes->data() + index * 4);
      const std::uint64_t now = round_to_bits(DType::kF32, literal.real);
      neighbour = neighbour || (now != was && ulp_distance(DType::kF32, was, now) == 1);
      copy = copy || (now != was && held.contains(literal.real));
    }
  }
  EXPECT_TRUE(neighbour);
  EXPECT_TRUE(copy);
}

TEST(Mutators, WhatWasAddedCanBeDropped) {
  const auto prepare = [](Case& c) {
    ordinary_gating(c);
    c.inputs["x"].fill.kind = FillKind::kNormal;
    c.inputs["x"].fill.b = 1;
    c.inputs["x"].patches = {{0, 0, 0, 3, c.inputs["x"].fill}, {1, 1, 0, 3, c.inputs["x"].fill}};
    c.inputs["x"].set = {{3, {}}, {4, {}}};
    c.layout["x"].place = Place::kStart;
  };
  std::set<std::size_t> set, patches;
  each_result(
      kGating, drop_elements, 100,
      [&](const Case&, const Case& after, const MutateContext&) { set.insert(after.inputs.at("x").set.size()); },
      prepare);
  each_result(
      kGating, drop_patch, 100,
      [&](const Case&, const Case& after, const MutateContext&) {
        patches.insert(after.inputs.at("x").patches.size());
      },
      prepare);
  each_result(
      kGating, drop_layout, 10,
      [&](const Case&, const Case& after, const MutateContext&) { EXPECT_TRUE(after.layout.empty()); }, prepare);
  EXPECT_EQ(set, (std::set<std::size_t>{0, 1}));
  EXPECT_EQ(patches, (std::set<std::size_t>{1}));
}

TEST(Mutators, OptionalTensorsComeAndGo) {
  bool added = false, unwanted = false, removed = false, wanted = false;
  each_result(kGating, change_presence, 50, [&](const Case&, const Case& after, const MutateContext&) {
    added = added || after.inputs.contains("bias");
  });
  each_result(kGating, change_unwanted, 50, [&](const Case&, const Case& after, const MutateContext&) {
    unwanted = unwanted || after.unwanted == std::vector<std::string>{"rank"};
  });
  const auto prepare = [](Case& c) {
    c.inputs["bias"].fill.kind = FillKind::kUniform;
    c.unwanted = {"rank"};
  };
  each_result(
      kGating, change_presence, 50,
      [&](const Case&, const Case& after, const MutateContext&) {
        removed = removed || !after.inputs.contains("bias");
      },
      prepare);
  each_result(
      kGating, change_unwanted, 50,
      [&](const Case&, const Case& after, const MutateContext&) { wanted = wanted || after.unwanted.empty(); },
      prepare);
  EXPECT_TRUE(added && unwanted && removed && wanted);
}

}  // namespace
}  // namespace fusediff
