#include "model/schema_json.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/rng.h"
#include "model/sample_test.h"
#include "model/schema_check.h"
#include "model/schema_search.h"

namespace fusediff {
namespace {

Schema sample() {
  Result<Schema> schema = parse_schema(kSampleSchema, nullptr);
  EXPECT_TRUE(schema.ok()) << schema.error().what;
  return schema.ok() ? *schema : Schema();
}

std::string error_of(std::string_view json, const SchemaLookup& lookup = nullptr) {
  Result<Schema> schema = parse_schema(json, lookup);
  if (schema.ok()) return "";
  EXPECT_EQ(schema.error().blame, Blame::kUser);
  EXPECT_EQ(schema.error().what.find('\n'), std::string::npos) << schema.error().what;
  EXPECT_NE(schema.error().what, "");
  EXPECT_LT(schema.error().what.size(), 2000u);
  return schema.error().what;
}

std::string error_after(std::string_view from, std::string_view to) {
  return error_of(changed(kSampleSchema, from, to));
}

TEST(SchemaJson, ReadsTheSample) {
  const Schema schema = sample();
  const Operator* op = schema.find("moe_gating_topk");
  ASSERT_NE(op, nullptr);
  EXPECT_EQ(op->paths, (std::vector<std::string>{"fused", "unfused"}));
  EXPECT_TRUE(op->is_deterministic("fused"));
  EXPECT_TRUE(op->shared_context);
  ASSERT_EQ(op->dims.size(), 5u);
  EXPECT_EQ(op->dims[1].name, "E");
  EXPECT_EQ(op->dims[1].low, 1);
  EXPECT_EQ(op->dims[1].high, 2048);
  EXPECT_EQ(op->dims[1].typical, (std::vector<std::int64_t>{64, 128, 256, 512}));
  ASSERT_EQ(op->attrs.size(), 7u);
  EXPECT_EQ(op->attr("k")->derived->text(), "K");
  EXPECT_EQ(std::get<std::string>(*op->attr("norm_type")->standard), "sigmoid");
  EXPECT_EQ(std::get<std::int64_t>(*op->attr("renorm")->standard), 0);
  EXPECT_EQ(std::get<double>(op->attr("routed_scaling_factor")->also[0]), 0.0);
  EXPECT_TRUE(op->attr("eps")->log_scale);
  EXPECT_EQ(op->attr("eps")->float_low, 1e-20);
  EXPECT_EQ(op->where.size(), 3u);
  EXPECT_EQ(op->input("x")->role, Role::kScore);
  EXPECT_EQ(op->input("x")->layout, LayoutRule::kAny);
  EXPECT_EQ(op->input("bias")->dtype.same_as, "x");
  EXPECT_TRUE(op->input("bias")->optional);
  EXPECT_EQ(*op->output("norm_out")->stage, 1);
  EXPECT_TRUE(op->output("norm_out")->agree.ulp.empty());
  const std::vector<AlwaysRule>& always = op->output("expert_idx")->always;
  ASSERT_EQ(always.size(), 2u);
  EXPECT_EQ(std::get<Expr>(always[0].high).text(), "E - 1");
  EXPECT_EQ(always[1].kind, AlwaysKind::kDistinctInRow);
  ASSERT_EQ(op->decide.size(), 1u);
  EXPECT_EQ(op->decide[0].nan, NanOrder::kLeast);
  EXPECT_TRUE(op->decide[0].sorted);
  EXPECT_FALSE(op->decide[0].has_none);
  EXPECT_EQ(op->rows->outputs.size(), 4u);
  EXPECT_NE(op->slots_key, 0u);
  EXPECT_EQ(op->where[0].slots_key(), op->slots_key);
}

constexpr std::string_view kEveryKey = R"json({"fusediff_schema": 1, "threads": "one_context_each", "operators": [
  {"name": "fwd", "threads": "shared_context", "paths": ["fused", "unfused", "reference"],
   "dims": {"B": {"range": [0, 8]}, "N": {"range": [4, 4]}},
   "attrs": [{"name": "mode", "choice": ["a", "b"], "default": "b"},
             {"name": "n", "int": [1, 20], "default": 2, "also": [33], "if": "mode == 'a'"}],
   "where": ["n > 0 && (mode == 'a' || N == 4)"],
   "inputs": [{"name": "x", "shape": ["B", "N"], "dtype": ["f16", "bf16"], "layout": "inner_dense", "align": 64},
              {"name": "idx", "shape": ["B", 2], "dtype": "i32", "role": "index", "range": [0, "N - 1"],
               "distinct": true, "sorted": true, "also": [-100]},
              {"name": "cnt", "shape": ["N"], "dtype": "i64", "role": "counts", "range": [0, "B"], "sum": "B"},
              {"name": "off", "shape": ["N + 1"], "dtype": "i32", "role": "offsets", "sum": "B"},
              {"name": "m", "shape": ["B"], "dtype": "bool", "role": "mask", "if": "mode == 'b'"},
              {"name": "p", "shape": ["B", "N"], "dtype": "f32", "role": "probability"},
              {"name": "s", "shape": [], "dtype": "f32", "role": "scale"}],
   "outputs": [{"name": "y", "shape": ["B", "N"], "dtype": "=x", "stage": 0, "nan": "bits",
                "agree": {"ulp": {"f16": 1, "bf16": 2}, "why": "w"},
                "bound": {"ulp": {"f16": "2 * N + 8", "bf16": 3}, "by": "p", "of": "row_abs_sum", "why": "w"},
                "always": [{"finite_if_inputs_finite": true, "if": "N == 4"}, {"row_sums": 1, "within": 1e-3}]},
               {"name": "z", "shape": ["B", "N"], "dtype": "f32", "agree": {"ulp": 4, "why": "w"},
                "bound": {"ulp": 8, "of": "abs_inputs", "why": "w"}, "always": [{"range": [0.5, 2]}]},
               {"name": "perm", "shape": ["B"], "dtype": "i32", "always": [{"permutation": true}], "if": "n > 1"}],
   "decide": [{"by": "p", "pick": "perm", "count": 1, "order": "smallest", "nan": "never", "zeros": "ordered",
               "tie": "any", "sorted": false, "among": "cnt", "none": -1, "values": "z"}],
   "rows": {"dim": "B", "inputs": ["x", "p"], "outputs": ["y"]},
   "inplace": [["y", "x"], ["z", "p", "always"]],
   "deterministic": ["unfused", "reference"]
},
  {"name": "bwd", "paths": ["fused"], "dims": {"B": {"range": [0, 8]}, "N": {"range": [4, 4]}},
   "attrs": [{"name": "desc", "bool": true, "default": true}],
   "inputs": [{"name": "gy", "shape": ["B", "N"], "dtype": "f32", "role": "cotangent"},
              {"name": "y", "shape": ["B", "N"], "dtype": "f16", "role": "saved",
               "saved": {"op": "fwd", "output": "y", "inputs": {"x": "x"}}}],
   "given": [{"name": "x", "shape": ["B", "N"], "dtype": "f16"}],
   "outputs": [{"name": "gx", "shape": ["B", "N"], "dtype": "f32",
                "bound": {"ulp": 7, "of": {"row_max_product": [["y", "gy", "y"], ["gy"], []]}, "why": "w"}},
               {"name": "pick", "shape": ["B", 1], "dtype": "i32"}],
   "decide": [{"by": "gy", "pick": "pick", "count": "1", "order": "=desc", "nan": "as_-inf"}],
   "gradient": {"of": "fwd", "wrt": {"gx": "x"}, "cotangents": {"gy": "y"}}}]
})json";

