// Ties against an operator of our own: rank = sigmoid(x) + bias in f32, on the fused side 1 ULP lower where a hash of
// the bits of x says so.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>

#include "mutate/ordered.h"
#include "mutate/schemas_test.h"

namespace fusediff {
namespace {

struct Fault {
  std::uint64_t one_in = 0;  // of the values of x; 0: none
  std::uint64_t seed = 0;
  bool higher = false;  // 1 ULP up instead of down
};

float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

float fused_sigmoid(float x, const Fault& fault) {
  const float norm = sigmoid(x);
  Rng hash(fault.seed ^ std::bit_cast<std::uint32_t>(x));
  if (fault.one_in == 0 || hash.below(fault.one_in) != 0) return norm;
  return std::nextafter(norm, fault.higher ? 2.0f : 0.0f);
}

std::vector<double> values_of(const Case& c, const Call& call, const std::string& name) {
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor& tensor = call.inputs[i];
    if (tensor.name != name || !tensor.present) continue;
    const auto bytes = draw_values(c.inputs.at(name), call.op->inputs[i], tensor, call);
    if (!bytes.ok()) return {};
    std::vector<double> values(static_cast<std::size_t>(stored_count(tensor)));
    widen(tensor.dtype, *bytes, values);
    return values;
  }
  return {};
}

std::vector<std::int64_t> picks_of(const std::vector<std::uint64_t>& ranks, std::size_t rows, std::size_t columns,
                                   std::size_t slots, bool smallest) {
  std::vector<std::int64_t> picks;
  for (std::size_t row = 0; row < rows; ++row) {
    std::vector<std::int64_t> order(columns);
    for (std::size_t i = 0; i < columns; ++i) order[i] = static_cast<std::int64_t>(i);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      const auto key = [&](std::int64_t i) {
        return ordered_key(DType::kF32, ranks[row * columns + static_cast<std::size_t>(i)]);
      };
      return smallest ? key(a) < key(b) : key(a) > key(b);
    });
    picks.insert(picks.end(), order.begin(), order.begin() + static_cast<std::ptrdiff_t>(slots));
  }
  return picks;
}

struct Answer {
  Ranking ranking;
  std::vector<std::int64_t> fused_picks;
};

// The better half of eight groups of columns, by their best rank, stays in play.
std::vector<std::uint64_t> without_worse_groups(std::vector<std::uint64_t> ranks, std::size_t columns) {
  const std::size_t width = columns / 8;
  for (std::size_t row = 0; row * columns < ranks.size(); ++row) {
    std::vector<std::pair<std::int64_t, std::size_t>> groups;
    for (std::size_t group = 0; group < 8; ++group) {
      std::int64_t best = INT64_MIN;
      for (std::size_t i = group * width; i < (group + 1) * width; ++i) {
        best = std::max(best, ordered_key(DType::kF32, ranks[row * columns + i]));
      }
      groups.emplace_back(-best, group);
    }
    std::sort(groups.begin(), groups.end());
    for (std::size_t j = 4; j < 8; ++j) {
      for (std::size_t i = 0; i < width; ++i) {
        ranks[row * columns + groups[j].second * width + i] = std::bit_cast<std::uint32_t>(-INFINITY);
      }
    }
  }
  return ranks;
}

std::optional<Answer> answer(const Case& c, const Operator& op, const Fault& fault) {
  const Result<Call> call = bind(c, op, kTestBytes);
  if (!call.ok()) return std::nullopt;
  const std::vector<double> x = values_of(c, *call, "x"), bias = values_of(c, *call, "bias");
  const auto rows = static_cast<std::size_t>(c.dims.at("T")), columns = static_cast<std::size_t>(c.dims.at("E"));
  const auto slots = static_cast<std::size_t>(c.dims.at("K"));
  if (x.size() != rows * columns) return std::nullopt;
  Answer result;
  result.ranking.shape = {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)};
  result.ranking.slots = static_cast<std::int64_t>(slots);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float add = bias.empty() ? 0.0f : static_cast<float>(bias[i % columns]);
    const auto value = static_cast<float>(x[i]);
    result.ranking.unfused.push_back(std::bit_cast<std::uint32_t>(sigmoid(value) + add));
    result.ranking.fused.push_back(std::bit_cast<std::uint32_t>(fused_sigmoid(value, fault) + add));
  }
  const bool groups = c.dims.at("G") == 8;
  const auto pick = [&](const std::vector<std::uint64_t>& ranks) {
    return picks_of(groups ? without_worse_groups(ranks, columns) : ranks, rows, columns, slots, false);
  };
  result.ranking.picks = pick(result.ranking.unfused);
  result.fused_picks = pick(result.ranking.fused);
  return result;
}

