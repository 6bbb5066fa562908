// Each key of SCHEMA.md by the builder, against the same record as JSON; whole records, by what the reader makes of
// them; wrong use.
#include "kit/schema.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "kit/rig.h"
#include "model/schema_json.h"

namespace {

using namespace fusediff::kit;
using nlohmann::json;

void nothing(const Call&) {}
size_t eight_bytes(const Call&) { return 8; }

// What the builder says beyond the name and the four keys that every record has.
json keys_of(const Draft& draft) {
  json record = json::parse(draft.schema());
  for (const char* key : {"name", "paths", "dims", "inputs", "outputs"}) {
    EXPECT_TRUE(record.contains(key)) << key;
    record.erase(key);
  }
  return record;
}

json first(const Draft& draft, const char* list) { return json::parse(draft.schema()).at(list).at(0); }

// What the reader says of a target with this operator alone.
std::string trouble_of(const Draft& draft) {
  const auto read = fusediff::parse_schema(R"({"fusediff_schema": 1, "operators": [)" + draft.schema() + "]}",
                                           [](std::string_view) { return nullptr; });
  return read.ok() ? "" : read.error().what;
}

OutputDraft plain() {
  return op("a").dim("R", 0, 4).dim("C", 1, 4).input("x", {"R", "C"}, f32).output("y", {"R", "C"}, same_as("x"));
}

TEST(KitSchema, WritesTheSmallestRecord) {
  EXPECT_EQ(json::parse(plain().path("fused", nothing).path("unfused", nothing).schema()), json::parse(R"({
    "name": "a", "paths": ["fused", "unfused"], "dims": {"R": {"range": [0, 4]}, "C": {"range": [1, 4]}},
    "inputs": [{"name": "x", "shape": ["R", "C"], "dtype": "f32"}],
    "outputs": [{"name": "y", "shape": ["R", "C"], "dtype": "=x"}]})"));
  EXPECT_EQ(json::parse(op("a").schema()),
            json::parse(R"({"name": "a", "paths": [], "dims": {}, "inputs": [], "outputs": []})"));
}

TEST(KitSchema, WritesDims) {
  const json dims = json::parse(op("a").dim("E", 1, 2048, {64, 128}).schema()).at("dims");
  EXPECT_EQ(dims, json::parse(R"({"E": {"range": [1, 2048], "typical": [64, 128]}})"));
}

TEST(KitSchema, WritesAttributes) {
  const Draft draft = op("a")
                          .integer("k", "K")
                          .integer("g", "G")
                          .when("G > 1", 1)
                          .integer("four", 4)
                          .integer("steps", 1, 4)
                          .by_default(1)
                          .also({-1, 0})
                          .when("k > 1")
                          .real("eps", 1e-20, 1)
                          .by_default(1e-20)
                          .also({0.0, 0.1})
                          .log_scale()
                          .when("steps == 2")
                          .flag("renorm")
                          .by_default(false)
                          .when("k > 1")
                          .text("mode", {"a", "b"})
                          .by_default("b")
                          .when("k > 1");
  EXPECT_EQ(keys_of(draft), json::parse(R"({"attrs": [
    {"name": "k", "int": "K"}, {"name": "g", "int": "G", "default": 1, "if": "G > 1"}, {"name": "four", "int": 4},
    {"name": "steps", "int": [1, 4], "default": 1, "also": [-1, 0], "if": "k > 1"},
    {"name": "eps", "float": [1e-20, 1.0], "default": 1e-20, "also": [0.0, 0.1], "scale": "log", "if": "steps == 2"},
    {"name": "renorm", "bool": true, "default": false, "if": "k > 1"},
    {"name": "mode", "choice": ["a", "b"], "default": "b", "if": "k > 1"}]})"));
}

