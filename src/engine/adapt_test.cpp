#include "engine/adapt.h"

#include "engine/toy_target.h"

namespace fusediff {
namespace {

using namespace toy;

// a and b [N], y = a - b, s = a + b.
constexpr const char* kOwn = R"({"name": "op", "paths": ["fused", "unfused"], "dims": {"N": {"range": [0, 64]}},
    "attrs": [{"name": "gain", "float": [0.5, 4.0], "default": 1.0}, {"name": "mode", "choice": ["p", "q"], "default": "p"}],
    "inputs": [{"name": "a", "shape": ["N"], "dtype": ["f32", "f16"], "layout": "any"},
               {"name": "b", "shape": ["N"], "dtype": "=a"},
               {"name": "c", "shape": ["N"], "dtype": "=a", "optional": true}],
    "outputs": [{"name": "s", "shape": ["N"], "dtype": "=a", "stage": 1, "optional": true},
                {"name": "y", "shape": ["N"], "dtype": "=a", "stage": 2}]})";

Path minus(double error = 0) {
  return [error](const fusediff_call& call) {
    for (std::int64_t i = 0; i < count(out(call, "y")); ++i) {
      const double a = get(in(call, "a"), i), b = get(in(call, "b"), i);
      set(out(call, "y"), i, a - b + error);
      for (std::size_t o = 0; o < call.output_count; ++o) {
        const std::string_view name = call.outputs[o].name;
        if (name == "s" && call.outputs[o].data != nullptr) set(call.outputs[o], i, a + b);
        if (name == "extra") set(call.outputs[o], i, 5);
      }
    }
    return FUSEDIFF_OK;
  };
}

Case two(const std::string& members = "", const std::string& dtype = "f32") {
  return case_of(R"({"fusediff_case": 1, "op": "op", "dims": {"N": 4}, "dtypes": {"a": ")" + dtype + R"("},
      "inputs": {"a": {"fill": {"ramp": [1, 4]}}, "b": {"fill": {"constant": 0.5}}})" +
                 members + "}");
}

// The other target's record of the same operator.
std::string other(const std::string& dims_and_attrs, const std::string& inputs, const std::string& outputs) {
  return R"({"name": "op", "paths": ["unfused"], )" + dims_and_attrs + R"(, "inputs": [)" + inputs +
         R"(], "outputs": [)" + outputs + "]}";
}
constexpr const char* kDims = R"("dims": {"N": {"range": [0, 64]}})";
constexpr const char* kA = R"({"name": "a", "shape": ["N"], "dtype": ["f32", "f16"], "layout": "any"})";
constexpr const char* kB = R"({"name": "b", "shape": ["N"], "dtype": "=a"})";
constexpr const char* kY = R"({"name": "y", "shape": ["N"], "dtype": "=a"})";

std::string compare(const std::string& record, const Case& c = two(), double error = 0) {
  Toy own(kOwn), against(record, "other");
  own.paths = {{"fused", minus()}};
  against.paths = {{"unfused", minus(error)}};
  const Verdict verdict = check({{PathOf{&own.target, "fused"}, PathOf{&against.target, "unfused"}}, nullptr}, c);
  return verdict.kind == Verdict::Kind::kSkip ? verdict.reason : in_short(verdict);
}

std::string list(std::initializer_list<std::string> items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
  return text;
}

TEST(Adapt, TensorsInAnotherOrderAndAnOutputLess) {
  const std::string record = other(kDims, list({kB, kA}), kY);
  EXPECT_EQ(compare(record), "pass");
  EXPECT_EQ(compare(record, two(), 1), "damage y");
  EXPECT_EQ(compare(other(kDims, list({kB, kA}), list({kY, R"({"name": "s", "shape": ["N"], "dtype": "=a"})"}))),
            "pass");
}

TEST(Adapt, ANarrowerWhereIsASkip) {
  EXPECT_EQ(compare(other(std::string(kDims) + R"(, "where": ["N % 8 == 0"])", list({kA, kB}), kY)),
            "other:unfused: op here asks for N % 8 == 0");
  EXPECT_EQ(compare(other(std::string(kDims) + R"(, "where": ["N % 4 == 0"])", list({kA, kB}), kY)), "pass");
}

TEST(Adapt, AttributesThatTheOtherDoesNotKnowMustStandAtTheirDefault) {
  const std::string record = other(kDims, list({kA, kB}), kY);
  EXPECT_EQ(compare(record, two(R"(, "attrs": {"gain": 1.0})")), "pass");
  EXPECT_EQ(compare(record, two(R"(, "attrs": {"gain": 2.0})")),
            "other:unfused: op here does not know the attribute gain");
  const std::string fewer = other(
      std::string(kDims) + R"(, "attrs": [{"name": "mode", "choice": ["p"], "default": "p"}])", list({kA, kB}), kY);
  EXPECT_EQ(compare(fewer), "pass");
  EXPECT_EQ(compare(fewer, two(R"(, "attrs": {"mode": "q"})")), "other:unfused: op here does not know mode = q");
  const std::string derived =
      other(std::string(kDims) + R"(, "attrs": [{"name": "n", "int": "N"}])", list({kA, kB}), kY);
  EXPECT_EQ(compare(derived), "pass");
  const std::string needed =
      other(std::string(kDims) + R"(, "attrs": [{"name": "z", "int": [0, 4]}])", list({kA, kB}), kY);
  EXPECT_EQ(compare(needed), "other:unfused: op here needs an attribute z");
}

