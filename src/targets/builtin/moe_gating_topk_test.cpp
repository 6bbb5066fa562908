#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "builtin/paths_agree.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Sizes {
  int64_t tokens, experts, k, groups, kept;
};

struct Options {
  int64_t mode = 0;
  bool renorm = false;
  bool softmax = false;
  double scale = 1.0;
  double eps = 1e-20;
};

Rig make_rig(int32_t dtype, const Sizes& s, const Options& o) {
  Rig rig("moe_gating_topk");
  const int32_t wide = dtype == FUSEDIFF_F64 ? FUSEDIFF_F64 : FUSEDIFF_F32;
  rig.input("x", dtype, {s.tokens, s.experts});
  rig.input("bias", dtype, {s.experts});
  rig.output("norm_out", wide, {s.tokens, s.experts});
  rig.output("rank", wide, {s.tokens, s.experts});
  rig.output("expert_idx", FUSEDIFF_I32, {s.tokens, s.k});
  rig.output("y", dtype, {s.tokens, s.k});
  rig.integer("k", s.k);
  rig.integer("k_group", s.kept);
  rig.integer("group_count", s.groups);
  rig.integer("group_select_mode", o.mode);
  rig.integer("renorm", o.renorm);
  rig.text("norm_type", o.softmax ? "softmax" : "sigmoid");
  rig.integer("out_flag", 1);
  rig.real("routed_scaling_factor", o.scale);
  rig.real("eps", o.eps);
  return rig;
}

Sizes random_sizes(std::mt19937_64& random, int64_t mode) {
  Sizes s{};
  s.groups = random() % 2 == 0 ? 1 : static_cast<int64_t>(1 + random() % 8);
  s.kept = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(s.groups));
  s.experts = s.groups * (mode + 1 + static_cast<int64_t>(random() % 70));
  s.tokens = static_cast<int64_t>(random() % 4);
  const int64_t most = s.experts / s.groups * s.kept;
  s.k = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(std::min<int64_t>(most, 20)));
  return s;
}

Rig random_rig(std::mt19937_64& random, int32_t dtype) {
  Options o;
  o.mode = static_cast<int64_t>(random() % 2);
  o.renorm = random() % 2 == 0;
  o.softmax = random() % 2 == 0;
  o.scale = random() % 2 == 0 ? 1.0 : 2.5;
  o.eps = random() % 2 == 0 ? 1e-20 : 1e-3;
  Rig rig = make_rig(dtype, random_sizes(random, o.mode), o);
  for (RigTensor& in : rig.inputs()) {
    random_layout(in, random, true);
    random_values(in, random, 3.0, false);
  }
  rig.input("bias").absent = random() % 3 == 0;
  for (RigTensor& out : rig.outputs()) {
    random_layout(out, random, false);
  }
  rig.output("norm_out").absent = random() % 4 == 0;
  rig.output("rank").absent = random() % 4 == 0;
  return rig;
}

TEST(MoeGatingTopkTest, PathsAgreeByBits) {
  std::mt19937_64 random(11);
  for (const int32_t dtype : {FUSEDIFF_F32, FUSEDIFF_F16, FUSEDIFF_BF16, FUSEDIFF_F64}) {
    for (int i = 0; i < 2000; ++i) {
      Rig rig = random_rig(random, dtype);
      ASSERT_TRUE(paths_agree(rig)) << dtype_name(dtype) << " " << i;
    }
  }
}

// Picks follow from the ranks that were reported, by the rule of the schema, whatever the values.
TEST(MoeGatingTopkTest, PicksFollowFromTheRanks) {
  std::mt19937_64 random(12);
  for (int i = 0; i < 1000; ++i) {
    Rig rig = random_rig(random, FUSEDIFF_F32);
    rig.output("rank").absent = false;
    ASSERT_TRUE(paths_agree(rig));
    const int64_t experts = rig.output("rank").shape[1];
    const int64_t k = rig.output("expert_idx").shape[1];
    for (int64_t t = 0; t < rig.output("rank").shape[0]; ++t) {
      std::vector<std::pair<double, int64_t>> order;
      for (int64_t e = 0; e < experts; ++e) {
        const double rank = rig.output("rank").number(t * experts + e);
        // Numbers descending, then the index; NaN behind -inf, whose key is +inf too.
        order.emplace_back(std::isnan(rank) ? kInf : -rank, (std::isnan(rank) ? experts : 0) + e);
      }
      std::sort(order.begin(), order.end());
      for (int64_t j = 0; j < k; ++j) {
        ASSERT_EQ(rig.output("expert_idx").number(t * k + j),
                  static_cast<double>(order[static_cast<size_t>(j)].second % experts));
      }
    }
  }
}

