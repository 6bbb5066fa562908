#include "model/call.h"

#include <gtest/gtest.h>

#include <string>

#include "model/case_json.h"
#include "model/sample_test.h"
#include "model/schema_json.h"

namespace fusediff {
namespace {

constexpr std::uint64_t kCap = std::uint64_t{1} << 30;

// Every rule that bind() looks at and the sample lacks.
constexpr std::string_view kRules = R"json({"fusediff_schema": 1, "operators": [{
  "name": "op", "paths": ["fused"],
  "dims": {"B": {"range": [0, 8]}, "N": {"range": [1, 8]}},
  "attrs": [{"name": "mode", "choice": ["a", "b"], "default": "b"},
            {"name": "n", "int": [1, 20], "default": 2, "also": [33], "if": "mode == 'a'"},
            {"name": "must", "int": [0, 4]},
            {"name": "half", "int": "N / 2"}],
  "where": ["B % N == 0 || mode == 'a'"],
  "inputs": [{"name": "x", "shape": ["B", "N"], "dtype": ["f32", "f16"], "layout": "inner_dense", "align": 16},
             {"name": "w", "shape": ["N"], "dtype": "=x", "if": "mode == 'a'"},
             {"name": "o", "shape": ["B", "N"], "dtype": "f32", "layout": "any", "optional": true},
             {"name": "s", "shape": [], "dtype": "f32", "saved": {"op": "f", "output": "s", "inputs": {"x": "x"}}}],
  "given": [{"name": "g", "shape": ["B"], "dtype": "f32"}],
  "outputs": [{"name": "y", "shape": ["B", "N"], "dtype": "=x", "layout": "any"},
              {"name": "z", "shape": ["B", "N"], "dtype": "f32", "layout": "any"},
              {"name": "u", "shape": ["B", "N"], "dtype": "=x"},
              {"name": "opt", "shape": ["B"], "dtype": "i32", "optional": true},
              {"name": "cond", "shape": ["B"], "dtype": "i32", "if": "mode == 'a'"}],
  "inplace": [["y", "x"], ["z", "o", "always"], ["u", "x"], ["z", "x"]]}]})json";

constexpr std::string_view kRulesCase = R"({"fusediff_case": 1, "op": "op", "dims": {"B": 8, "N": 4},
  "attrs": {"must": 1}, "dtypes": {"x": "f32"},
  "inputs": {"x": {"fill": {"constant": 1}}, "g": {"fill": {"constant": 1}}},
  "layout": {"x": {}, "y": {}}, "unwanted": []})";

const Schema& sample() {
  static const Schema schema = *parse_schema(kSampleSchema, nullptr);
  return schema;
}

const Schema& rules() {
  static const Schema schema = *parse_schema(kRules, nullptr);
  return schema;
}

Result<Call> bind_text(const std::string& text, const Operator& op, std::uint64_t cap = kCap, bool outside = false) {
  Result<Case> c = parse_case(text);
  if (!c.ok()) return c.error();
  return bind(*c, op, cap, outside);
}

Result<Call> bind_sample(std::string_view from = "", std::string_view to = "") {
  return bind_text(changed(kSampleCase, from, to), sample().operators[0]);
}

Result<Call> bind_rules(std::string_view from = "", std::string_view to = "") {
  return bind_text(changed(kRulesCase, from, to), rules().operators[0]);
}

std::string error_of(const Result<Call>& call) {
  if (call.ok()) return "";
  EXPECT_EQ(call.error().what.find('\n'), std::string::npos);
  EXPECT_EQ(call.error().what.substr(0, 1), "/") << call.error().what;
  return call.error().what;
}

TEST(Bind, DecidesEverythingOfTheSample) {
  const Result<Call> call = bind_sample();
  ASSERT_TRUE(call.ok()) << call.error().what;
  EXPECT_EQ(call->dims, (std::vector<std::int64_t>{1, 512, 10, 1, 1}));
  ASSERT_EQ(call->attrs.size(), 7u);
  EXPECT_EQ(std::get<std::int64_t>(call->attrs[0].value), 10);
  EXPECT_EQ(std::get<std::string>(call->attrs[3].value), "sigmoid");
  EXPECT_EQ(std::get<double>(call->attrs[5].value), 1.0);
  EXPECT_EQ(std::get<double>(call->attrs[6].value), 1e-20);
  const Tensor& x = call->inputs[0];
  EXPECT_EQ(x.shape, (std::vector<std::int64_t>{1, 512}));
  EXPECT_EQ(x.stride, (std::vector<std::int64_t>{520, 1}));
  EXPECT_EQ(x.offset, 3);
  EXPECT_EQ(x.place, Place::kMiddle);
  EXPECT_EQ(x.align, 4);
  EXPECT_EQ(call->inputs[1].dtype, DType::kF32);
  EXPECT_TRUE(call->inputs[1].present);
  EXPECT_EQ(call->outputs[2].dtype, DType::kI32);
  EXPECT_EQ(call->outputs[3].stride, (std::vector<std::int64_t>{10, 1}));
  EXPECT_TRUE(call->outputs[1].present);
  EXPECT_TRUE(call->notes.empty());
  EXPECT_EQ(call->broken, "");
}