TEST(KitSchema, WritesRulesOfTheWholeOperator) {
  const Draft draft = op("a")
                          .where("E % G == 0")
                          .where("mode == 'b'")
                          .inplace("y", "x")
                          .always_inplace("z", "x")
                          .gradient("norm", {{"grad_x", "x"}, {"grad_g", "g"}}, {{"grad_y", "y"}})
                          .deterministic_paths({"unfused"})
                          .one_context_each();
  EXPECT_EQ(keys_of(draft), json::parse(R"({
    "where": ["E % G == 0", "mode == 'b'"], "inplace": [["y", "x"], ["z", "x", "always"]],
    "gradient": {"of": "norm", "wrt": {"grad_x": "x", "grad_g": "g"}, "cotangents": {"grad_y": "y"}},
    "deterministic": ["unfused"], "threads": "one_context_each"})"));
  EXPECT_EQ(keys_of(op("a").not_deterministic().shared_context()),
            json::parse(R"({"deterministic": false, "threads": "shared_context"})"));
}

TEST(KitSchema, WritesRows) {
  const Draft tensors = op("a")
                            .input("x", {"R", "C"}, f32)
                            .input("gamma", {"C"}, f32)
                            .output("y", {"R", "C"}, f32)
                            .output("sum", {"C"}, f32);
  EXPECT_EQ(keys_of(Draft(tensors).rows("R")),
            json::parse(R"({"rows": {"dim": "R", "inputs": ["x"], "outputs": ["y"]}})"));
  EXPECT_EQ(keys_of(op("a").rows("R", {"x", "z"})),
            json::parse(R"({"rows": {"dim": "R", "inputs": ["x", "z"], "outputs": "all"}})"));
  EXPECT_EQ(keys_of(op("a").rows("R", {}, {"y"})),
            json::parse(R"({"rows": {"dim": "R", "inputs": [], "outputs": ["y"]}})"));
}

TEST(KitSchema, WritesTensors) {
  const auto x = [] { return op("a").input("x", {"2 * R", 4, "C"}, {f32, bf16, f8e5m2}); };
  const auto extra = [](const Draft& draft) {
    json tensor = first(draft, "inputs");
    EXPECT_EQ(tensor.at("shape"), json::parse(R"(["2 * R", 4, "C"])"));
    EXPECT_EQ(tensor.at("dtype"), json::parse(R"(["f32", "bf16", "f8e5m2"])"));
    for (const char* key : {"name", "shape", "dtype"}) tensor.erase(key);
    return tensor;
  };
  EXPECT_EQ(extra(x()), json::object());
  EXPECT_EQ(extra(x().any_layout().align(16).optional().when("k > 1")),
            json::parse(R"({"layout": "any", "align": 16, "optional": true, "if": "k > 1"})"));
  EXPECT_EQ(extra(x().dense()), json::parse(R"({"layout": "dense"})"));
  EXPECT_EQ(extra(x().inner_dense()), json::parse(R"({"layout": "inner_dense"})"));
  EXPECT_EQ(extra(x().activation()), json::parse(R"({"role": "activation"})"));
  EXPECT_EQ(extra(x().score()), json::parse(R"({"role": "score"})"));
  EXPECT_EQ(extra(x().bias()), json::parse(R"({"role": "bias"})"));
  EXPECT_EQ(extra(x().probability()), json::parse(R"({"role": "probability"})"));
  EXPECT_EQ(extra(x().scale()), json::parse(R"({"role": "scale"})"));
  EXPECT_EQ(extra(x().cotangent()), json::parse(R"({"role": "cotangent"})"));
  EXPECT_EQ(extra(x().mask()), json::parse(R"({"role": "mask"})"));
  EXPECT_EQ(extra(x().index(0, "E - 1").distinct().sorted().also({-100}).any_layout()),
            json::parse(R"({"role": "index", "range": [0, "E - 1"], "distinct": true, "sorted": true, "also": [-100],
                            "layout": "any"})"));
  EXPECT_EQ(extra(x().counts().range(0, "T").sum("N")),
            json::parse(R"({"role": "counts", "range": [0, "T"], "sum": "N"})"));
  EXPECT_EQ(extra(x().offsets("N")), json::parse(R"({"role": "offsets", "sum": "N"})"));
  EXPECT_EQ(extra(x().saved("norm", "rstd", {{"x", "x"}, {"g", "gamma"}})),
            json::parse(R"({"role": "saved", "saved": {"op": "norm", "output": "rstd",
                                                       "inputs": {"x": "x", "g": "gamma"}}})"));
  EXPECT_EQ(first(op("a").given("y", {}, boolean).index(0, 1).distinct(), "given"),
            json::parse(R"({"name": "y", "shape": [], "dtype": "bool", "role": "index", "range": [0, 1],
                            "distinct": true})"));
}