TEST(SchemaJson, ReadsEveryKey) {
  Result<Schema> schema = parse_schema(kEveryKey, nullptr);
  ASSERT_TRUE(schema.ok()) << schema.error().what;
  const Operator& fwd = *schema->find("fwd");
  const Operator& bwd = *schema->find("bwd");
  EXPECT_TRUE(fwd.shared_context);
  EXPECT_FALSE(bwd.shared_context);
  EXPECT_FALSE(fwd.is_deterministic("fused"));
  EXPECT_TRUE(fwd.is_deterministic("reference"));
  EXPECT_EQ(fwd.attr("n")->condition->text(), "mode == 'a'");
  EXPECT_EQ(std::get<std::int64_t>(fwd.attr("n")->also[0]), 33);
  EXPECT_EQ(fwd.input("x")->layout, LayoutRule::kInnerDense);
  EXPECT_EQ(fwd.input("x")->align, 64);
  const InputRule& idx = *fwd.input("idx");
  EXPECT_TRUE(idx.distinct && idx.sorted);
  EXPECT_EQ(idx.also, std::vector<std::int64_t>{-100});
  EXPECT_EQ(idx.range->second.text(), "N - 1");
  EXPECT_EQ(fwd.input("off")->sum->text(), "B");
  EXPECT_EQ(fwd.input("s")->shape.size(), 0u);
  const OutputRule& y = *fwd.output("y");
  EXPECT_TRUE(y.nan_bits);
  EXPECT_EQ(y.agree.allowed(DType::kBF16), 2u);
  EXPECT_EQ(y.agree.allowed(DType::kF32), 0u);
  EXPECT_EQ(y.bound->of, BoundScale::kRowAbsSum);
  EXPECT_EQ(y.bound->by_dtype.at(DType::kF16).text(), "2 * N + 8");
  EXPECT_EQ(y.bound->by_dtype.at(DType::kBF16).text(), "3");
  EXPECT_EQ(y.bound->by, "p");
  EXPECT_TRUE(fwd.output("z")->bound->by_dtype.empty());
  EXPECT_EQ(fwd.output("z")->bound->ulp.text(), "8");
  const BoundRule& gx = *bwd.output("gx")->bound;
  EXPECT_EQ(gx.of, BoundScale::kRowMaxProduct);
  EXPECT_EQ(gx.products, (std::vector<std::vector<std::string>>{{"y", "gy", "y"}, {"gy"}, {}}));
  EXPECT_EQ(y.always[1].within, 1e-3);
  EXPECT_EQ(fwd.output("z")->agree.allowed(DType::kF32), 4u);
  EXPECT_EQ(std::get<double>(fwd.output("z")->always[0].low), 0.5);
  EXPECT_EQ(fwd.output("perm")->condition->text(), "n > 1");
  const DecideRule& decide = fwd.decide[0];
  EXPECT_TRUE(decide.order == Order::kSmallest && decide.nan == NanOrder::kNever && !decide.zeros_equal);
  EXPECT_TRUE(!decide.tie_lowest_index && !decide.sorted && decide.has_none && decide.none == -1);
  EXPECT_EQ(decide.among, "cnt");
  EXPECT_EQ(decide.values, "z");
  EXPECT_TRUE(!fwd.inplace[0].always && fwd.inplace[1].always);
  EXPECT_EQ(bwd.decide[0].order_attr, "desc");
  EXPECT_EQ(bwd.decide[0].nan, NanOrder::kAsMinusInf);
  EXPECT_EQ(bwd.input("y")->saved->inputs.at("x"), "x");
  EXPECT_EQ(bwd.gradient->wrt.at("gx"), "x");
  EXPECT_NE(bwd.source("x"), nullptr);
  EXPECT_EQ(bwd.input("x"), nullptr);
}

