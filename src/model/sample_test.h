// The schema and the case that the design pages show, for tests.
#pragma once

#include <string>
#include <string_view>

namespace fusediff {

inline constexpr std::string_view kSampleSchema = R"({
  "fusediff_schema": 1,
  "threads": "shared_context",
  "operators": [{
    "name": "moe_gating_topk",
    "paths": ["fused", "unfused"],
    "dims":  {"T": {"range": [0, 4096]}, "E": {"range": [1, 2048], "typical": [64, 128, 256, 512]},
              "K": {"range": [1, 64], "typical": [2, 4, 6, 8, 10]}, "G": {"range": [1, 16]}, "KG": {"range": [1, 16]}},
    "attrs": [
      {"name": "k", "int": "K"}, {"name": "group_count", "int": "G"}, {"name": "k_group", "int": "KG"},
      {"name": "norm_type", "choice": ["sigmoid", "softmax"], "default": "sigmoid"},
      {"name": "renorm", "bool": true, "default": false},
      {"name": "routed_scaling_factor", "float": [0.5, 4.0], "default": 1.0, "also": [0.0]},
      {"name": "eps", "float": [1e-20, 1e-3], "scale": "log", "default": 1e-20}],
    "where": ["E % G == 0", "KG <= G", "K <= E / G * KG"],
    "inputs": [
      {"name": "x",    "shape": ["T", "E"], "dtype": ["f32", "f16", "bf16"], "role": "score", "layout": "any"},
      {"name": "bias", "shape": ["E"],      "dtype": "=x", "role": "bias", "optional": true}],
    "outputs": [
      {"name": "norm_out",   "shape": ["T", "E"], "dtype": "f32", "stage": 1},
      {"name": "rank",       "shape": ["T", "E"], "dtype": "f32", "stage": 2, "optional": true},
      {"name": "expert_idx", "shape": ["T", "K"], "dtype": "i32", "stage": 3,
       "always": [{"range": [0, "E - 1"]}, {"distinct_in_row": true}]},
      {"name": "y",          "shape": ["T", "K"], "dtype": "=x",  "stage": 4}],
    "decide": [{"by": "rank", "pick": "expert_idx", "count": "K", "order": "largest", "tie": "lowest_index"}],
    "rows": {"dim": "T", "inputs": ["x"], "outputs": "all"}
  }]
})";

inline constexpr std::string_view kSampleCase = R"({
  "fusediff_case": 1,
  "op": "moe_gating_topk",
  "dims": {"T": 1, "E": 512, "K": 10, "G": 1, "KG": 1},
  "attrs": {"norm_type": "sigmoid", "renorm": false, "routed_scaling_factor": 1.0},
  "dtypes": {"x": "f32"},
  "inputs": {
    "x":    {"fill": {"normal": {"mean": 0, "std": 1}, "seed": 17},
             "patches": [{"rows": [0, 0], "columns": [16, 31], "fill": {"constant": "-inf"}}],
             "set": {"122": "0x1.2c5f9ap+1"}},
    "bias": {"fill": {"uniform": [-0.1, 0.1], "seed": 3}, "set": {"472": "0x1.9648p-4"}}
  },
  "layout": {"x": {"stride": [520, 1], "offset": 3, "place": "middle"}}
})";

// The same text with the first `from` replaced, for what a small change does.
inline std::string changed(std::string_view text, std::string_view from, std::string_view to) {
  std::string out(text);
  const std::size_t at = out.find(from);
  return at == std::string::npos ? "the text to change is missing: " + std::string(from)
                                 : out.replace(at, from.size(), to);
}

}  // namespace fusediff
