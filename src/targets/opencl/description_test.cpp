#include "opencl/description.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "kit/failure.h"

namespace fusediff::opencl {
namespace {

// An operator with one of everything; `change` is applied to the whole text.
nlohmann::json whole() {
  return nlohmann::json::parse(R"({
    "fusediff_opencl": 1, "kernels": "k.cl",
    "operators": [{
      "schema": {
        "name": "norm", "dims": {"R": {"range": [0, 8]}, "C": {"range": [1, 8]}, "K": {"range": [1, 2]}, "V": {"range": [1, 2]}},
        "attrs": [{"name": "k", "int": "K"}, {"name": "eps", "float": [0, 1]}, {"name": "mode", "choice": ["sum", "max"]}],
        "inputs": [{"name": "x", "shape": ["R", "C"], "dtype": ["f32", "f16"], "layout": "any"}],
        "outputs": [{"name": "y", "shape": ["C * 2", "R"], "dtype": "=x"}]},
      "types": {"T": "x"},
      "scratch": {"sums": {"type": "T", "count": "R"}, "order": {"type": "i64", "count": 4}},
      "paths": {"fused": [{"kernel": "a", "args": ["x", "y", "sums", "R * C", 3, {"long": "C"}, {"stride": ["x", 1]},
                                                    {"real": "eps", "as": "T"}, {"local": "4 * C"}],
                           "global": ["C", 2], "local": [8, 1], "if": "mode == 1"}],
                "reference": [{"kernel": "b", "args": [], "global": [1]}]}}]})");
}

std::string error_of(const nlohmann::json& json) {
  try {
    read_description(json.dump(), "folder");
  } catch (const kit::Failure& failure) {
    EXPECT_EQ(failure.status(), FUSEDIFF_FAILED);
    return failure.what();
  }
  return "none";
}

TEST(DescriptionTest, ReadsEverything) {
  const Description made = read_description(whole().dump(), "folder");
  EXPECT_EQ(made.kernels, "folder/k.cl");
  ASSERT_NE(made.find("norm"), nullptr);
  EXPECT_EQ(made.find("none"), nullptr);
  const DescribedOperator& op = *made.find("norm");
  ASSERT_EQ(op.dims.size(), 3u);  // V is nowhere by itself
  EXPECT_EQ(op.dims[0].dim, "C");
  EXPECT_EQ(op.dims[0].tensor, "x");
  EXPECT_EQ(op.dims[0].axis, 1u);
  EXPECT_EQ(op.dims[1].attribute, "k");
  EXPECT_EQ(op.scratch.size(), 2u);
  const Step& step = op.paths[0].steps[0];
  const ArgKind kinds[] = {ArgKind::kTensor, ArgKind::kTensor, ArgKind::kScratch, ArgKind::kInt,  ArgKind::kInt,
                           ArgKind::kLong,   ArgKind::kStride, ArgKind::kReal,    ArgKind::kLocal};
  ASSERT_EQ(step.args.size(), std::size(kinds));
  for (size_t i = 0; i < std::size(kinds); ++i) EXPECT_EQ(step.args[i].kind, kinds[i]) << i;
  EXPECT_EQ(step.condition, "mode == 1");
  const auto schema = nlohmann::json::parse(made.schema);
  EXPECT_EQ(schema.at("operators").at(0).at("paths"), nlohmann::json({"fused", "reference"}));
}

TEST(DescriptionTest, ARefusalNamesThePlace) {
  using Pointer = nlohmann::json::json_pointer;
  const struct {
    const char* at;
    nlohmann::json value;
    const char* error;
  } cases[] = {
      {"/fusediff_opencl", 2, "/fusediff_opencl: must be 1"},
      {"/more", 1, "/more: unknown key"},
      {"/kernels", "", "/kernels: must name a file"},
      {"/operators/0/schema/like", "builtin", "/operators/0/schema/like: the record must stand here in full"},
      {"/operators/0/schema/paths", 1, "/operators/0/schema/paths: the paths stand beside the schema"},
      {"/operators/0/types/T", "z", "/operators/0/types/T: there is no tensor z"},
      {"/operators/0/scratch/x",
       {{"type", "T"}, {"count", 1}},
       "/operators/0/scratch/x: is no name, or one that is taken"},
      {"/operators/0/scratch/sums/type", "U",
       "/operators/0/scratch/sums/type: U is neither a dtype nor one of the types"},
      {"/operators/0/scratch/sums/count", "V",
       "/operators/0/scratch/sums/count: expression \"V\": no dim or attribute is named V"},
      {"/operators/0/paths/fused/0/args/3", "eps",
       "/operators/0/paths/fused/0/args/3: expression \"eps\": no dim or attribute is named eps"},
      {"/operators/0/paths/fused/0/args/6/stride/0", "w",
       "/operators/0/paths/fused/0/args/6/stride/0: there is no tensor w"},
      {"/operators/0/paths/fused/0/args/7/real", "k",
       "/operators/0/paths/fused/0/args/7/real: there is no float attribute k"},
      {"/operators/0/paths/fused/0/args/8/more", 1,
       "/operators/0/paths/fused/0/args/8: must be a name, an expression, or an object with long, local, stride or "
       "real"},
      {"/operators/0/paths/fused/0/global", nlohmann::json::array(),
       "/operators/0/paths/fused/0/global: must have one to three sizes"},
      {"/operators/0/paths/fused/0/local", {1}, "/operators/0/paths/fused/0/local: must be as long as global"},
      {"/operators/0/paths/reference", nlohmann::json::array(),
       "/operators/0/paths/reference: needs at least one kernel"},
      {"/operators/0/paths/reference/0", {{"kernel", "b"}}, "/operators/0/paths/reference/0: needs \"args\""},
  };
  for (const auto& one : cases) {
    nlohmann::json changed = whole();
    changed[Pointer(one.at)] = one.value;
    EXPECT_EQ(error_of(changed), one.error);
  }
  EXPECT_EQ(error_of(whole()), "none");
}

TEST(DescriptionTest, WhatIsNoJsonIsAFailure) { EXPECT_THROW(read_description("{", "."), kit::Failure); }

TEST(DescriptionTest, AFileIsNamed) {
  try {
    load_description("/nowhere/ops.json");
    ADD_FAILURE();
  } catch (const kit::Failure& failure) {
    EXPECT_STREQ(failure.what(), "/nowhere/ops.json: cannot be read");
  }
}

TEST(DescriptionTest, TheExamplesAreWhole) {
  const Description made = load_description(FUSEDIFF_SOURCE_DIR "/src/targets/opencl/examples.json");
  EXPECT_EQ(made.kernels, FUSEDIFF_SOURCE_DIR "/src/targets/opencl/examples.cl");
  EXPECT_EQ(made.operators.size(), 4u);
}

}  // namespace
}  // namespace fusediff::opencl
