#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "builtin/last_place.h"
#include "builtin/paths_agree.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr int32_t kDtypes[] = {FUSEDIFF_F32, FUSEDIFF_F16,      FUSEDIFF_BF16,
                               FUSEDIFF_F64, FUSEDIFF_F8E4M3FN, FUSEDIFF_F8E5M2};
constexpr double kInf = std::numeric_limits<double>::infinity();

struct Sizes {
  int64_t batch, heads, queries, keys, width;
};

Rig attention_rig(int32_t dtype, const Sizes& z, double scale, bool causal) {
  const int32_t wide = dtype == FUSEDIFF_F64 ? FUSEDIFF_F64 : FUSEDIFF_F32;
  Rig rig("attention");
  rig.input("q", dtype, {z.batch, z.heads, z.queries, z.width});
  rig.input("k", dtype, {z.batch, z.heads, z.keys, z.width});
  rig.input("v", dtype, {z.batch, z.heads, z.keys, z.width});
  rig.input("mask", wide, {z.queries, z.keys}).absent = true;
  rig.output("scores", wide, {z.batch, z.heads, z.queries, z.keys});
  rig.output("lse", wide, {z.batch, z.heads, z.queries});
  rig.output("out", dtype, {z.batch, z.heads, z.queries, z.width});
  rig.real("scale", scale);
  rig.integer("causal", causal ? 1 : 0);
  return rig;
}

Sizes random_sizes(std::mt19937_64& random) {
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
  return {below(3), 1 + below(2), below(40), below(random() % 3 == 0 ? 100 : 40), below(40)};
}

void randomise(Rig& rig, std::mt19937_64& random, double scale, bool tame) {
  for (RigTensor& in : rig.inputs()) {
    random_layout(in, random, true);
    if (in.name == "mask") {
      for (int64_t i = 0; i < in.count(); ++i) {
        in.put_number(i, random() % 3 == 0 ? -kInf : 0);
      }
    } else {
      random_values(in, random, scale, tame);
    }
  }
  rig.input("mask").absent = random() % 2 == 0;
  for (RigTensor& out : rig.outputs()) {
    random_layout(out, random, false);
  }
  rig.output("scores").absent = random() % 3 == 0;
  rig.output("lse").absent = random() % 3 == 0;
}

TEST(AttentionTest, PathsAgreeByBits) {
  std::mt19937_64 random(101);
  for (const int32_t dtype : kDtypes) {
    for (int i = 0; i < 120; ++i) {
      Rig rig = attention_rig(dtype, random_sizes(random), 0.5, random() % 2 == 0);
      randomise(rig, random, std::ldexp(1.0, static_cast<int>(random() % 6) - 2), false);
      ASSERT_TRUE(paths_agree(rig)) << dtype_name(dtype) << " " << i;
    }
  }
}

// One query by the definition of attention, two passes, in long double.
struct Query {
  std::vector<long double> scores, terms;  // of every key; terms: of the absolute products
  std::vector<long double> out;
  long double lse, magnitudes;
  long double largest_value;  // among the keys that are seen
};

long double lse_of(const std::vector<long double>& scores) {
  long double most = -kInf, sum = 0;
  for (const long double s : scores) {
    most = std::max(most, s);
  }
  for (const long double s : scores) {
    sum += most == -static_cast<long double>(kInf) ? 0 : std::exp(s - most);
  }
  return sum == 0 ? -kInf : most + std::log(sum);
}

Query by_definition(Rig& rig, const Sizes& z, double scale, bool causal, int64_t head, int64_t i) {
  Query query{{}, {}, std::vector<long double>(static_cast<size_t>(z.width), 0), 0, 0, 0};
  for (int64_t j = 0; j < z.keys; ++j) {
    long double s = 0, terms = 0;
    for (int64_t d = 0; d < z.width; ++d) {
      const long double product =
          static_cast<long double>(rig.input("q").number((head * z.queries + i) * z.width + d)) *
          rig.input("k").number((head * z.keys + j) * z.width + d);
      s += product;
      terms += std::abs(product);
    }
    s = s * scale + (rig.input("mask").absent ? 0 : rig.input("mask").number(i * z.keys + j));
    query.scores.push_back(causal && j > i + z.keys - z.queries ? -kInf : s);
    query.terms.push_back(terms * scale);
  }
  query.lse = lse_of(query.scores);
  for (int64_t j = 0; j < z.keys; ++j) {
    const long double p = std::exp(query.scores[static_cast<size_t>(j)] - query.lse);
    for (int64_t d = 0; d < z.width && query.lse > -static_cast<long double>(kInf); ++d) {
      const long double v = rig.input("v").number((head * z.keys + j) * z.width + d);
      query.out[static_cast<size_t>(d)] += p * v;
      query.largest_value = std::max(query.largest_value, std::abs(v));
    }
  }
  std::vector<long double> seen;
  for (size_t j = 0; j < query.scores.size(); ++j) {
    if (query.scores[j] > -static_cast<long double>(kInf)) {
      seen.push_back(query.terms[j]);
    }
  }
  query.magnitudes = lse_of(seen);
  return query;
}

