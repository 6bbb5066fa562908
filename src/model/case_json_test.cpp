#include "model/case_json.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "base/rng.h"
#include "model/inline_bits.h"
#include "model/safetensors.h"
#include "model/sample_test.h"

namespace fusediff {
namespace {

std::string error_of(std::string_view json, const std::filesystem::path& folder = {}) {
  Result<Case> c = parse_case(json, folder);
  if (c.ok()) return "";
  EXPECT_EQ(c.error().blame, Blame::kUser);
  EXPECT_EQ(c.error().what.find('\n'), std::string::npos) << c.error().what;
  EXPECT_NE(c.error().what, "");
  return c.error().what;
}

TEST(CaseJson, ReadsTheSample) {
  Result<Case> c = parse_case(kSampleCase);
  ASSERT_TRUE(c.ok()) << c.error().what;
  EXPECT_EQ(c->op, "moe_gating_topk");
  EXPECT_EQ(c->dims.at("E"), 512);
  EXPECT_EQ(std::get<std::string>(c->attrs.at("norm_type")), "sigmoid");
  EXPECT_EQ(std::get<std::int64_t>(c->attrs.at("renorm")), 0);
  EXPECT_EQ(std::get<double>(c->attrs.at("routed_scaling_factor")), 1.0);
  EXPECT_EQ(c->dtypes.at("x"), DType::kF32);
  const InputValue& x = c->inputs.at("x");
  EXPECT_EQ(x.fill.kind, FillKind::kNormal);
  EXPECT_EQ(x.fill.b, 1.0);
  EXPECT_EQ(x.fill.seed, 17u);
  ASSERT_EQ(x.patches.size(), 1u);
  EXPECT_EQ(x.patches[0].column_high, 31);
  EXPECT_EQ(x.patches[0].fill.constant.real, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(x.set.at(122).real, 0x1.2c5f9ap+1);
  EXPECT_EQ(c->inputs.at("bias").fill.a, -0.1);
  const LayoutChoice& layout = c->layout.at("x");
  EXPECT_EQ(*layout.stride, (std::vector<std::int64_t>{520, 1}));
  EXPECT_EQ(layout.place, Place::kMiddle);
  EXPECT_EQ(c->experiment, Experiment{});
}

TEST(CaseJson, WritesInAFixedOrder) {
  Result<Case> c = parse_case(kSampleCase);
  ASSERT_TRUE(c.ok());
  EXPECT_EQ(write_case(*c),
            R"({"fusediff_case":1,"op":"moe_gating_topk","dims":{"E":512,"G":1,"K":10,"KG":1,"T":1},)"
            R"("attrs":{"norm_type":"sigmoid","renorm":0,"routed_scaling_factor":1.0},"dtypes":{"x":"f32"},)"
            R"("inputs":{"bias":{"fill":{"uniform":[-0.1,0.1],"seed":3},"set":{"472":"0x1.9648p-4"}},)"
            R"("x":{"fill":{"normal":{"mean":0,"std":1},"seed":17},"patches":[{"rows":[0,0],"columns":[16,31],)"
            R"("fill":{"constant":"-inf"}}],"set":{"122":"0x1.2c5f9ap+1"}}},)"
            R"("layout":{"x":{"stride":[520,1],"offset":3,"place":"middle"}}})");
  EXPECT_EQ(*parse_case(write_case(*c, 2)), *c);
  EXPECT_NE(write_case(*c, 2).find("\n  \"op\": \"moe_gating_topk\",\n"), std::string::npos);
}

TEST(CaseJson, SpellsSingleValues) {
  const auto literal = [](const std::string& text) {
    Result<Case> c =
        parse_case(R"({"fusediff_case": 1, "op": "a", "dims": {}, "inputs": {"x": {"fill": {"constant": )" + text +
                   R"(}, "set": {"0": )" + text + "}}}}");
    EXPECT_TRUE(c.ok()) << c.error().what;
    EXPECT_EQ(c->inputs.at("x").fill.constant, c->inputs.at("x").set.at(0));
    EXPECT_EQ(*parse_case(write_case(*c)), *c) << write_case(*c);
    return c->inputs.at("x").set.at(0);
  };
  EXPECT_EQ(literal("\"0x1.8p+1\"").real, 3.0);
  EXPECT_EQ(literal("\"-0x1p-1074\"").real, -0x1p-1074);
  EXPECT_TRUE(std::signbit(literal("\"-0x0p+0\"").real));
  EXPECT_TRUE(std::signbit(literal("-0.0").real));
  EXPECT_TRUE(std::isnan(literal("\"nan\"").real));
  EXPECT_TRUE(std::signbit(literal("\"-nan\"").real));
  EXPECT_EQ(literal("0.1").real, 0.1);
  EXPECT_EQ(literal("1e300").real, 1e300);
  EXPECT_EQ(literal("1.0").kind, Literal::Kind::kReal);
  EXPECT_EQ(literal("1").kind, Literal::Kind::kInteger);
  EXPECT_EQ(literal("-9223372036854775808").integer, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(literal("\"bits:0x7fc00001\"").bits, 0x7fc00001u);
  EXPECT_EQ(literal("\"bits:0xFFFFFFFFFFFFFFFF\"").bits, UINT64_MAX);
}

TEST(CaseJson, KeepsSeedsOf64Bits) {
  const std::string text = changed(kSampleCase, "\"seed\": 17", "\"seed\": 18446744073709551615");
  Result<Case> c = parse_case(text);
  ASSERT_TRUE(c.ok());
  EXPECT_EQ(c->inputs.at("x").fill.seed, UINT64_MAX);
  EXPECT_EQ(*parse_case(write_case(*c)), *c);
}

struct Change {
  const char* from;
  const char* to;
  const char* says;
};

const Change kChanges[] = {
    {"\"fusediff_case\": 1,", "", "the key \"fusediff_case\" is missing"},
    {"\"fusediff_case\": 1", "\"fusediff_case\": 2",
     "fusediff_case 2 is newer than this fusediff, which reads up to 1"},
    {"\"fusediff_case\": 1", "\"fusediff_case\": 0", "is not a case version"},
    {"\"fusediff_case\": 1", "\"fusediff_case\": NaN", "not JSON"},
    {"\"op\": \"moe_gating_topk\",", "", "the key \"op\" is missing"},
    {"\"moe_gating_topk\"", "1", "/op: 1 is not an operator"},
    {"\"T\": 1", "\"T\": NaN", "not JSON"},
    {"\"T\": 1", "\"T\": \"NaN\"", "/dims/T: \"NaN\" is not a size"},
    {"\"T\": 1", "\"T\": 1.5", "/dims/T: 1.5 is not a size"},
    {"\"T\": 1", "\"T\": 1e300", "/dims/T: 1e300 is not a size"},
    {"\"T\": 1", "\"T\": 1e999", "not JSON"},
    {"\"T\": 1", "\"T\": 99999999999999999999", "is not a size"},
    {"\"T\": 1", "\"T\": 9223372036854775808", "is not a size"},
    {"\"T\": 1", "\"T\": null", "null is not a size"},
    {"\"T\": 1", "\"T\": 1, \"T\": 2", "the key \"T\" stands twice"},
    {"\"renorm\": false", "\"renorm\": null", "/attrs/renorm: null is not a value of an attribute"},
    {"\"renorm\": false", "\"renorm\": []", "a list of 0 is not a value of an attribute"},
    {"\"f32\"", "\"float32\"", "/dtypes/x: \"float32\" is not a dtype; legal: f64, f32"},
    {"\"f32\"", "[\"f32\"]", "is not a dtype"},
    {"\"normal\"", "\"norml\"", "did you mean \"normal\"?"},
    {"{\"mean\": 0, \"std\": 1}", "{\"mean\": 0}", "the key \"std\" is missing"},
    {"{\"mean\": 0, \"std\": 1}", "{\"mean\": 0, \"std\": 1, \"skew\": 2}", "\"skew\" is not a key here"},
    {"{\"mean\": 0, \"std\": 1}", "[0, 1]", "an object belongs here"},
    {"\"mean\": 0", "\"mean\": \"inf\"", "a finite number belongs here"},
    {"\"seed\": 17", "\"seed\": -1", "is not a seed"},
    {"\"seed\": 17", "\"seed\": 18446744073709551616", "is not a seed"},
    {"\"seed\": 17", "\"sead\": 17", "did you mean \"seed\"?"},
    {", \"seed\": 17", "", "\"normal\" draws and needs a \"seed\""},
    {"\"seed\": 17", "\"seed\": 17, \"ramp\": [0, 1]", "a fill has one recipe; \"normal\" stands here too"},
    {"{\"constant\": \"-inf\"}", "{\"constant\": \"-inf\", \"seed\": 1}", "takes no seed"},
    {"{\"constant\": \"-inf\"}", "{\"constant\": \"-infinity\"}", "is not a value; legal: a number"},
    {"{\"constant\": \"-inf\"}", "{\"constant\": 9223372036854775808}", "is not a value"},
    {"{\"constant\": \"-inf\"}", "{}", "a fill needs a recipe"},
    {"{\"constant\": \"-inf\"}", "null", "is not a fill"},
    {"{\"constant\": \"-inf\"}", "{\"grid\": {\"range\": [0, 1], \"count\": 0}, \"seed\": 1}",
     "0 is not a number of grid"},
    {"{\"constant\": \"-inf\"}", "{\"one_hot\": 1, \"seed\": 1}", "an empty object"},
    {"{\"constant\": \"-inf\"}", "{\"one_hot\": {\"a\": 1}, \"seed\": 1}", "is not a key here"},
    {"{\"constant\": \"-inf\"}", "{\"uniform\": [0], \"seed\": 1}", "a list of 2 belongs here"},
    {"{\"constant\": \"-inf\"}", "{\"bits\": \"AAA\"}", "is not base64"},
    {"{\"constant\": \"-inf\"}", "{\"bits\": 5}", "is not bits"},
    {"{\"constant\": \"-inf\"}", "{\"bits\": \"a.safetensors#x\"}", "has no folder"},
    {"{\"constant\": \"-inf\"}", "{\"bits\": \"../a.safetensors#x\"}", "is not a file beside the case"},
    {"{\"constant\": \"-inf\"}", "{\"bits\": \"/a.safetensors#x\"}", "is not a file beside the case"},
    {"{\"constant\": \"-inf\"}", "{\"bits\": \"a.bin#x\"}", "is not a file beside the case"},
    {"\"rows\": [0, 0]", "\"rows\": [1, 0]", "low end stands above"},
    {"\"rows\": [0, 0]", "\"rows\": [-1, 0]", "-1 is not an index"},
    {"\"rows\": [0, 0],", "", "the key \"rows\" is missing"},
    {"\"rows\": [0, 0]", "\"rows\": [0, 0], \"row\": 1", "\"row\" is not a key here"},
    {"\"122\"", "\"0122\"", "is not the index of an element"},
    {"\"122\"", "\"-1\"", "is not the index of an element"},
    {"\"122\"", "\"-0\"", "is not the index of an element"},
    {"\"122\"", "\"\"", "is not the index of an element"},
    {"\"122\"", "\"1e2\"", "is not the index of an element"},
    {"\"122\"", "\"99999999999999999999\"", "is not the index of an element"},
    {"\"0x1.2c5f9ap+1\"", "\"0x\"", "is not a value"},
    {"\"0x1.2c5f9ap+1\"", "\"0xinf\"", "is not a value"},
    {"\"0x1.2c5f9ap+1\"", "\"0x1p+2000\"", "is not a value"},
    {"\"0x1.2c5f9ap+1\"", "\"0x-1\"", "is not a value"},
    {"\"0x1.2c5f9ap+1\"", "\"1.5\"", "is not a value"},
    {"\"0x1.2c5f9ap+1\"", "\"bits:7fc\"", "is not a value"},
    {"\"0x1.2c5f9ap+1\"", "\"bits:0x\"", "is not a value"},
    {"\"0x1.2c5f9ap+1\"", "\"bits:0x11112222333344445\"", "is not a value"},
    {"\"0x1.2c5f9ap+1\"", "true", "is not a value"},
    {"\"stride\": [520, 1]", "\"stride\": 520", "is not a list of strides"},
    {"\"stride\": [520, 1]", "\"stride\": [520, 1.0]", "is not a stride"},
    {"\"stride\"", "\"strides\"", "did you mean \"stride\"?"},
    {"\"middle\"", "\"midle\"", "did you mean \"middle\"?"},
    {"\"place\": \"middle\"", "\"on\": 3", "is not an input"},
    {"\"layout\": {", "\"experiment\": {\"threads\": {\"count\": 1}}, \"layout\": {",
     "/experiment/threads/count: 1 is not a number of threads"},
    {"\"layout\": {", "\"experiment\": {\"relation\": {\"row_alnoe\": {}}}, \"layout\": {",
     "\"row_alnoe\" is not a relation"},
    {"\"layout\": {", "\"experiment\": {\"history\": {\"calls\": [{\"op\": \"add\"}]}}, \"layout\": {",
     "/experiment/history/calls/0"},
    {"\"layout\": {",
     "\"experiment\": {\"repeat\": {\"calls\": [{\"op\": \"a\", \"dims\": {}, \"experiment\": {}}]}}, \"layout\": {",
     "a case within a case has no experiment of its own"},
    {"\"layout\": {", "\"experiment\": {\"thread\": {}}, \"layout\": {", "\"thread\" is not an experiment"},
    {"\"layout\": {", "\"experiment\": {}, \"layout\": {", "a case has one experiment"},
    {"\"layout\": {", "\"experiment\": {\"pair\": {\"n\": 1}}, \"layout\": {", "is not a key here"},
    {"\"layout\": {", "\"unwanted\": \"rank\", \"layout\": {", "is not a list of outputs"},
    {"\"layout\": {", "\"layouts\": {}, \"layout\": {", "did you mean \"layout\"?"},
};

TEST(CaseJson, RefusesEachDamage) {
  ASSERT_EQ(error_of(kSampleCase), "");
  for (const Change& change : kChanges) {
    const std::string error = error_of(changed(kSampleCase, change.from, change.to));
    EXPECT_NE(error.find(change.says), std::string::npos) << change.from << " -> " << change.to << "\n  " << error;
  }
}

TEST(CaseJson, TakesPairByName) {
  EXPECT_EQ(error_of(changed(kSampleCase, "\"layout\": {", "\"experiment\": {\"pair\": {}}, \"layout\": {")), "");
}

TEST(CaseJson, TakesWhatAnExperimentLeavesOut) {
  const auto read = [](const std::string& experiment) {
    const Result<Case> c =
        parse_case(changed(kSampleCase, "\"layout\": {", "\"experiment\": " + experiment + ", \"layout\": {"));
    EXPECT_TRUE(c.ok()) << c.error().what;
    return c->experiment;
  };
  const Experiment threads = read(R"({"threads": {"mates": [{"op": "add", "dims": {"R": 1, "C": 2}}]}})");
  EXPECT_EQ(threads.kind, ExperimentKind::kThreads);
  EXPECT_EQ(threads.count, 8);
  EXPECT_EQ(threads.rounds, 4);
  ASSERT_EQ(threads.calls.size(), 1u);
  EXPECT_EQ(threads.calls[0].op, "add");
  const Experiment relation = read(R"({"relation": {"batch_split": {"row": 3}}})");
  EXPECT_EQ(relation.relation, RelationKind::kBatchSplit);
  EXPECT_EQ(relation.row, 3);
}

TEST(CaseJson, RefusesEveryTruncation) {
  for (std::size_t size = 0; size < kSampleCase.size(); ++size) {
    EXPECT_NE(error_of(kSampleCase.substr(0, size)), "") << size;
  }
}

TEST(CaseJson, HoldsItsLimits) {
  EXPECT_NE(error_of(std::string(kMaxCaseBytes + 1, ' ')).find("at most 1048576"), std::string::npos);
  EXPECT_NE(error_of(std::string(500000, '[')).find("nested deeper than 32"), std::string::npos);
  EXPECT_NE(error_of(std::string(500000, '{')).find("not JSON"), std::string::npos);
  EXPECT_NE(error_of("{\"a\":" + std::string(100, '[') + std::string(100, ']') + "}").find("nested deeper"),
            std::string::npos);
}

TEST(CaseJson, SurvivesRandomDamage) {
  Rng rng(2);
  int refused = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string text(kSampleCase);
    static constexpr std::string_view kPieces[] = {
        "{",    "}",  "[",   "]",    "\"", ":", ",", "null", "-1", "1e30", "\"x\"", "true", "99999999999999999999",
        "\xff", "\\", "0.5", "\"\"", "{}"};
    for (std::int64_t i = rng.between(1, 3); i > 0; --i) {
      const std::size_t at = rng.below(text.size());
      text.replace(at, rng.below(4), kPieces[rng.below(std::size(kPieces))]);
    }
    refused += error_of(text).empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 4000);
}

double any_double(Rng& rng) {
  switch (rng.below(4)) {
    case 0:
      return static_cast<double>(rng.between(-100, 100));
    case 1:
      return rng.unit();
    case 2:
      return -0.0;
    default:
      break;
  }
  for (;;) {
    const std::uint64_t bits = rng.next();
    double value = 0;
    static_assert(sizeof value == sizeof bits);
    std::memcpy(&value, &bits, sizeof bits);
    if (std::isfinite(value)) return value;
  }
}

Literal any_literal(Rng& rng) {
  static constexpr double kOdd[] = {INFINITY, -INFINITY, NAN, 0x1p-1074, -0x1.fffffffffffffp+1023};
  Literal literal;
  literal.kind = static_cast<Literal::Kind>(rng.below(3));
  if (literal.kind == Literal::Kind::kReal) literal.real = rng.one_in(4) ? kOdd[rng.below(5)] : any_double(rng);
  if (literal.kind == Literal::Kind::kInteger) literal.integer = static_cast<std::int64_t>(rng.next() >> rng.below(64));
  if (literal.kind == Literal::Kind::kBits) literal.bits = rng.next() >> rng.below(64);
  return literal;
}

Fill any_fill(Rng& rng) {
  Fill fill;
  fill.kind = static_cast<FillKind>(rng.below(15));
  fill.a = any_double(rng);
  fill.b = any_double(rng);
  fill.count = rng.between(1, INT64_MAX);
  fill.seed = rng.next();
  fill.constant = any_literal(rng);
  std::vector<std::byte> bytes(rng.below(40), static_cast<std::byte>(rng.below(256)));
  fill.bits = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return fill;
}

std::string any_name(Rng& rng) {
  std::string name = "n" + std::to_string(rng.below(1000));
  return rng.one_in(8) ? name + "\"\\\n\x01\xe2\x82\xac/~" : name;
}

InputValue any_input(Rng& rng) {
  InputValue value;
  value.fill = any_fill(rng);
  for (std::uint64_t i = rng.below(3); i > 0; --i) {
    Patch& patch = value.patches.emplace_back();
    patch.row_high = patch.row_low = rng.between(0, INT64_MAX);
    patch.column_low = rng.between(0, 9);
    patch.column_high = rng.between(9, 20);
    patch.fill = any_fill(rng);
  }
  for (std::uint64_t i = rng.below(5); i > 0; --i) value.set[rng.between(0, INT64_MAX)] = any_literal(rng);
  return value;
}

Case any_case(Rng& rng) {
  Case c;
  c.op = any_name(rng);
  for (std::uint64_t i = rng.below(5); i > 0; --i) c.dims[any_name(rng)] = static_cast<std::int64_t>(rng.next());
  for (std::uint64_t i = rng.below(5); i > 0; --i) {
    AttrValue& value = c.attrs[any_name(rng)];
    if (rng.one_in(3)) value = any_double(rng);
    if (rng.one_in(3)) value = any_name(rng);
    if (rng.one_in(3)) value = static_cast<std::int64_t>(rng.next());
  }
  for (std::uint64_t i = rng.below(3); i > 0; --i) c.dtypes[any_name(rng)] = rng.pick(kDTypes);
  for (std::uint64_t i = rng.below(4); i > 0; --i) c.inputs[any_name(rng)] = any_input(rng);
  for (std::uint64_t i = rng.below(3); i > 0; --i) {
    LayoutChoice& choice = c.layout[any_name(rng)];
    if (rng.one_in(2)) choice.stride.emplace(rng.below(4), rng.between(0, 1000));
    choice.offset = rng.between(-2, 2);
    choice.place = static_cast<Place>(rng.below(3));
    if (rng.one_in(2)) choice.on = "x_1";
  }
  for (std::uint64_t i = rng.below(3); i > 0; --i) c.unwanted.push_back(any_name(rng));
  return c;
}

Experiment any_experiment(Rng& rng) {
  Experiment e;
  e.kind = static_cast<ExperimentKind>(rng.below(kExperimentKindCount));
  const bool is_relation = e.kind == ExperimentKind::kRelation;
  if (is_relation) e.relation = static_cast<RelationKind>(rng.below(kRelationKindCount));
  if (e.kind == ExperimentKind::kRepeat) e.count = rng.between(2, kMostRepeats);
  if (e.kind == ExperimentKind::kThreads) {
    e.count = rng.between(2, kMostThreads);
    e.rounds = rng.between(1, kMostRounds);
  }
  if (e.kind == ExperimentKind::kThreads || e.kind == ExperimentKind::kGradient ||
      (is_relation && e.relation == RelationKind::kRowsPermuted))
    e.seed = rng.next();
  if (is_relation && (e.relation == RelationKind::kRowAlone || e.relation == RelationKind::kBatchSplit))
    e.row = rng.between(0, 1000);
  if (is_relation || e.kind == ExperimentKind::kPair || e.kind == ExperimentKind::kGradient) return e;
  for (std::uint64_t i = rng.below(3); i > 0; --i) e.calls.push_back(any_case(rng));
  return e;
}

TEST(CaseJson, ReadsBackWhatItWrites) {
  Rng rng(3);
  for (int round = 0; round < 5000; ++round) {
    Case c = any_case(rng);
    c.experiment = any_experiment(rng);
    const int indent = round % 2 == 0 ? -1 : 2;
    const std::string text = write_case(c, indent);
    Result<Case> back = parse_case(text);
    ASSERT_TRUE(back.ok()) << back.error().what << "\n" << text;
    ASSERT_EQ(*back, c) << text;
    ASSERT_EQ(write_case(*back, indent), text);
  }
}

TEST(Case, EqualityLooksAtWhatTheKindUses) {
  Fill fill;
  fill.kind = FillKind::kConstant;
  Fill other = fill;
  other.seed = 9;
  other.a = 9;
  EXPECT_EQ(fill, other);
  other.constant.kind = Literal::Kind::kInteger;
  EXPECT_NE(fill, other);
  fill.kind = other.kind = FillKind::kNormal;
  EXPECT_NE(fill, other);
  Literal zero, minus_zero;
  minus_zero.real = -0.0;
  EXPECT_NE(zero, minus_zero);
}

class CaseWithFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("fusediff_case_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    const std::vector<StoredTensor> tensors = {
        {"x", DType::kF16, {2}, {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}}}};
    std::ofstream(folder_ / "in.safetensors", std::ios::binary) << write_safetensors(tensors);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(CaseWithFile, ReadsBitsBesideTheCase) {
  const auto with = [](const char* bits) {
    return changed(kSampleCase, "{\"constant\": \"-inf\"}", std::string("{\"bits\": \"") + bits + "\"}");
  };
  Result<Case> c = parse_case(with("in.safetensors#x"), folder_);
  ASSERT_TRUE(c.ok()) << c.error().what;
  const Fill& fill = c->inputs.at("x").patches[0].fill;
  EXPECT_EQ(fill.bits->size(), 4u);
  EXPECT_EQ(fill.bits_dtype, DType::kF16);
  EXPECT_EQ(*parse_case(write_case(*c), folder_), *c);

  const Result<Case> alone = parse_case(write_case(with_bits_inline(*c)));
  ASSERT_TRUE(alone.ok()) << alone.error().what;
  EXPECT_EQ(*alone->inputs.at("x").patches[0].fill.bits, *fill.bits);
  EXPECT_NE(error_of(with("in.safetensors#w"), folder_).find("is not a tensor in it"), std::string::npos);
  EXPECT_NE(error_of(with("out.safetensors#x"), folder_).find("there is no such file"), std::string::npos);
}

}  // namespace
}  // namespace fusediff