// The smallest distance in ULP, over rows, between the last pick and the best that is not picked.
std::int64_t boundary_gap(const Answer& answer) {
  std::int64_t least = INT64_MAX;
  const auto columns = static_cast<std::size_t>(answer.ranking.shape[1]);
  const auto slots = static_cast<std::size_t>(answer.ranking.slots);
  for (std::size_t row = 0; row * columns < answer.ranking.unfused.size(); ++row) {
    std::vector<std::int64_t> keys;
    for (std::size_t i = 0; i < columns; ++i) {
      keys.push_back(ordered_key(DType::kF32, answer.ranking.unfused[row * columns + i]));
    }
    std::sort(keys.rbegin(), keys.rend());
    least = std::min(least, keys[slots - 1] - keys[slots]);
  }
  return least;
}

Fill normal(std::uint64_t seed, double mean = 0, double deviation = 1) {
  Fill fill;
  fill.kind = FillKind::kNormal;
  fill.a = mean;
  fill.b = deviation;
  fill.seed = seed;
  return fill;
}

Case plain_case(std::uint64_t seed, std::int64_t rows, bool bias, const std::string& dtype = "f32") {
  Case c;
  c.op = "moe_gating_topk";
  c.dims = {{"T", rows}, {"E", 512}, {"K", 10}, {"G", 1}, {"KG", 1}};
  c.dtypes["x"] = *dtype_named(dtype);
  c.inputs["x"].fill = normal(seed);
  if (bias) {
    c.inputs["bias"].fill.kind = FillKind::kUniform;
    c.inputs["bias"].fill.a = -0.1;
    c.inputs["bias"].fill.b = 0.1;
    c.inputs["bias"].fill.seed = seed + 1;
  }
  return c;
}

struct Tried {
  int made = 0;
  int exact = 0;
  int flips = 0;
  int most_probes = 0;
  int probes = 0;
  std::map<std::int64_t, int> gaps;
};

// Ties on `cases` cases; each result is legal.
template <typename MakeCase>
Tried try_ties(const char* schema, const Fault& fault, int cases, const MakeCase& make) {
  Tried tried;
  for (int seed = 0; seed < cases; ++seed) {
    Workbench bench(schema, static_cast<std::uint64_t>(seed) * 77 + 5);
    int probes = 0;
    bench.probe = [&](const Case& c, std::size_t rule, bool both) -> std::optional<Ranking> {
      ++probes;
      EXPECT_EQ(rule, 0u);
      auto result = answer(c, bench.context.op, fault);
      if (!result) return std::nullopt;
      if (!both) result->ranking.fused.clear();
      return std::move(result->ranking);
    };
    Case c = make(static_cast<std::uint64_t>(seed));
    const Case before = c;
    const bool made = make_tie(c, bench.context);
    tried.probes += probes;
    tried.most_probes = std::max(tried.most_probes, probes);
    if (!made) {
      EXPECT_EQ(c, before);
      continue;
    }
    ++tried.made;
    EXPECT_EQ(why_illegal(c, bench.context.op), std::nullopt);
    const auto result = answer(c, bench.context.op, fault);
    if (!result) {
      ADD_FAILURE() << "no answer";
      continue;
    }
    const std::int64_t gap = boundary_gap(*result);
    tried.exact += gap == 0;
    ++tried.gaps[gap];
    tried.flips += result->ranking.picks != result->fused_picks;
  }
  ::testing::Test::RecordProperty("probes_per_100_ties", tried.probes * 100 / cases);
  return tried;
}