// scores and lse within their bounds (lse by the magnitudes of what is seen, mask or not); out within the error that
// those of the scores make of it, on values where that is small.
void expect_close(Rig& rig, const Sizes& z, double scale, bool causal) {
  const double width = static_cast<double>(z.width), keys = static_cast<double>(z.keys);
  const int32_t wide = rig.output("lse").dtype;
  for (int64_t row = 0; row < z.batch * z.heads * z.queries; ++row) {
    const Query query = by_definition(rig, z, scale, causal, row / z.queries, row % z.queries);
    long double worst = 0;
    for (int64_t j = 0; j < z.keys; ++j) {
      const size_t at = static_cast<size_t>(j);
      const double allowed = (2 * width + 4) * spacing(wide, static_cast<double>(query.terms[at]));
      worst = std::max<long double>(worst, query.scores[at] < -1e300L ? 0 : allowed);
      if (!rig.output("scores").absent) {
        const long double got = rig.output("scores").number(row * z.keys + j);
        ASSERT_TRUE(got == query.scores[at] || std::abs(got - query.scores[at]) <= allowed) << row << " " << j;
      }
    }
    const long double allowed =
        (2 * width + 2 * keys + 40) * spacing(wide, std::max(0.0, static_cast<double>(query.magnitudes)));
    if (!rig.output("lse").absent) {
      const long double got = rig.output("lse").number(row);
      ASSERT_TRUE(got == query.lse || std::abs(got - query.lse) <= allowed) << got << " " << query.lse;
    }
    for (int64_t d = 0; d < z.width; ++d) {
      const long double truth = query.out[static_cast<size_t>(d)];
      const long double error = std::abs(static_cast<long double>(rig.output("out").number(row * z.width + d)) - truth);
      const long double weights = 2 * (worst + allowed) * query.largest_value;
      ASSERT_LE(error, 2 * weights + spacing(rig.output("out").dtype, static_cast<double>(std::abs(truth) + weights)))
          << row << " " << d;
    }
  }
}

TEST(AttentionTest, FollowsTheDefinition) {
  std::mt19937_64 random(102);
  for (const int32_t dtype : kDtypes) {
    for (int i = 0; i < 40; ++i) {
      Sizes z = random_sizes(random);
      z.batch = std::min<int64_t>(z.batch, 1);
      const bool causal = random() % 2 == 0;
      Rig rig = attention_rig(dtype, z, 0.5, causal);
      randomise(rig, random, 1.0, true);
      for (const char* name : {"q", "k", "v"}) {
        for (int64_t e = 0; e < rig.input(name).count(); ++e) {
          rig.input(name).put_number(e, std::clamp(rig.input(name).number(e), -8.0, 8.0));
        }
      }
      ASSERT_TRUE(paths_agree(rig));
      ASSERT_NO_FATAL_FAILURE(expect_close(rig, z, 0.5, causal)) << dtype_name(dtype) << " " << i;
    }
  }
}

// Scores that cancel, and maxima that change in every block: first falling, then growing.
TEST(AttentionTest, AdversarialScoresAreWithinTheBounds) {
  for (const double step : {0.3, -0.3, 3.0}) {
    const Sizes z{1, 1, 2, 96, 4};
    Rig rig = attention_rig(FUSEDIFF_F32, z, 1.0, false);
    for (int64_t j = 0; j < 96; ++j) {
      const double k[] = {1e4, step * static_cast<double>(j), -1e4, 0.125};
      for (int64_t d = 0; d < 4; ++d) {
        rig.input("k").put_number(j * 4 + d, k[d]);
        rig.input("v").put_number(j * 4 + d, j % 2 == 0 ? 1 : -1);
      }
    }
    for (int64_t i = 0; i < 8; ++i) {
      rig.input("q").put_number(i, 1);
    }
    ASSERT_TRUE(paths_agree(rig));
    ASSERT_NO_FATAL_FAILURE(expect_close(rig, z, 1.0, false)) << step;
  }
  const Sizes many{1, 1, 1, 512, 1};
  Rig equal = attention_rig(FUSEDIFF_BF16, many, 1.0, false);
  for (int64_t j = 0; j < 512; ++j) {
    equal.input("v").put_number(j, 0.1);
  }
  ASSERT_TRUE(paths_agree(equal));
  ASSERT_NO_FATAL_FAILURE(expect_close(equal, many, 1.0, false));
  EXPECT_EQ(equal.output("out").bits(0), equal.input("v").bits(0));
}

