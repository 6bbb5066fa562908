#include <gtest/gtest.h>

#include <set>

#include "model/schema_json.h"
#include "mutate/mutate.h"

namespace fusediff {
namespace {

constexpr char kSchema[] = R"({"fusediff_schema": 1, "operators": [{
  "name": "op", "paths": ["fused", "unfused"],
  "dims": {"E": {"range": [1, 64]}, "G": {"range": [1, 8]}, "K": {"range": [1, 64]}},
  "where": ["E % G == 0", "K <= E"],
  "inputs": [{"name": "x", "shape": ["E"], "dtype": "f32"}],
  "outputs": [{"name": "y", "shape": ["K"], "dtype": "f32"}]},
 {"name": "free", "paths": ["fused", "unfused"], "dims": {"E": {"range": [1, 64]}},
  "inputs": [{"name": "x", "shape": ["E"], "dtype": "f32"}],
  "outputs": [{"name": "y", "shape": ["E"], "dtype": "f32"}]}]})";

TEST(Outside, BreaksEveryRuleAndNothingElse) {
  const Result<Schema> schema = parse_schema(kSchema, nullptr);
  ASSERT_TRUE(schema.ok()) << schema.error().what;
  const Operator& op = schema->operators[0];
  const Probe no_probe;
  std::set<std::string> broken;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng(seed);
    MutateContext context{op, rng, 1 << 20, no_probe};
    std::optional<Case> c = random_case(context);
    ASSERT_TRUE(c.has_value());
    if (!break_where(*c, context)) continue;
    EXPECT_FALSE(bind(*c, op, 1 << 20).ok());
    const Result<Call> call = bind(*c, op, 1 << 20, true);
    ASSERT_TRUE(call.ok()) << call.error().what;
    broken.insert(call->broken);
  }
  EXPECT_EQ(broken, (std::set<std::string>{"E % G == 0", "K <= E"}));
}

TEST(Outside, AnOperatorWithoutRulesHasNoOutside) {
  const Result<Schema> schema = parse_schema(kSchema, nullptr);
  ASSERT_TRUE(schema.ok());
  const Probe no_probe;
  Rng rng(1);
  MutateContext context{schema->operators[1], rng, 1 << 20, no_probe};
  std::optional<Case> c = random_case(context);
  ASSERT_TRUE(c.has_value());
  const Case before = *c;
  EXPECT_FALSE(break_where(*c, context));
  EXPECT_EQ(*c, before);
}

}  // namespace
}  // namespace fusediff