constexpr int kCases = 60;
constexpr int kMostProbes = 40;

TEST(Ties, BiasIsSolvedToEqualAndNearlyEqualRanks) {
  const Tried tried = try_ties(kGating, {}, kCases, [](std::uint64_t seed) { return plain_case(seed, 2, true); });
  EXPECT_GT(tried.made, kCases * 9 / 10);
  EXPECT_GT(tried.exact, kCases / 3);
  for (std::int64_t gap = 0; gap <= 4; ++gap) EXPECT_GT(tried.gaps.count(gap), 0u) << gap;
  EXPECT_LE(tried.most_probes, kMostProbes);
}

TEST(Ties, AnAbsentBiasIsAdded) {
  const Tried tried = try_ties(kGating, {}, kCases, [](std::uint64_t seed) { return plain_case(seed, 2, false); });
  EXPECT_GT(tried.made, kCases * 9 / 10);
  EXPECT_GT(tried.exact, kCases / 3);
}

std::string without_bias() {
  std::string text = kGating;
  const std::size_t at = text.find(R"(,
      {"name": "bias")");
  return text.erase(at, text.find("}],", at) + 1 - at);
}

TEST(Ties, WithoutABiasTheScoreIsSolved) {
  const std::string schema = without_bias();
  const Tried tried =
      try_ties(schema.c_str(), {}, kCases, [](std::uint64_t seed) { return plain_case(seed, 2, false); });
  EXPECT_GT(tried.made, kCases * 9 / 10);
  EXPECT_GT(tried.exact, kCases / 3);
}

TEST(Ties, SixteenBitInputsTieToo) {
  const Tried tried =
      try_ties(kGating, {}, kCases, [](std::uint64_t seed) { return plain_case(seed, 8, true, "bf16"); });
  EXPECT_GT(tried.made, kCases * 2 / 3);
  EXPECT_GT(tried.exact, kCases / 3);
}

TEST(Ties, ADifferenceOfOneUlpInOneOf512BecomesAFlip) {
  for (const bool higher : {false, true}) {
    const Fault fault{512, 99, higher};
    const Tried tried = try_ties(kGating, fault, kCases, [](std::uint64_t seed) { return plain_case(seed, 4, true); });
    EXPECT_GT(tried.flips, kCases * 6 / 10) << higher;
    EXPECT_LE(tried.most_probes, kMostProbes);
  }
}

// The ranking does not show that half of the groups are out: what is out must not be taken for the boundary.
TEST(Ties, ADifferenceBecomesAFlipWhereGroupsAreOut) {
  const Fault fault{512, 99, false};
  const Tried tried = try_ties(kGating, fault, kCases, [](std::uint64_t seed) {
    Case c = plain_case(seed, 8, true);
    c.dims["G"] = 8;
    c.dims["KG"] = 4;
    return c;
  });
  EXPECT_GT(tried.flips, kCases / 5);
  EXPECT_LE(tried.most_probes, kMostProbes);
}

TEST(Ties, ADifferenceBecomesAFlipWithoutABias) {
  const std::string schema = without_bias();
  for (const bool higher : {false, true}) {
    const Fault fault{512, 99, higher};
    const Tried tried =
        try_ties(schema.c_str(), fault, kCases, [](std::uint64_t seed) { return plain_case(seed, 16, false); });
    EXPECT_GT(tried.flips, kCases / 2) << higher;
    EXPECT_LE(tried.most_probes, kMostProbes);
  }
}

TEST(Ties, NothingIsMadeWithoutAProbeOrAnAnswer) {
  Workbench bench(kGating);
  Case c = plain_case(1, 2, true);
  const Case before = c;
  EXPECT_FALSE(make_tie(c, bench.context));
  EXPECT_EQ(c, before);
  bench.probe = [](const Case&, std::size_t, bool) { return std::optional<Ranking>(); };
  EXPECT_FALSE(make_tie(c, bench.context));
  EXPECT_EQ(c, before);
  // An answer that does not fit its own shape is none.
  bench.probe = [](const Case&, std::size_t, bool) {
    Ranking ranking;
    ranking.shape = {2, 512};
    ranking.unfused.resize(7);
    ranking.slots = 10;
    return std::optional<Ranking>(ranking);
  };
  EXPECT_FALSE(make_tie(c, bench.context));
  EXPECT_EQ(c, before);
}

// The operator ranks by an input itself, in the order that an attribute says.
TEST(Ties, AnInputThatIsRankedByIsSetDirectly) {
  int made = 0, exact = 0;
  constexpr int kSeeds = 60;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Workbench bench(kBackward, seed);
    const bool smallest = seed % 2 == 1;
    bench.probe = [&](const Case& c, std::size_t, bool) -> std::optional<Ranking> {
      const Result<Call> call = bind(c, bench.context.op, kTestBytes);
      if (!call.ok()) return std::nullopt;
      const std::vector<double> score = values_of(c, *call, "score");
      Ranking ranking;
      ranking.shape = {c.dims.at("B"), c.dims.at("S")};
      ranking.slots = 1;
      for (const double value : score) {
        ranking.unfused.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(value)));
      }
      ranking.picks = picks_of(ranking.unfused, static_cast<std::size_t>(c.dims.at("B")),
                               static_cast<std::size_t>(c.dims.at("S")), 1, smallest);
      return ranking;
    };
    Case c;
    c.op = "weighted";
    c.dims = {{"B", 3}, {"S", 33}, {"C", 4}};
    c.attrs["descending"] = std::int64_t{!smallest};
    c.attrs["momentum"] = 0.5;
    ASSERT_TRUE(repair(c, bench.context));
    c.inputs["score"].fill = normal(seed);
    ASSERT_EQ(why_illegal(c, bench.context.op), std::nullopt);
    if (!make_tie(c, bench.context)) continue;
    ++made;
    const auto ranking = bench.probe(c, 0, false);
    ASSERT_TRUE(ranking);
    for (std::size_t row = 0; row < 3; ++row) {
      std::vector<std::int64_t> keys;
      for (std::size_t i = 0; i < 33; ++i) {
        const std::int64_t key = ordered_key(DType::kF32, ranking->unfused[row * 33 + i]);
        keys.push_back(smallest ? -key : key);
      }
      std::sort(keys.rbegin(), keys.rend());
      if (keys[0] == keys[1]) {
        ++exact;
        break;
      }
    }
  }
  EXPECT_GT(made, kSeeds * 9 / 10);
  EXPECT_GT(exact, kSeeds / 3);
}