TEST(Bind, EvaluatesByNameAndBySlot) {
  const Result<Call> call = bind_sample();
  ASSERT_TRUE(call.ok());
  EXPECT_EQ(*call->evaluate(*Expr::parse("E / k + T")), 52);
  EXPECT_EQ(*call->evaluate(*Expr::parse("norm_type == 'sigmoid' && renorm == 0")), 1);
  EXPECT_FALSE(call->evaluate(*Expr::parse("eps")).ok());
  EXPECT_FALSE(call->evaluate(*Expr::parse("Q")).ok());
  EXPECT_EQ(*call->evaluate(sample().operators[0].where[0]), 1);
  // An expression of another operator is read by name, never by its slots.
  EXPECT_FALSE(call->evaluate(rules().operators[0].where[0]).ok());
}

TEST(Bind, NotesWhatLiesOutsideTheTriedRange) {
  Result<Call> call = bind_sample("\"T\": 1,", "\"T\": 5000,");
  ASSERT_TRUE(call.ok()) << call.error().what;
  ASSERT_EQ(call->notes.size(), 1u);
  EXPECT_EQ(call->notes[0], "dim T = 5000 lies outside the tried range 0 to 4096");
  call = bind_sample("\"routed_scaling_factor\": 1.0", "\"routed_scaling_factor\": 9");
  ASSERT_TRUE(call.ok());
  EXPECT_EQ(std::get<double>(call->attrs[5].value), 9.0);
  EXPECT_EQ(call->notes[0], "attribute routed_scaling_factor = 9 lies outside the tried range 0.5 to 4");
  call = bind_sample("\"routed_scaling_factor\": 1.0", "\"routed_scaling_factor\": 0");
  ASSERT_TRUE(call.ok());
  EXPECT_TRUE(call->notes.empty());
}

struct Change {
  const char* from;
  const char* to;
  const char* says;
};