TEST(SchemaJson, PointsAtWhatIsWrong) {
  EXPECT_EQ(
      error_after("\"role\": \"bias\"", "\"role\": \"scor\""),
      "/operators/0/inputs/1/role: \"scor\" is not a role; did you mean \"score\"? legal: activation, score, bias, "
      "probability, scale, cotangent, mask, index, counts, offsets, saved");
  EXPECT_EQ(error_after("\"optional\": true}]", "\"optinal\": true}]").substr(0, 75),
            "/operators/0/inputs/1/optinal: \"optinal\" is not a key here; did you mean \"o");
  EXPECT_EQ(error_after("\"KG <= G\"", "\"KG <= H\""),
            "/operators/0/where/1: \"H\" is not a dim or attribute; legal: T, E, K, G, KG, k, "
            "group_count, k_group, norm_type, renorm, routed_scaling_factor, eps");
  EXPECT_EQ(error_after("\"shape\": [\"T\", \"E\"], \"dtype\": \"f32\", \"stage\": 2",
                        "\"shape\": [\"T\", \"k\"], \"dtype\": \"f32\", \"stage\": 2"),
            "/operators/0/outputs/1/shape/1: attribute \"k\" stands where only dims may: T, E, K, G, KG");
  EXPECT_EQ(error_after("[1, 64]", "[1, NaN]").substr(0, 9), "not JSON:");
  EXPECT_EQ(error_after("[1, 64]", "[1, 2.5]"),
            "/operators/0/dims/K/range/1: 2.5 is not a size; an integer from 0 belongs here");
  EXPECT_EQ(error_after("\"fusediff_schema\": 1", "\"fusediff_schema\": 2"),
            "fusediff_schema 2 is newer than this fusediff, which reads up to 1");
  EXPECT_EQ(error_after("\"fusediff_schema\": 1,", ""), "the key \"fusediff_schema\" is missing");
}

