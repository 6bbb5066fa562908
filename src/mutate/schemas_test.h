// For tests: operators that use every key a mutator can meet, a context around a seed, and what "legal" means.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "model/call.h"
#include "model/case_json.h"
#include "model/sample_test.h"
#include "model/schema_json.h"
#include "model/values.h"
#include "mutate/experiments.h"
#include "mutate/mutate.h"
#include "mutate/mutators.h"

namespace fusediff {

inline constexpr std::uint64_t kTestBytes = 64 << 20;

// As it stands in the description of the schema.
inline constexpr const char* kGating = kSampleSchema.data();

// Distinct, sorted and sentinel indices, counts with a sum, offsets, integer tensors; ranges that `where` does not keep
// from being too small.
inline constexpr const char* kGroups = R"({
  "fusediff_schema": 1,
  "operators": [{
    "name": "grouped_gather",
    "paths": ["fused", "unfused"],
    "dims": {"T": {"range": [0, 512]}, "K": {"range": [1, 8]}, "E": {"range": [1, 64], "typical": [8, 16]},
             "H": {"range": [1, 256], "typical": [64, 128]}, "N": {"range": [0, 2048]}},
    "attrs": [{"name": "cap", "int": [1, 4096], "default": 64},
              {"name": "mode", "choice": ["drop", "keep"]},
              {"name": "limit", "int": [0, 7], "default": 0, "if": "mode == 'drop'", "also": [100]}],
    "where": ["N <= T * K", "mode == 'drop' || N == T * K"],
    "inputs": [
      {"name": "tokens", "shape": ["T", "H"], "dtype": ["f32", "f8e4m3fn", "f8e5m2"], "layout": "inner_dense", "align": 16},
      {"name": "picks", "shape": ["T", "K"], "dtype": ["i32", "i64"], "role": "index", "range": [0, "E - 1"],
       "distinct": true, "layout": "any"},
      {"name": "order", "shape": ["T"], "dtype": "i32", "role": "index", "range": [0, "E - 1"], "sorted": true},
      {"name": "labels", "shape": ["T"], "dtype": "i64", "role": "index", "range": [0, "H - 1"], "also": [-100],
       "layout": "any"},
      {"name": "sizes", "shape": ["E"], "dtype": "i32", "role": "counts", "range": [0, "T"], "sum": "N"},
      {"name": "free_sizes", "shape": ["E"], "dtype": "i64", "role": "counts", "range": [0, "T"]},
      {"name": "starts", "shape": ["E + 1"], "dtype": "i32", "role": "offsets", "sum": "N"},
      {"name": "steps", "shape": ["T", 3], "dtype": ["i8", "u8", "i16", "bool"], "layout": "any"}],
    "outputs": [{"name": "out", "shape": ["N", "H"], "dtype": "=tokens", "layout": "any"}]
  }]
})";

// Probabilities, masks, scales, cotangents, saved and given tensors, both kinds of inplace, conditions on inputs and
// outputs, a decision on an input, rank 0.
inline constexpr const char* kBackward = R"({
  "fusediff_schema": 1,
  "operators": [{
    "name": "weighted",
    "paths": ["fused", "unfused"],
    "dims": {"B": {"range": [0, 64]}, "S": {"range": [1, 128], "typical": [32, 64]}, "C": {"range": [1, 300]}},
    "attrs": [{"name": "masked", "bool": true, "default": false},
              {"name": "descending", "bool": true, "default": true},
              {"name": "momentum", "float": [0.0, 1.0]}],
    "where": ["C % 4 == 0 || C < 4", "masked == 0 || S >= 2"],
    "inputs": [
      {"name": "x", "shape": ["B", "S", "C"], "dtype": ["f32", "f16", "f64"], "layout": "any"},
      {"name": "p", "shape": ["B", "S"], "dtype": "f32", "role": "probability", "layout": "any"},
      {"name": "score", "shape": ["B", "S"], "dtype": ["f32", "bf16"], "role": "score", "layout": "any"},
      {"name": "mask", "shape": ["S"], "dtype": ["bool", "f32", "u8"], "role": "mask", "if": "masked"},
      {"name": "scale", "shape": [], "dtype": "f32", "role": "scale"},
      {"name": "grad", "shape": ["B", "S", "C"], "dtype": "=x", "role": "cotangent", "layout": "any"},
      {"name": "h", "shape": ["B", "S"], "dtype": "f32", "role": "saved",
       "saved": {"op": "weighted", "output": "h_out", "inputs": {"x": "x"}}}],
    "given": [{"name": "raw", "shape": ["B", "S", "C"], "dtype": "=x"}],
    "outputs": [
      {"name": "y", "shape": ["B", "S", "C"], "dtype": "=x", "layout": "any"},
      {"name": "grad_x", "shape": ["B", "S", "C"], "dtype": "=x"},
      {"name": "h_out", "shape": ["B", "S"], "dtype": "f32", "optional": true},
      {"name": "best", "shape": ["B", 1], "dtype": "i32"}],
    "decide": [{"by": "score", "pick": "best", "count": "1", "order": "=descending"}],
    "inplace": [["y", "x"], ["grad_x", "grad", "always"]]
  }]
})";

inline Schema schema_of(const char* text) {
  Result<Schema> schema = parse_schema(text, [](std::string_view) -> const Schema* { return nullptr; });
  if (!schema.ok()) {
    ADD_FAILURE() << schema.error().what;
    return {};
  }
  return *std::move(schema);
}

// The first operator of a schema, with the randomness of one seed and no probe.
struct Workbench {
  explicit Workbench(const char* text, std::uint64_t seed = 1) : schema(schema_of(text)), rng(seed) {}

  Schema schema;
  Rng rng;
  Probe probe;
  MutateContext context{schema.operators.front(), rng, kTestBytes, probe};
};

// Binds, and every input that the case draws can be drawn; the error otherwise.
inline std::optional<std::string> why_illegal(const Case& c, const Operator& op, std::uint64_t max_bytes = kTestBytes) {
  const Result<Call> call = bind(c, op, max_bytes);
  if (!call.ok()) return call.error().what;
  const auto draw = [&](const std::vector<InputRule>& rules,
                        const std::vector<Tensor>& tensors) -> std::optional<std::string> {
    for (std::size_t i = 0; i < rules.size(); ++i) {
      const auto at = c.inputs.find(rules[i].name);
      if (!tensors[i].present || at == c.inputs.end()) continue;
      const auto bytes = draw_values(at->second, rules[i], tensors[i], *call);
      if (!bytes.ok()) return bytes.error().what;
    }
    return std::nullopt;
  };
  if (auto why = draw(op.inputs, call->inputs)) return why;
  return draw(op.given, call->givens);
}

// The same of a case and of every call in its experiment, which together keep the byte limit.
inline std::optional<std::string> why_illegal_inside(const Case& c, const MutateContext& context) {
  if (auto why = why_illegal(c, context.op, context.max_bytes)) return why;
  for (const Case& call : c.experiment.calls) {
    const Operator* op = operator_of(context, call.op);
    if (op == nullptr) return "a call of " + call.op;
    if (call.experiment != Experiment{}) return "an experiment within an experiment";
    if (auto why = why_illegal(call, *op, context.max_bytes)) return "a call: " + *why;
  }
  if (bytes_of_all(c, context) > context.max_bytes) return "the calls together are too large";
  return std::nullopt;
}

}  // namespace fusediff