const Change kSampleChanges[] = {
    {"\"moe_gating_topk\"", "\"add\"", "/op: \"add\" is bound to"},
    {"\"K\": 10, ", "", "/dims: \"K\" is missing; legal: T, E, K, G, KG"},
    {"\"K\": 10, ", "\"K\": 10, \"Q\": 1, ", "/dims/Q: \"Q\" is not a dim of moe_gating_topk"},
    {"\"K\": 10, ", "\"K\": -1, ", "/dims/K: -1 is not a size"},
    {"\"G\": 1,", "\"G\": 3,", "/dims: legal is \"E % G == 0\", which does not hold (E = 512, G = 3)"},
    {"\"G\": 1,", "\"G\": 0,", "divides by zero"},
    {"\"KG\": 1}", "\"KG\": 2}", "/dims: legal is \"KG <= G\""},
    {"\"T\": 1,", "\"T\": 9223372036854775807,", "has too many elements; at most 2^31"},
    {"\"T\": 1,", "\"T\": 4194305,", "has too many elements; at most 2^31"},
    {"\"T\": 1,", "\"T\": 1000000,", "/dims: the tensors up to \"x\" need"},
    {"\"norm_type\": \"sigmoid\"", "\"norm_type\": \"relu\"", "/attrs/norm_type: \"relu\" is not one of the choices"},
    {"\"norm_type\": \"sigmoid\"", "\"norm_type\": 1", "/attrs/norm_type: \"1\" is not one of the choices"},
    {"\"renorm\": false", "\"renorm\": 2", "/attrs/renorm: 2 stands where true or false belongs"},
    {"\"renorm\": false", "\"renorm\": \"no\"", "/attrs/renorm: \"no\" stands where true or false belongs"},
    {"\"renorm\": false", "\"renrm\": false", "did you mean \"renorm\"?"},
    {"\"renorm\": false", "\"k\": 10", "/attrs/k: is computed from \"K\""},
    {"\"routed_scaling_factor\": 1.0", "\"routed_scaling_factor\": \"1\"", "is not a finite number"},
    {"{\"x\": \"f32\"}", "{}", "/dtypes: \"x\" is missing; legal: f32, f16, bf16"},
    {"{\"x\": \"f32\"}", "{\"x\": \"f64\"}", "/dtypes/x: \"f64\" is not a dtype that it may have"},
    {"{\"x\": \"f32\"}", "{\"x\": \"f32\", \"bias\": \"f32\"}", "/dtypes/bias: has the dtype of \"x\""},
    {"{\"x\": \"f32\"}", "{\"x\": \"f32\", \"w\": \"f32\"}", "/dtypes/w: \"w\" is not a tensor"},
    {"\"bias\": {", "\"bios\": {", "/inputs/bios: \"bios\" is not an input of moe_gating_topk; did you mean \"bias\"?"},
    {"\"x\":    {", "\"bios\": {", "/inputs: \"x\" is missing"},
    {"\"layout\": {\"x\"", "\"layout\": {\"a/b\\n\"", "/layout/a~1b\\n: "},
    {"\"layout\": {\"x\"", "\"layout\": {\"w\"", "/layout/w: \"w\" is not an input or output"},
    {"[520, 1]", "[520]", "/layout/x/stride: has 1 strides for a rank of 2"},
    {"[520, 1]", "[520, -1]", "a stride is not negative"},
    {"\"offset\": 3", "\"offset\": -3", "/layout/x/offset: an offset is not negative"},
    {", \"place\": \"middle\"", "", "needs the place start or middle"},
    {"\"offset\": 3", "\"offset\": 9223372036854775807", "the offset is too large"},
    {"\"offset\": 3", "\"offset\": 1000000000", "the memory cap"},
    {"\"place\": \"middle\"", "\"place\": \"middle\", \"on\": \"bias\"", "/layout/x/on: only an output"},
    {"\"place\": \"middle\"}", "\"place\": \"middle\"}, \"y\": {\"on\": \"x\"}",
     "/layout/y/on: \"x\" is not an input that it"},
    {"\"layout\"", "\"unwanted\": [\"y\"], \"layout\"", "/unwanted/0: \"y\" is not an optional output"},
    {"\"layout\"", "\"unwanted\": [\"q\"], \"layout\"", "/unwanted/0: \"q\" is not an optional output"},
    {"\"layout\"", "\"unwanted\": [\"rank\", \"rank\"], \"layout\"", "stands twice"},
    {"\"place\": \"middle\"}", "\"place\": \"middle\"}, \"y\": {\"stride\": [20, 1]}", ""},
};

TEST(Bind, RefusesEachDamage) {
  for (const Change& change : kSampleChanges) {
    const std::string error = error_of(bind_sample(change.from, change.to));
    EXPECT_NE(error.find(change.says), std::string::npos) << change.from << " -> " << change.to << "\n  " << error;
  }
}

TEST(Bind, DropsUnwantedOutputs) {
  const Result<Call> call = bind_sample("\"layout\"", "\"unwanted\": [\"rank\"], \"layout\"");
  ASSERT_TRUE(call.ok()) << call.error().what;
  EXPECT_FALSE(call->outputs[1].present);
  EXPECT_TRUE(call->outputs[0].present);
  EXPECT_EQ(call->outputs[1].shape, (std::vector<std::int64_t>{1, 512}));
}

TEST(Bind, CallsOutsideWhereWhenAsked) {
  const std::string text = changed(kSampleCase, "\"G\": 1,", "\"G\": 3,");
  const Result<Call> call = bind_text(text, sample().operators[0], kCap, true);
  ASSERT_TRUE(call.ok()) << call.error().what;
  EXPECT_EQ(call->broken, "E % G == 0");
  EXPECT_FALSE(bind_text(changed(text, "\"T\": 1", "\"T\": -1"), sample().operators[0], kCap, true).ok());
}