TEST(KitSchema, WritesOutputs) {
  const auto y = [] { return op("a").output("y", {}, i64); };
  const auto extra = [](const Draft& draft) {
    json tensor = first(draft, "outputs");
    for (const char* key : {"name", "shape", "dtype"}) tensor.erase(key);
    return tensor;
  };
  EXPECT_EQ(
      extra(y().stage(2).optional().when("k > 1").any_layout().align(8).nan_bits()),
      json::parse(R"({"stage": 2, "optional": true, "if": "k > 1", "layout": "any", "align": 8, "nan": "bits"})"));
  EXPECT_EQ(extra(y().always_in_range(0, "E - 1", "k > 1").always_in_range(0.0, 1e30).always_distinct_in_row()),
            json::parse(R"({"always": [{"range": [0, "E - 1"], "if": "k > 1"}, {"range": [0.0, 1e30]},
                                       {"distinct_in_row": true}]})"));
  EXPECT_EQ(extra(y().always_finite_if_inputs_finite().always_row_sums(1, 1e-3, "k > 1").always_permutation()),
            json::parse(R"({"always": [{"finite_if_inputs_finite": true},
                                       {"row_sums": 1.0, "within": 1e-3, "if": "k > 1"}, {"permutation": true}]})"));
  EXPECT_EQ(extra(y().agree(4, "why")), json::parse(R"({"agree": {"ulp": 4, "why": "why"}})"));
  EXPECT_EQ(extra(y().agree({{bf16, 1}, {f32, 4}}, "why")),
            json::parse(R"({"agree": {"ulp": {"bf16": 1, "f32": 4}, "why": "why"}})"));
  EXPECT_EQ(extra(y().agree_bits()), json::parse(R"({"agree": "bits"})"));
}

TEST(KitSchema, WritesBounds) {
  const auto bound = [](const Draft& draft) { return first(draft, "outputs").at("bound"); };
  const auto y = [] { return op("a").output("y", {}, f32); };
  EXPECT_EQ(bound(y().bound("2 * N + 8", BoundScale::element(), "why")),
            json::parse(R"({"ulp": "2 * N + 8", "of": "element", "why": "why"})"));
  EXPECT_EQ(bound(y().bound_by("x", {{f32, "2 * C"}, {bf16, 3}}, BoundScale::row_max(), "why")),
            json::parse(R"({"ulp": {"f32": "2 * C", "bf16": 3}, "by": "x", "of": "row_max", "why": "why"})"));
  EXPECT_EQ(bound(y().bound(0, BoundScale::row_abs_sum(), "why")).at("of"), "row_abs_sum");
  EXPECT_EQ(bound(y().bound(0, BoundScale::abs_inputs(), "why")).at("of"), "abs_inputs");
  EXPECT_EQ(bound(y().bound(0, BoundScale::row_max_product({{}, {"x", "rstd"}}), "why")).at("of"),
            json::parse(R"({"row_max_product": [[], ["x", "rstd"]]})"));
}