struct Change {
  const char* from;
  const char* to;
  const char* says;  // a part of the message
};

// One change each to the sample, every one of which must be refused in its own words.
const Change kChanges[] = {
    {"[0, 4096]", "[5, 4]", "low end stands above"},
    {"[0, 4096]", "[-1, 4]", "-1 is not a size"},
    {"[0, 4096]", "[0]", "a list of 2 belongs here"},
    {"[0, 4096]", "[0, 99999999999999999999]", "is not a size"},
    {"[0, 4096]", "[0, 1e9]", "is not a size"},
    {"[0, 4096]", "\"0..4096\"", "a list of 2 belongs here"},
    {"{\"range\": [0, 4096]}", "{}", "the key \"range\" is missing"},
    {"{\"range\": [0, 4096]}", "7", "an object belongs here"},
    {"[64, 128, 256, 512]", "[64, 4096]", "within the range"},
    {"\"T\": {", "\"1T\": {", "cannot name a dim"},
    {"\"T\": {", "\"E\": {", "stands twice"},
    {"\"int\": \"K\"", "\"int\": \"K +\"", "missing at the end"},
    {"\"int\": \"K\"", "\"int\": \"renorm\"", "stands where only dims may"},
    {"\"int\": \"K\"", "\"int\": [3, 1]", "low end stands above"},
    {"\"int\": \"K\"", "\"int\": \"K\", \"bool\": true", "exactly one of the keys"},
    {"\"int\": \"K\"", "\"integer\": \"K\"", "exactly one of the keys"},
    {"\"int\": \"K\"", "\"int\": \"K\", \"default\": 3", "has no use for a default"},
    {"\"int\": \"K\"", "\"int\": \"K\", \"if\": \"E > 2\"", "needs a default"},
    {"\"int\": \"K\"", "\"int\": \"K\", \"also\": [3]", "single values"},
    {"\"default\": \"sigmoid\"", "\"default\": \"sigmod\"", "did you mean \"sigmoid\"?"},
    {"[\"sigmoid\", \"softmax\"]", "[]", "a list of at least 1"},
    {"[\"sigmoid\", \"softmax\"]", "[\"sigmoid\", \"sigmoid\"]", "stands twice"},
    {"\"bool\": true", "\"bool\": false", "only true"},
    {"\"default\": false", "\"default\": 0", "true or false belongs"},
    {"\"default\": 1.0", "\"default\": \"1.0\"", "a finite number belongs"},
    {"\"default\": 1.0", "\"default\": 1e999", "not JSON"},
    {"[1e-20, 1e-3]", "[0, 1e-3]", "log scale"},
    {"\"scale\": \"log\"", "\"scale\": \"lin\"", "is not a scale"},
    {"\"renorm\"", "\"k\"", "names two dims or attributes"},
    {"\"renorm\"", "\"E\"", "names two dims or attributes"},
    {"\"E % G == 0\"", "\"eps == 0\"", "is a float"},
    {"\"E % G == 0\"", "\"norm_type == 0\"", "string as a number"},
    {"\"E % G == 0\"", "\"norm_type\"", "string"},
    {"\"E % G == 0\"", "17.5", "not an expression"},
    {"\"E % G == 0\"", "\"E > 2048\"", "satisfies \"E > 2048\""},
    {"\"E % G == 0\"", "\"E / 0 == 1\"", "satisfies"},
    {"\"E % G == 0\"", "\"norm_type == 'relu'\"", "satisfies"},
    {"\"E % G == 0\", \"KG <= G\"", "\"E == 5\", \"E == 6\"", "no call within the tried ranges was found"},
    {"\"E % G == 0\"", "\"0\"", "satisfies \"0\""},
    {"\"shape\": [\"T\", \"E\"]", "\"shape\": [\"T\", \"0 - E\"]", "no call within the tried ranges was found"},
    {"\"shape\": [\"T\", \"E\"]", "\"shape\": \"T\"", "is not a shape"},
    {"\"shape\": [\"T\", \"E\"]", "\"shape\": [\"T\", null]", "is not an expression"},
    {"[\"f32\", \"f16\", \"bf16\"]", "[\"f32\", \"f32\"]", "stands twice"},
    {"[\"f32\", \"f16\", \"bf16\"]", "[]", "a list of at least 1"},
    {"[\"f32\", \"f16\", \"bf16\"]", "\"float\"", "is not a dtype"},
    {"[\"f32\", \"f16\", \"bf16\"]", "\"=bias\"", "leads back to itself"},
    {"[\"f32\", \"f16\", \"bf16\"]", "\"=w\"", "\"w\" is not a tensor"},
    {"[\"f32\", \"f16\", \"bf16\"]", "\"i32\"", "need float dtypes"},
    {"\"layout\": \"any\"", "\"layout\": \"strided\"", "is not a layout"},
    {"\"layout\": \"any\"", "\"layout\": \"any\", \"align\": 48", "power of two"},
    {"\"layout\": \"any\"", "\"layout\": \"any\", \"align\": 0", "alignment"},
    {"\"layout\": \"any\"", "\"range\": [0, 1]", "belongs to the role index"},
    {"\"layout\": \"any\"", "\"sum\": 1", "belongs to the role counts"},
    {"\"layout\": \"any\"", "\"saved\": {\"op\": \"a\", \"output\": \"b\", \"inputs\": {}}", "only the role saved"},
    {"\"role\": \"score\"", "\"role\": \"saved\"", "needs the key \"saved\""},
    {"\"role\": \"score\"", "\"role\": \"index\"", "the role index needs a range"},
    {"\"role\": \"score\"", "\"role\": \"index\", \"range\": [0, 1]", "need integer dtypes"},
    {"\"role\": \"score\"", "\"role\": \"offsets\"", "needs a sum"},
    {"\"role\": \"score\"", "\"role\": {\"index\": {}}", "is not a role"},
    {"\"name\": \"bias\"", "\"name\": \"x\"", "names two tensors"},
    {"\"name\": \"y\"", "\"name\": \"x\"", "names two tensors"},
    {"\"name\": \"y\"", "\"name\": \"y/0\"", "is not the name of a tensor"},
    {"\"optional\": true}]", "\"optional\": 1}]", "true or false"},
    {"\"stage\": 1", "\"stage\": -1", "is not a stage"},
    {"\"stage\": 1", "\"stage\": \"1\"", "is not a stage"},
    {"\"stage\": 1", "\"agree\": {\"ulp\": 4}", "\"why\" is missing"},
    {"\"stage\": 1", "\"agree\": \"bit\"", "did you mean \"bits\"?"},
    {"\"stage\": 1", "\"agree\": {\"ulp\": 0, \"why\": \"\"}", "is not a number of ULP"},
    {"\"stage\": 1", "\"agree\": {\"ulp\": {\"bf16\": 1}, \"why\": \"\"}", "no dtype of this output"},
    {"\"stage\": 1", "\"bound\": {\"ulp\": \"W\", \"why\": \"\"}", "is not a dim or attribute"},
    {"\"stage\": 1", "\"bound\": {\"ulp\": \"2\", \"of\": \"row\", \"why\": \"\"}", "is not a scale of a bound"},
    {"\"stage\": 1", "\"bound\": {\"ulp\": {}, \"why\": \"\"}", "no dtype is named"},
    {"\"stage\": 1", "\"bound\": {\"ulp\": {\"f31\": 1}, \"why\": \"\"}", "is not a dtype"},
    {"\"stage\": 1", "\"bound\": {\"ulp\": {\"i32\": 1}, \"why\": \"\"}", "needs float dtypes, not \"i32\""},
    {"\"stage\": 1", "\"bound\": {\"ulp\": {\"f32\": \"W\"}, \"why\": \"\"}", "is not a dim or attribute"},
    {"\"stage\": 1", "\"bound\": {\"ulp\": 1, \"by\": \"x\", \"why\": \"\"}", "which is no map"},
    {"\"stage\": 1", "\"bound\": {\"ulp\": {\"f32\": 1}, \"by\": \"w\", \"why\": \"\"}", "is not a float input"},
    {"\"stage\": 1", "\"bound\": {\"ulp\": 1, \"of\": {\"row_max_product\": [\"w\"]}, \"why\": \"\"}",
     "is not a float tensor or attribute"},
    {"\"stage\": 1", "\"bound\": {\"ulp\": 1, \"of\": {\"row_max_product\": []}, \"why\": \"\"}",
     "a list of at least 1"},
    {"\"stage\": 1", "\"bound\": {\"ulp\": 1, \"of\": {\"row_max\": []}, \"why\": \"\"}", "is missing"},
    {"\"stage\": 3,", "\"bound\": {\"ulp\": \"2\", \"why\": \"\"},", "needs float dtypes"},
    {"\"stage\": 3,", "\"nan\": \"bits\",", "integers have no NaN"},
    {"\"stage\": 1", "\"nan\": \"any\"", "is not a rule for NaN"},
    {"{\"distinct_in_row\": true}", "{\"distinct\": true}", "is not a key here"},
    {"{\"distinct_in_row\": true}", "{\"distinct_in_row\": false}", "only true is a promise"},
    {"{\"distinct_in_row\": true}", "{}", "exactly one of range"},
    {"{\"distinct_in_row\": true}", "{\"row_sums\": 1}", "needs \"within\""},
    {"{\"distinct_in_row\": true}", "{\"row_sums\": 1, \"within\": -1}", "not negative"},
    {"{\"distinct_in_row\": true}", "{\"range\": [0, 1], \"within\": 1}", "belongs to row_sums"},
    {"\"E - 1\"", "\"F - 1\"", "is not a dim or attribute"},
    {"\"by\": \"rank\"", "\"by\": \"ranks\"", "did you mean \"rank\"?"},
    {"\"pick\": \"expert_idx\"", "\"pick\": \"y\"", "integer dtype to hold picks"},
    {"\"count\": \"K\"", "\"count\": \"KK\"", "is not a dim or attribute"},
    {"\"order\": \"largest\"", "\"order\": \"=k\"", "is not a bool attribute"},
    {"\"order\": \"largest\"", "\"order\": \"biggest\"", "is not an order"},
    {"\"order\": \"largest\"", "\"nan\": \"never\"", "\"none\" must say"},
    {"\"order\": \"largest\"", "\"among\": \"x\"", "numbers of candidates"},
    {"\"order\": \"largest\"", "\"values\": \"x\"", "is not an output"},
    {"\"tie\": \"lowest_index\"", "\"tie\": \"lowest\"", "is not a tie rule"},
    {"\"dim\": \"T\"", "\"dim\": \"Q\"", "is not a dim"},
    {"\"dim\": \"T\"", "\"dim\": \"K\"", "exactly one axis"},
    {"\"inputs\": [\"x\"]", "\"inputs\": [\"w\"]", "is not an input or given tensor"},
    {"\"inputs\": [\"x\"]", "\"inputs\": [\"bias\"]", "exactly one axis"},
    {"\"outputs\": \"all\"", "\"outputs\": \"every\"", "is not a list of outputs"},
    {"\"outputs\": \"all\"", "\"outputs\": [\"yy\"]", "is not an output"},
    {"\"outputs\": \"all\"}", "\"outputs\": \"all\"}, \"deterministic\": false",
     "at least one output's must not be bits"},
    {"\"outputs\": \"all\"}", "\"outputs\": \"all\"}, \"deterministic\": [\"fussed\"]", "is not a path"},
    {"\"outputs\": \"all\"}", "\"outputs\": \"all\"}, \"inplace\": [[\"y\", \"y\"]]", "is not an input"},
    {"\"outputs\": \"all\"}", "\"outputs\": \"all\"}, \"inplace\": [[\"y\"]]", "is not an inplace rule"},
    {"\"outputs\": \"all\"}", "\"outputs\": \"all\"}, \"dtype\": {\"x\": [\"f32\"]}", "is not a key here"},
    {"[\"fused\", \"unfused\"]", "[]", "needs a path"},
    {"[\"fused\", \"unfused\"]", "[\"fused\", \"fused\"]", "stands twice"},
    {"\"moe_gating_topk\"", "\"moe/gating\"", "cannot name an operator"},
    {"\"moe_gating_topk\"", "3", "is not the name of an operator"},
    {"\"shared_context\"", "\"shared\"", "is not a threads rule"},
    {"\"fusediff_schema\": 1", "\"fusediff_schema\": \"1\"", "is not a schema version"},
    {"\"operators\": [", "\"operators\": [null, ", "is not an operator"},
};