struct Reference {
  std::vector<double> score, rank, y;
  std::vector<int64_t> picks;
};

// The definition, straight: one token, finite values.
Reference reference(Rig& rig, const Sizes& s, const Options& o) {
  Reference r;
  double sum = 0;
  for (int64_t e = 0; e < s.experts; ++e) {
    const double x = rig.input("x").number(e);
    r.score.push_back(o.softmax ? std::exp(x) : 1 / (1 + std::exp(-x)));
    sum += r.score.back();
  }
  for (size_t e = 0; e < r.score.size(); ++e) {
    r.score[e] /= o.softmax ? sum : 1;
    r.rank.push_back(r.score[e] + rig.input("bias").number(static_cast<int64_t>(e)));
  }
  const auto size = static_cast<size_t>(s.experts / s.groups);
  std::vector<std::pair<double, size_t>> groups;
  for (size_t g = 0; g < static_cast<size_t>(s.groups); ++g) {
    std::vector<double> members(r.rank.begin() + static_cast<int64_t>(g * size),
                                r.rank.begin() + static_cast<int64_t>((g + 1) * size));
    std::sort(members.rbegin(), members.rend());
    groups.emplace_back(-(o.mode == 0 ? members[0] : members[0] + members[1]), g);
  }
  std::sort(groups.begin(), groups.end());
  for (size_t g = static_cast<size_t>(s.kept); g < groups.size(); ++g) {
    std::fill_n(r.rank.begin() + static_cast<int64_t>(groups[g].second * size), size, -kInf);
  }
  std::vector<std::pair<double, int64_t>> order;
  for (size_t e = 0; e < r.rank.size(); ++e) {
    order.emplace_back(-r.rank[e], e);
  }
  std::sort(order.begin(), order.end());
  double selected = 0;
  for (int64_t j = 0; j < s.k; ++j) {
    r.picks.push_back(order[static_cast<size_t>(j)].second);
    selected += r.score[static_cast<size_t>(r.picks.back())];
  }
  for (const int64_t pick : r.picks) {
    const double w = r.score[static_cast<size_t>(pick)];
    r.y.push_back((o.renorm || o.softmax ? w / (selected + o.eps) : w) * o.scale);
  }
  return r;
}

TEST(MoeGatingTopkTest, DoubleFollowsTheDefinition) {
  std::mt19937_64 random(13);
  for (int i = 0; i < 500; ++i) {
    const Options o{static_cast<int64_t>(random() % 2), random() % 2 == 0, random() % 2 == 0, 1.5, 1e-3};
    Sizes s = random_sizes(random, o.mode);
    s.tokens = 1;
    Rig rig = make_rig(FUSEDIFF_F64, s, o);
    random_values(rig.input("x"), random, 2.0, true);
    std::normal_distribution<double> normal;
    for (int64_t e = 0; e < s.experts; ++e) {
      rig.input("x").put_number(e, normal(random));
      rig.input("bias").put_number(e, normal(random));
    }
    ASSERT_TRUE(paths_agree(rig));
    const Reference r = reference(rig, s, o);
    for (int64_t j = 0; j < s.k; ++j) {
      ASSERT_EQ(rig.output("expert_idx").number(j), static_cast<double>(r.picks[static_cast<size_t>(j)]));
      ASSERT_NEAR(rig.output("y").number(j), r.y[static_cast<size_t>(j)], 1e-13);
    }
    for (int64_t e = 0; e < s.experts; ++e) {
      ASSERT_NEAR(rig.output("norm_out").number(e), r.score[static_cast<size_t>(e)], 1e-13);
    }
  }
}

TEST(MoeGatingTopkTest, TiesGoToTheLowerIndexAndNanIsLast) {
  Rig rig = make_rig(FUSEDIFF_F32, {1, 40, 40, 1, 1}, {});
  for (int64_t e = 0; e < 40; ++e) {
    rig.input("x").put_number(e, e % 3 == 0 ? std::nan("") : 20.0 + static_cast<double>(e % 2));
    rig.input("bias").put_number(e, e == 4 ? -kInf : e % 2 == 0 ? 0.0 : -0.0);
  }
  ASSERT_TRUE(paths_agree(rig));
  std::vector<double> expected;
  for (const int part : {0, 1, 2}) {
    for (int e = 0; e < 40; ++e) {
      // Sigmoid is 1 at 20 and at 21, so all numbers tie; then the -inf; then the NaNs.
      const int kind = e % 3 == 0 ? 2 : e == 4 ? 1 : 0;
      if (kind == part) {
        expected.push_back(e);
      }
    }
  }
  for (int64_t j = 0; j < 40; ++j) {
    EXPECT_EQ(rig.output("expert_idx").number(j), expected[static_cast<size_t>(j)]) << j;
  }
}