TEST(KitSchema, WritesDecisions) {
  const auto rule = [](const Draft& draft) { return first(draft, "decide"); };
  const auto decide = [] { return op("a").decide("rank", "idx", "K"); };
  EXPECT_EQ(rule(decide()), json::parse(R"({"by": "rank", "pick": "idx", "count": "K"})"));
  EXPECT_EQ(rule(decide().largest().nan_least().zeros_equal().tie_lowest_index().sorted()),
            json::parse(R"({"by": "rank", "pick": "idx", "count": "K", "order": "largest", "nan": "least",
                            "zeros": "equal", "tie": "lowest_index", "sorted": true})"));
  EXPECT_EQ(rule(decide().smallest().nan_never(-1).zeros_ordered().tie_any().sorted(false).among("n").values("v")),
            json::parse(R"({"by": "rank", "pick": "idx", "count": "K", "order": "smallest", "nan": "never", "none": -1,
                            "zeros": "ordered", "tie": "any", "sorted": false, "among": "n", "values": "v"})"));
  EXPECT_EQ(rule(decide().largest_if("big").nan_greatest().none(7)),
            json::parse(R"({"by": "rank", "pick": "idx", "count": "K", "order": "=big", "nan": "greatest",
                            "none": 7})"));
  EXPECT_EQ(rule(decide().nan_as_minus_infinity()).at("nan"), "as_-inf");
}

TEST(KitSchema, LikeAnotherSaysOnlyWhatIsNarrower) {
  EXPECT_EQ(json::parse(op("moe_gating_topk")
                            .like("builtin")
                            .narrow("x", {f32, bf16})
                            .where("E <= 256")
                            .path("fused", nothing)
                            .schema()),
            json::parse(R"({"name": "moe_gating_topk", "like": "builtin", "paths": ["fused"], "where": ["E <= 256"],
                            "dtype": {"x": ["f32", "bf16"]}})"));
}

TEST(KitSchema, EscapesTexts) {
  const std::string odd = "a \"b\" \\ \n \x01 \xc3\xa9";
  EXPECT_EQ(first(op("a").output("y", {}, f32).agree(1, odd), "outputs").at("agree").at("why"), odd);
}

TEST(KitSchema, WritesNumbersThatReadBack) {
  for (const double value : {0.1, 1e-20, 1.0, -0.0, 3e300, 5e-324}) {
    const json read = json::parse(json_number(value));
    EXPECT_TRUE(read.is_number_float()) << json_number(value);
    EXPECT_EQ(read.get<double>(), value);
  }
}

// One record with everything that fits together, as the reader takes it.
TEST(KitSchema, TheReaderTakesAWholeRecord) {
  const Draft gating = op("moe_gating_topk")
                           .dim("T", 0, 4096)
                           .dim("E", 1, 2048, {64, 128})
                           .dim("K", 1, 64)
                           .integer("k", "K")
                           .text("norm_type", {"sigmoid", "softmax"})
                           .by_default("sigmoid")
                           .real("eps", 1e-20, 1e-3)
                           .log_scale()
                           .by_default(1e-20)
                           .where("K <= E")
                           .input("x", {"T", "E"}, {f32, f16, bf16})
                           .score()
                           .any_layout()
                           .input("bias", {"E"}, same_as("x"))
                           .bias()
                           .optional()
                           .output("rank", {"T", "E"}, f32)
                           .stage(1)
                           .optional()
                           .bound("4 * E + 16", BoundScale::row_max(), "a derivation")
                           .output("expert_idx", {"T", "K"}, i32)
                           .stage(2)
                           .always_in_range(0, "E - 1")
                           .always_distinct_in_row()
                           .output("y", {"T", "K"}, same_as("x"))
                           .stage(3)
                           .agree({{bf16, 1}}, "a derivation")
                           .decide("rank", "expert_idx", "K")
                           .rows("T")
                           .path("fused", nothing)
                           .path("unfused", nothing);
  const auto schema =
      fusediff::parse_schema(R"({"fusediff_schema": 1, "operators": [)" + gating.schema() + "]}", nullptr);
  ASSERT_TRUE(schema.ok()) << schema.error().what;
  const fusediff::Operator& read = schema->operators.front();
  EXPECT_EQ(read.rows->inputs, std::vector<std::string>{"x"});
  EXPECT_EQ(read.rows->outputs, (std::vector<std::string>{"rank", "expert_idx", "y"}));
  EXPECT_EQ(read.output("y")->agree.allowed(fusediff::DType::kBF16), 1u);
  EXPECT_TRUE(read.attr("eps")->log_scale);
}