TEST(Bind, TakesConditionsPresenceAndDefaults) {
  Result<Call> call = bind_rules();
  ASSERT_TRUE(call.ok()) << call.error().what;
  EXPECT_EQ(std::get<std::int64_t>(call->attrs[1].value), 2);
  EXPECT_EQ(std::get<std::int64_t>(call->attrs[3].value), 2);
  EXPECT_TRUE(call->inputs[0].present);
  EXPECT_FALSE(call->inputs[1].present);
  EXPECT_FALSE(call->inputs[2].present);
  EXPECT_TRUE(call->inputs[3].present);
  EXPECT_TRUE(call->inputs[3].shape.empty());
  EXPECT_EQ(call->inputs[0].align, 16);
  EXPECT_FALSE(call->outputs[4].present);
  ASSERT_EQ(call->givens.size(), 1u);
  EXPECT_EQ(call->givens[0].shape, std::vector<std::int64_t>{8});
  const std::string with_a = changed(changed(kRulesCase, "\"must\": 1", "\"must\": 1, \"mode\": \"a\", \"n\": 33"),
                                     "\"inputs\": {", "\"inputs\": {\"w\": {\"fill\": {\"constant\": 0}}, ");
  call = bind_text(with_a, rules().operators[0]);
  ASSERT_TRUE(call.ok()) << call.error().what;
  EXPECT_TRUE(call->inputs[1].present && call->outputs[4].present);
  EXPECT_EQ(std::get<std::int64_t>(call->attrs[1].value), 33);
}

const Change kRuleChanges[] = {
    {"\"must\": 1", "", "/attrs: \"must\" is missing and has no default"},
    {"\"must\": 1", "\"must\": 1.5", "/attrs/must: 1.5 is not an integer"},
    {"\"must\": 1", "\"must\": 1, \"n\": 3",
     "/attrs/n: 3 where \"mode == 'a'\" does not hold (mode = \"b\"); its default"},
    {"\"must\": 1", "\"must\": 1, \"n\": 2", ""},
    {"\"must\": 1", "\"must\": 1, \"mode\": \"a\"", "/inputs: \"w\" is missing"},
    {"\"inputs\": {", "\"inputs\": {\"w\": {\"fill\": {\"constant\": 1}}, ",
     "/inputs/w: is absent where \"mode == 'a'\""},
    {"\"inputs\": {", "\"inputs\": {\"s\": {\"fill\": {\"constant\": 1}}, ", "/inputs/s: is computed by \"f\""},
    {"\"inputs\": {", "\"inputs\": {\"s\": {\"fill\": {\"bits\": \"AACAPw==\"}}, ", ""},
    {", \"g\": {\"fill\": {\"constant\": 1}}", "", "/inputs: \"g\" is missing"},
    {"\"layout\": {\"x\": {}", "\"layout\": {\"x\": {}, \"w\": {}", "/layout/w: the input is absent"},
    {"\"layout\": {\"x\": {}", "\"layout\": {\"x\": {}, \"g\": {}", "/layout/g: \"g\" is not an input or output"},
    {"\"layout\": {\"x\": {}", "\"layout\": {\"x\": {}, \"cond\": {}", "/layout/cond: the output is not asked for"},
    {"\"layout\": {\"x\": {}", "\"layout\": {\"x\": {}, \"u\": {\"stride\": [5, 1]}", "only dense strides are allowed"},
    {"\"x\": {},", "\"x\": {\"stride\": [8, 2]},", "last dimension must be 1"},
    {"\"x\": {},", "\"x\": {\"stride\": [0, 1]},", "stride 0 is allowed only"},
    {"\"x\": {},", "\"x\": {\"stride\": [3, 1]},", "elements overlap"},
    {"\"x\": {},", "\"x\": {\"stride\": [9223372036854775807, 1]},", "elements overlap"},
    {"\"x\": {},", "\"x\": {\"stride\": [4611686018427387904, 1]},", "elements overlap"},
    {"\"x\": {},", "\"x\": {\"stride\": [1000000000, 1]},", "the memory cap"},
    {"\"x\": {},", "\"x\": {\"stride\": [8, 1], \"offset\": 2, \"place\": \"start\"},",
     "breaks the alignment to 16 bytes"},
    {"\"x\": {},", "\"x\": {\"stride\": [8, 1], \"offset\": 4, \"place\": \"start\"},", ""},
    {"\"y\": {}", "\"y\": {\"stride\": [0, 1]}", "/layout/y/stride: stride 0 is allowed only"},
    {"\"y\": {}", "\"y\": {\"stride\": [1, 1]}", "elements overlap"},
    {"\"y\": {}", "\"y\": {\"stride\": [1, 8]}", ""},
    {"\"y\": {}", "\"y\": {\"on\": \"o\"}", "/layout/y/on: \"o\" is not an input that it may lie on; legal: x"},
    {"\"y\": {}", "\"y\": {\"on\": \"x\", \"stride\": [8, 1]}", "its strides are another's"},
    {"\"y\": {}", "\"y\": {\"on\": \"x\", \"place\": \"start\"}", "offset and place are those of the input"},
    {"\"y\": {}", "\"y\": {\"on\": \"x\"}, \"u\": {\"on\": \"x\"}", "lies there"},
    {"\"x\": {}, \"y\": {}", "\"x\": {\"stride\": [8, 1]}, \"u\": {\"on\": \"x\"}", "only dense strides are allowed"},
    {"{\"x\": \"f32\"}", "{\"x\": \"f16\", \"o\": \"f32\"}", ""},
    {"{\"x\": \"f32\"}", "{\"x\": \"f16\", \"o\": \"f16\"}", "/dtypes/o: \"f16\" is not a dtype"},
};