TEST(SchemaJson, RefusesEachDamage) {
  for (const Change& change : kChanges) {
    const std::string error = error_after(change.from, change.to);
    EXPECT_NE(error.find(change.says), std::string::npos) << change.from << " -> " << change.to << "\n  " << error;
  }
}

TEST(SchemaJson, RefusesEveryTruncation) {
  for (std::size_t size = 0; size < kSampleSchema.size(); ++size) {
    EXPECT_NE(error_of(kSampleSchema.substr(0, size)), "") << size;
  }
}

TEST(SchemaJson, SurvivesRandomDamage) {
  Rng rng(1);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text(round % 2 == 0 ? kSampleSchema : kEveryKey);
    static constexpr std::string_view kPieces[] = {
        "{",    "}",  "[",   "]",    "\"", ":", ",", "null", "-1", "1e30", "\"x\"", "true", "99999999999999999999",
        "\xff", "\\", "0.5", "\"\"", "{}"};
    for (std::int64_t i = rng.between(1, 3); i > 0; --i) {
      const std::size_t at = rng.below(text.size());
      text.replace(at, rng.below(4), kPieces[rng.below(std::size(kPieces))]);
    }
    refused += error_of(text).empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 2500);
}

TEST(SchemaJson, RefusesOddTexts) {
  for (const std::string& text : {std::string(), std::string("null"), std::string("[]"), std::string("{}"),
                                  std::string(1 << 20, '['), std::string("{\"fusediff_schema\": 1, \"operators\": []}"),
                                  std::string("{\"fusediff_schema\": 1, \"operators\": {}}"),
                                  std::string("{\"fusediff_schema\": 1}"), std::string("\0", 1)}) {
    EXPECT_NE(error_of(text), "") << text.substr(0, 60);
  }
  EXPECT_NE(error_of(std::string((16 << 20) + 1, ' ')).find("at most"), std::string::npos);
}