// Wrong use that compiles: one line with the place, when the target is loaded.
TEST(KitSchema, TheReaderNamesWhatIsWrong) {
  EXPECT_EQ(trouble_of(plain().path("fused", nothing)), "");
  const auto says = [](const Draft& draft, const char* what) {
    const std::string trouble = trouble_of(Draft(draft).path("fused", nothing));
    EXPECT_NE(trouble.find(what), std::string::npos) << trouble;
    EXPECT_EQ(trouble.find('\n'), std::string::npos) << trouble;
  };
  says(plain().stage(1).stage(2), "/operators/0/outputs/0");
  says(plain().rows("R").rows("C"), "rows");
  says(plain().rows("Q"), "Q");
  says(plain().input("z", {"N"}, f32), "/operators/0/inputs/1/shape/0");
  says(plain().input("z", {"R"}, same_as("nobody")), "nobody");
  says(plain().real("eps", 0, std::numeric_limits<double>::infinity()), "/operators/0/attrs/0/float/1");
  says(plain().dim("R", 0, 4), "\"R\"");
  says(plain().where("R >"), "/operators/0/where/0");
  says(op("no name"), "\"no name\" cannot name an operator");
  Draft many = plain();
  for (int i = 0; i < 9; ++i) {
    many.path("path_" + std::to_string(i), nothing);
  }
  says(many, "more paths than");
}

// Wrong use that does not compile.
template <class T>
concept HasStage = requires(T draft) {
  draft.stage(1);
};
template <class T>
concept HasRole = requires(T draft) {
  draft.score();
};
template <class T>
concept HasDistinct = requires(T draft) {
  draft.distinct();
};
template <class T>
concept HasSaved = requires(T draft) {
  draft.saved("a", "b", {});
};
template <class T>
concept HasLogScale = requires(T draft) {
  draft.log_scale();
};
template <class T>
concept TakesNoFunction = requires(T draft) {
  draft.path("fused", nullptr);
};
static_assert(HasStage<OutputDraft> && !HasStage<InputDraft> && !HasStage<Draft>);
static_assert(HasRole<InputDraft> && HasRole<GivenDraft> && !HasRole<OutputDraft>);
static_assert(HasDistinct<IndexDraft<InputDraft>> && !HasDistinct<InputDraft>);
static_assert(HasSaved<InputDraft> && !HasSaved<GivenDraft>);
static_assert(HasLogScale<RealDraft> && !HasLogScale<IntegerDraft>);
static_assert(!TakesNoFunction<Draft>);

void halve(const Call& call) {
  const auto x = call.input("x").dense<const float>();
  const auto y = call.output("y").dense<float>();
  for (size_t i = 0; i < x.size(); ++i) {
    y[i] = x[i] / 2;
  }
}

const Operator kHalve =
    op("halve").dim("N", 0, 9).input("x", {"N"}, f32).output("y", {"N"}, f32).path("fused", halve, eight_bytes);
const Operator kRaw{"raw", R"({"name": "raw"})", {{"fused", nothing}}};

TEST(KitSchema, BecomesAnOperatorBesideRawOnes) {
  const std::string text = fusediff_target()->schema();
  const json operators = json::parse(text).at("operators");
  EXPECT_EQ(operators.size(), 2u);
  EXPECT_EQ(operators.at(0).at("name"), "halve");
  EXPECT_EQ(operators.at(1), json::parse(R"({"name": "raw"})"));
  EXPECT_EQ(kHalve.paths[0].workspace_bytes, &eight_bytes);
  Rig rig("halve");
  rig.input("x", f32, {3}).put_number(2, 5);
  rig.output("y", f32, {3});
  ASSERT_EQ(rig.run(*fusediff_target(), "fused"), FUSEDIFF_OK) << rig.error();
  EXPECT_EQ(rig.output("y").number(2), 2.5);
}

}  // namespace

FUSEDIFF_KIT_TARGET("schema_test", "1", kHalve, kRaw)