// The bound of scores rejects a missing product, that of lse a missing block of keys.
TEST(AttentionTest, TheBoundsRejectDamage) {
  std::mt19937_64 random(103);
  const Sizes z{1, 1, 4, 64, 16};
  Rig rig = attention_rig(FUSEDIFF_F32, z, 0.25, false);
  for (const char* name : {"q", "k", "v"}) {
    for (int64_t e = 0; e < rig.input(name).count(); ++e) {
      rig.input(name).put_number(e, std::normal_distribution<double>(0, 1)(random));
    }
  }
  for (int64_t i = 0; i < 4; ++i) {
    Query query = by_definition(rig, z, 0.25, false, 0, i);
    int seen = 0;
    for (int64_t j = 0; j < 64; ++j) {
      const double product = 0.25 * rig.input("q").number(i * 16) * rig.input("k").number(j * 16);
      seen += std::abs(product) >
              (2 * 16 + 4) * spacing(FUSEDIFF_F32, static_cast<double>(query.terms[static_cast<size_t>(j)]));
    }
    EXPECT_GE(seen, 60);
    const double allowed = (2 * 16 + 2 * 64 + 40) * spacing(FUSEDIFF_F32, static_cast<double>(query.magnitudes));
    query.scores.resize(32);
    EXPECT_GT(static_cast<double>(std::abs(lse_of(query.scores) - query.lse)), 100 * allowed);
  }
}

TEST(AttentionTest, QueriesWithoutKeysAreZero) {
  for (const int32_t dtype : kDtypes) {
    Rig none = attention_rig(dtype, {1, 2, 3, 0, 5}, 1.0, false);
    Rig masked = attention_rig(dtype, {1, 1, 2, 40, 3}, 1.0, false);
    Rig early = attention_rig(dtype, {1, 1, 4, 1, 3}, 1.0, true);
    masked.input("mask").absent = false;
    for (RigTensor& in : masked.inputs()) {
      for (int64_t i = 0; i < in.count(); ++i) {
        in.put_number(i, in.name == "mask" ? -kInf : 1);
      }
    }
    for (RigTensor& in : early.inputs()) {
      for (int64_t i = 0; i < in.count(); ++i) {
        in.put_number(i, 1);
      }
    }
    for (Rig* rig : {&none, &masked, &early}) {
      ASSERT_TRUE(paths_agree(*rig));
      const int64_t last = rig == &early ? 3 : rig->output("lse").count();
      for (int64_t i = 0; i < last; ++i) {
        EXPECT_EQ(rig->output("lse").number(i), -kInf);
      }
      for (int64_t i = 0; i < last * rig->output("out").shape[3]; ++i) {
        EXPECT_EQ(rig->output("out").bits(i), 0u);
      }
    }
    EXPECT_EQ(early.output("out").number(9), 1);
  }
}

TEST(AttentionTest, NothingToDoIsLegal) {
  for (const Sizes& z : {Sizes{0, 2, 3, 4, 5}, Sizes{1, 0, 3, 4, 5}, Sizes{1, 1, 0, 4, 5}, Sizes{1, 1, 3, 4, 0}}) {
    Rig rig = attention_rig(FUSEDIFF_F32, z, 1.0, true);
    EXPECT_TRUE(paths_agree(rig));
  }
}

TEST(AttentionTest, BrokenCallsAreRejected) {
  Rig rig = attention_rig(FUSEDIFF_F32, {1, 1, 2, 3, 4}, 1.0, false);
  rig.input("v").shape = {1, 1, 4, 4};
  for (const char* path : {"fused", "unfused"}) {
    EXPECT_EQ(rig.run(*fusediff_target(), path), FUSEDIFF_REJECTED);
    EXPECT_EQ(rig.error(), "v has size 4 in dimension 2, not 3");
  }
}

TEST(AttentionTest, SameBitsFromEveryCompiler) {
  const uint64_t golden[] = {0xae07ae4308e2e02cu, 0x497a16626195fe4fu, 0xd54386192e3e3113u,
                             0x7d55453052296d15u, 0x3a04df8f3bc93730u, 0x853d150fb26f6962u};
  for (size_t i = 0; i < 6; ++i) {
    Rig rig = attention_rig(kDtypes[i], {1, 2, 17, 70, 20}, 0.5, i % 2 == 0);
    EXPECT_EQ(counted_digest(rig), golden[i]) << dtype_name(kDtypes[i]);
  }
}

}  // namespace
}  // namespace fusediff::builtin