TEST(SchemaJson, RefusesTwoOperatorsOfOneName) {
  std::string text(kSampleSchema);
  const std::size_t from = text.find("[{") + 1;
  const std::string record = text.substr(from, text.rfind(']') - from);
  text.insert(from, record + ",");
  EXPECT_NE(error_of(text).find("stands twice"), std::string::npos);
}

TEST(SchemaJson, ChecksReferencesWithinTheSchema) {
  const auto after = [](std::string_view from, std::string_view to) { return error_of(changed(kEveryKey, from, to)); };
  EXPECT_NE(after("\"output\": \"y\", \"inputs\"", "\"output\": \"q\", \"inputs\"").find("an output of fwd"),
            std::string::npos);
  EXPECT_NE(after("\"inputs\": {\"x\": \"x\"}", "\"inputs\": {\"q\": \"x\"}").find("an input of fwd"),
            std::string::npos);
  EXPECT_NE(after("\"inputs\": {\"x\": \"x\"}", "\"inputs\": {\"x\": \"y\"}").find("values of its own"),
            std::string::npos);
  EXPECT_NE(after("{\"gx\": \"x\"}", "{\"gx\": \"q\"}").find("an input of fwd"), std::string::npos);
  EXPECT_NE(after("{\"gx\": \"x\"}", "{\"q\": \"x\"}").find("is not an output"), std::string::npos);
  EXPECT_NE(after("{\"gy\": \"y\"}", "{\"gy\": \"q\"}").find("an output of fwd"), std::string::npos);
  EXPECT_NE(after("{\"gy\": \"y\"}", "{\"q\": \"y\"}").find("is not an input"), std::string::npos);
  EXPECT_EQ(after("\"op\": \"fwd\"", "\"op\": \"of_the_other_side\""), "");
}