TEST(Ties, SaturatedScoresAndBothZerosNeedNoProbe) {
  Workbench bench(kGating, 8);
  bool ones = false, zeros = false, mixed = false;
  for (int i = 0; i < 50; ++i) {
    Case c = plain_case(3, 4, false);
    ASSERT_TRUE(saturate_scores(c, bench.context));
    ASSERT_TRUE(repair(c, bench.context));
    const auto result = answer(c, bench.context.op, {});
    ASSERT_TRUE(result);
    int at_one = 0, at_zero = 0;
    for (const auto& [index, literal] : c.inputs["x"].set) {
      const float rank =
          std::bit_cast<float>(static_cast<std::uint32_t>(result->ranking.unfused[static_cast<std::size_t>(index)]));
      at_one += rank == 1.0f;
      at_zero += rank == 0.0f;
    }
    ones = ones || at_one >= 2;
    zeros = zeros || at_zero >= 2;
    Case d = plain_case(3, 4, false);
    ASSERT_TRUE(mix_zeros(d, bench.context));
    bool plus = false, minus = false;
    for (const auto& [index, literal] : d.inputs["x"].set) {
      plus = plus || !std::signbit(literal.real);
      minus = minus || std::signbit(literal.real);
    }
    mixed = mixed || (plus && minus);
  }
  EXPECT_TRUE(ones);
  EXPECT_TRUE(zeros);
  EXPECT_TRUE(mixed);
}

}  // namespace
}  // namespace fusediff