TEST(Adapt, InputsThatOneSideLacks) {
  const std::string c = R"({"name": "c", "shape": ["N"], "dtype": "=a")";
  const Case with_c = case_of(R"({"fusediff_case": 1, "op": "op", "dims": {"N": 4}, "dtypes": {"a": "f32"}, "inputs":
      {"a": {"fill": {"constant": 2}}, "b": {"fill": {"constant": 1}}, "c": {"fill": {"constant": 1}}}})");
  EXPECT_EQ(compare(other(kDims, list({kA, kB}), kY), with_c), "other:unfused: op here does not know the input c");
  EXPECT_EQ(compare(other(kDims, list({kA, kB, c + "}"}), kY)), "other:unfused: op here needs an input c");
  EXPECT_EQ(compare(other(kDims, list({kA, kB, c + R"(, "optional": true})"}), kY)), "pass");
}

TEST(Adapt, DtypesShapesAndStridesThatTheOtherDoesNotOffer) {
  const std::string only_f16 = R"({"name": "a", "shape": ["N"], "dtype": "f16", "layout": "any"})";
  EXPECT_EQ(compare(other(kDims, list({only_f16, kB}), kY)), "other:unfused: op here does not offer a in f32");
  EXPECT_EQ(compare(other(kDims, list({only_f16, kB}), kY), two("", "f16")), "pass");
  EXPECT_EQ(compare(other(kDims, list({kA, kB}), R"({"name": "y", "shape": ["N"], "dtype": "f16"})")),
            "other:unfused: op here does not offer y in f32");
  EXPECT_EQ(compare(other(kDims, list({kA, kB}), R"({"name": "y", "shape": [1, "N"], "dtype": "=a"})")),
            "other:unfused: op here gives y another shape");
  const std::string dense = R"({"name": "a", "shape": ["N"], "dtype": ["f32", "f16"]})";
  const Case strided = two(R"(, "layout": {"a": {"stride": [3]}})");
  EXPECT_EQ(compare(other(kDims, list({dense, kB}), kY), strided),
            "other:unfused: op here does not take these strides of a");
  EXPECT_EQ(compare(other(kDims, list({dense, kB}), kY)), "pass");
  EXPECT_EQ(compare(other(kDims, list({kA, kB}), kY), strided), "pass");
}

TEST(Adapt, WhatTheOtherAlwaysWritesGetsMemory) {
  const std::string extra = R"({"name": "extra", "shape": ["N"], "dtype": "f32"})";
  EXPECT_EQ(compare(other(kDims, list({kA, kB}), list({extra, kY}))), "pass");
  const std::string s = R"({"name": "s", "shape": ["N"], "dtype": "=a"})";
  EXPECT_EQ(compare(other(kDims, list({kA, kB}), list({s, kY})), two(R"(, "unwanted": ["s"])")), "pass");
}

TEST(Adapt, AlignmentThatTheOtherNeedsIsGiven) {
  Toy own(kOwn),
      against(
          other(kDims,
                list({R"({"name": "a", "shape": ["N"], "dtype": ["f32", "f16"], "layout": "any", "align": 64})", kB}),
                kY),
          "other");
  own.paths = {{"fused", minus()}};
  against.paths = {{"unfused", [](const fusediff_call& call) {
                      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(in(call, "a").data) % 64, 0u);
                      return minus()(call);
                    }}};
  const Comparison comparison{{PathOf{&own.target, "fused"}, PathOf{&against.target, "unfused"}}, nullptr};
  EXPECT_EQ(in_short(check(comparison, two())), "pass");
  EXPECT_EQ(check(comparison, two(R"(, "layout": {"a": {"offset": 1, "place": "start"}})")).reason,
            "other:unfused: op here asks for a aligned to 64 bytes");
}

TEST(Adapt, AnOperatorThatOnlyUpdatesLiesOnItsInputWhateverTheCaseSays) {
  const std::string updates = R"(, "inplace": [["y", "x", "always"]])";
  Toy own(one_to_one()), against(one_to_one("", updates), "other");
  own.paths = {{"fused", each([](double x) { return x + 1; })}};
  against.paths = {{"unfused", [](const fusediff_call& call) {
                      EXPECT_EQ(call.outputs[0].data, call.inputs[0].data);
                      return each([](double x) { return x + 1; })(call);
                    }}};
  EXPECT_EQ(in_short(check({{PathOf{&own.target, "fused"}, PathOf{&against.target, "unfused"}}, nullptr}, ones())),
            "pass");
}

TEST(Adapt, TheTruthIsDenseWideAndAligned) {
  Toy toy(R"({"name": "op", "paths": ["fused", "unfused"], "dims": {"N": {"range": [0, 64]}},
      "inputs": [{"name": "x", "shape": [2, "N"], "dtype": "f32", "layout": "any", "align": 32}],
      "outputs": [{"name": "y", "shape": [2, "N"], "dtype": "f32"}]})");
  int wide = 0;
  const auto path = [&wide](double error) -> Path {
    return [error, &wide](const fusediff_call& call) {
      const fusediff_tensor& x = call.inputs[0];
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x.data) % 32, 0u);
      if (x.dtype == FUSEDIFF_F64) {
        ++wide;
        EXPECT_EQ(x.stride[0], x.shape[1]);
        EXPECT_EQ(x.stride[1], 1);
      } else {
        EXPECT_EQ(x.stride[0], 0);
      }
      return each([error](double v) { return v + error; })(call);
    };
  };
  toy.paths = {{"fused", path(0x1p-23)}, {"unfused", path(0)}};
  const Verdict verdict = check(toy, case_of(R"({"fusediff_case": 1, "op": "op", "dims": {"N": 4},
      "inputs": {"x": {"fill": {"ramp": [1, 1.5]}}}, "layout": {"x": {"stride": [0, 1]}}})"));
  EXPECT_EQ(in_short(verdict), "rounding y");
  EXPECT_EQ(wide, 1);
}

}  // namespace
}  // namespace fusediff