const Schema* builtin(std::string_view target) {
  static const Schema schema = sample();
  return target == "builtin" ? &schema : nullptr;
}

std::string like(std::string_view rest) {
  return R"({"fusediff_schema": 1, "threads": "one_context_each", "operators": [{"name": "moe_gating_topk", "like": "builtin")" +
         std::string(rest) + "}]}";
}

TEST(SchemaJson, LikeCopiesAndNarrows) {
  Result<Schema> schema =
      parse_schema(like(R"(, "paths": ["fused"], "where": ["E <= 256"], "dtype": {"x": ["f16", "f32"]}, "dims":
        {"T": {"range": [1, 2]}, "E": {"range": [1, 512]}, "K": {"range": [1, 8]}, "G": {"range": [1, 1]},
         "KG": {"range": [1, 1]}})"),
                   builtin);
  ASSERT_TRUE(schema.ok()) << schema.error().what;
  const Operator& op = schema->operators[0];
  EXPECT_EQ(op.paths, std::vector<std::string>{"fused"});
  EXPECT_EQ(op.deterministic_paths, op.paths);
  EXPECT_FALSE(op.shared_context);
  EXPECT_EQ(op.where.size(), 4u);
  EXPECT_EQ(op.input("x")->dtype.choices, (std::vector<DType>{DType::kF16, DType::kF32}));
  EXPECT_EQ(op.dim("E")->high, 512);
  EXPECT_EQ(op.outputs.size(), 4u);
  EXPECT_EQ(builtin("builtin")->operators[0].where.size(), 3u);
}