TEST(Bind, HoldsEachRule) {
  ASSERT_EQ(error_of(bind_rules()), "");
  for (const Change& change : kRuleChanges) {
    const std::string error = error_of(bind_rules(change.from, change.to));
    if (change.says[0] == '\0') {
      EXPECT_EQ(error, "") << change.from << " -> " << change.to;
    } else {
      EXPECT_NE(error.find(change.says), std::string::npos) << change.from << " -> " << change.to << "\n  " << error;
    }
  }
}

TEST(Bind, PutsOutputsOnInputs) {
  const std::string text =
      changed(kRulesCase, "\"x\": {}, \"y\": {}",
              "\"x\": {\"stride\": [8, 1], \"offset\": 4, \"place\": \"middle\"}, \"y\": {\"on\": \"x\"}");
  const Result<Call> call = bind_text(text, rules().operators[0]);
  ASSERT_TRUE(call.ok()) << call.error().what;
  const Tensor& y = call->outputs[0];
  EXPECT_EQ(y.on, 0);
  EXPECT_EQ(y.stride, (std::vector<std::int64_t>{8, 1}));
  EXPECT_EQ(y.offset, 4);
  EXPECT_EQ(y.place, Place::kMiddle);
  EXPECT_EQ(y.align, 16);
}

TEST(Bind, PutsAnOutputThatAlwaysUpdates) {
  const std::string text = changed(kRulesCase, "\"inputs\": {", "\"inputs\": {\"o\": {\"fill\": {\"constant\": 1}}, ");
  const Result<Call> call = bind_text(text, rules().operators[0]);
  ASSERT_TRUE(call.ok()) << call.error().what;
  EXPECT_EQ(call->outputs[1].on, 2);
  const auto with = [&text](const char* layout) {
    return error_of(bind_text(changed(text, "\"x\": {}, \"y\": {}", layout), rules().operators[0]));
  };
  EXPECT_NE(with("\"z\": {\"on\": \"x\"}").find("it always lies on \"o\""), std::string::npos);
  EXPECT_NE(with("\"o\": {\"stride\": [0, 1]}").find("stride 0 is allowed only"), std::string::npos);
  EXPECT_EQ(with("\"o\": {\"stride\": [16, 2]}"), "");
  EXPECT_EQ(with("\"z\": {\"on\": \"o\"}"), "");
}

TEST(Bind, LetsAnInputRepeatAnElement) {
  const std::string one = changed(kSampleCase, "\"T\": 1,", "\"T\": 4,");
  const Result<Call> call = bind_text(changed(one, "[520, 1]", "[0, 1]"), sample().operators[0]);
  ASSERT_TRUE(call.ok()) << call.error().what;
  EXPECT_EQ(stored_count(call->inputs[0]), 512);
}

TEST(Bind, TakesEmptyTensors) {
  const std::string empty = changed(kSampleCase, "\"T\": 1,", "\"T\": 0,");
  const Result<Call> call = bind_text(empty, sample().operators[0]);
  ASSERT_TRUE(call.ok()) << call.error().what;
  EXPECT_EQ(element_count(call->inputs[0]), 0);
  EXPECT_EQ(element_count(call->inputs[1]), 512);
}

TEST(Bind, ChecksTheMemoryCapBeforeAnythingIsAllocated) {
  // x, bias, norm_out and rank of 512 f32 (x 3 further), expert_idx and y of 10.
  const std::uint64_t need = 4 * (4 * 512 + 3 + 2 * 10);
  const std::string text(kSampleCase);
  EXPECT_TRUE(bind_text(text, sample().operators[0], need).ok());
  EXPECT_FALSE(bind_text(text, sample().operators[0], need - 1).ok());
}

}  // namespace
}  // namespace fusediff