TEST(MoeGatingTopkTest, BrokenRulesAreRejectedOnBothPaths) {
  const std::vector<std::pair<Sizes, Options>> illegal = {
      {{1, 2049, 1, 1, 1}, {}}, {{1, 10, 11, 1, 1}, {}},        {{1, 10, 1, 3, 1}, {}},        {{1, 12, 1, 3, 4}, {}},
      {{1, 12, 5, 3, 1}, {}},   {{1, 4, 1, 4, 1}, {.mode = 1}}, {{1, 198, 1, 66, 1}, {}},      {{1, 4, 0, 1, 1}, {}},
      {{1, 4, 1, 0, 1}, {}},    {{1, 4, 1, 1, 0}, {}},          {{1, 8, 1, 1, 1}, {.mode = 2}}};
  for (const auto& [s, o] : illegal) {
    Rig rig = make_rig(FUSEDIFF_F32, s, o);
    for (const char* path : {"fused", "unfused"}) {
      EXPECT_EQ(rig.run(*fusediff_target(), path), FUSEDIFF_REJECTED) << s.experts << " " << s.k << " " << s.groups;
      EXPECT_NE(rig.error(), "");
    }
  }
}

TEST(MoeGatingTopkTest, OtherDtypesAreNotOffered) {
  Rig rig = make_rig(FUSEDIFF_F8E5M2, {1, 4, 1, 1, 1}, {});
  EXPECT_EQ(rig.run(*fusediff_target(), "fused"), FUSEDIFF_UNSUPPORTED);
  EXPECT_EQ(rig.error(), "x is f8e5m2, which this path does not offer");
}

// Error of norm_out in f32 against f64, in ULP at the largest of the row: within the bound of the schema.
TEST(MoeGatingTopkTest, ScoresAreWithinTheirBound) {
  std::mt19937_64 random(14);
  std::normal_distribution<double> normal;
  for (int i = 0; i < 300; ++i) {
    const Options o{0, false, random() % 2 == 0, 1.0, 1e-20};
    const Sizes s{1, 1 + static_cast<int64_t>(random() % 600), 1, 1, 1};
    Rig narrow = make_rig(FUSEDIFF_F32, s, o);
    Rig wide = make_rig(FUSEDIFF_F64, s, o);
    const double spread = random() % 2 == 0 ? 1 : 40;
    double most = 0;
    for (int64_t e = 0; e < s.experts; ++e) {
      narrow.input("x").put_number(e, normal(random) * spread);
      wide.input("x").put_number(e, narrow.input("x").number(e));
    }
    ASSERT_TRUE(paths_agree(narrow) && paths_agree(wide));
    for (int64_t e = 0; e < s.experts; ++e) {
      most = std::max(most, wide.output("norm_out").number(e));
    }
    const double ulp = std::ldexp(1.0, std::ilogb(most) - 23);
    for (int64_t e = 0; e < s.experts; ++e) {
      const double error = std::abs(narrow.output("norm_out").number(e) - wide.output("norm_out").number(e));
      ASSERT_LE(error, static_cast<double>(s.experts / 16 + 16) * ulp) << e;
    }
  }
}

TEST(MoeGatingTopkTest, SameBitsFromEveryCompiler) {
  Rig sigmoid = make_rig(FUSEDIFF_F32, {5, 96, 7, 3, 2}, {.mode = 1, .renorm = true});
  EXPECT_EQ(counted_digest(sigmoid), 0x61c92067f4fc1c37u);
  Rig softmax = make_rig(FUSEDIFF_BF16, {5, 100, 7, 1, 1}, {.softmax = true, .scale = 2.5});
  EXPECT_EQ(counted_digest(softmax), 0x602b2e46f63689f7u);
  Rig wide = make_rig(FUSEDIFF_F64, {5, 100, 7, 1, 1}, {.softmax = true});
  EXPECT_EQ(counted_digest(wide), 0x1b57a06e9454f8a1u);
}

}  // namespace
}  // namespace fusediff::builtin