TEST(SchemaJson, LikeIsRefusedWhenItDoesNotNarrow) {
  const auto after = [](std::string_view rest) { return error_of(like(rest), builtin); };
  EXPECT_EQ(after(""), "");
  EXPECT_NE(after(R"(, "dtype": {"x": ["f64"]})").find("is not a dtype that it could have"), std::string::npos);
  EXPECT_NE(after(R"(, "dtype": {"y": ["f32"]})").find("follows \"x\""), std::string::npos);
  EXPECT_NE(after(R"(, "dtype": {"w": ["f32"]})").find("not a tensor"), std::string::npos);
  EXPECT_NE(after(R"(, "where": ["E > 4096"])").find("/operators/0/where/0: "), std::string::npos);
  EXPECT_NE(after(R"(, "dims": {"T": {"range": [1, 2]}})").find("is not a dim"), std::string::npos);
  EXPECT_NE(error_of(like(""), nullptr).find("there is no target \"builtin\""), std::string::npos);
  EXPECT_NE(error_of(changed(like(""), "\"builtin\"", "\"other\""), builtin).find("no target \"other\""),
            std::string::npos);
  EXPECT_NE(
      error_of(changed(like(""), "gating_topk", "gating_topq"), builtin).find("did you mean \"moe_gating_topk\"?"),
      std::string::npos);
}

// Rules like those of real operators, each of which has a legal call that random draws rarely hit.
TEST(SchemaSearch, FindsRareCalls) {
  const char* kRules[] = {"\"C % 128 == 0\", \"N == 4\", \"M == N * N + 2 * N\"",
                          "\"A * B == C\", \"C > 50000\"",
                          "\"C == 99999\"",
                          "\"A == B\", \"B == N + 100\", \"C == A * 7\"",
                          "\"mode == 'b' && n == 13 || mode == 'c' && N == 7\", \"mode != 'a'\"",
                          "\"C / (A - 1000) == 3\""};
  for (const char* rules : kRules) {
    const std::string text = std::string(R"({"fusediff_schema": 1, "operators": [{"name": "op", "paths": ["fused"],
      "dims": {"A": {"range": [0, 4096]}, "B": {"range": [0, 4096]}, "C": {"range": [1, 100000]}, "N": {"range": [1, 64]},
               "M": {"range": [1, 5000]}},
      "attrs": [{"name": "n", "int": [0, 100]}, {"name": "mode", "choice": ["a", "b", "c"]}],
      "where": [)") + rules + R"(], "inputs": [], "outputs": [{"name": "y", "shape": ["A"], "dtype": "f32"}]}]})";
    EXPECT_EQ(error_of(text), "") << rules;
  }
}

TEST(SchemaSearch, AnswersTheSameEachTime) {
  const Schema schema = sample();
  const LegalSearch first = find_legal(schema.operators[0]);
  const LegalSearch second = find_legal(schema.operators[0]);
  ASSERT_TRUE(first.found);
  EXPECT_EQ(first.dims, second.dims);
  EXPECT_EQ(first.dims.size(), 5u);
  EXPECT_EQ(first.attrs.size(), 7u);
}

}  // namespace
}  // namespace fusediff
