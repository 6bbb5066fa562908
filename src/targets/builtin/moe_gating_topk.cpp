// moe_gating_topk: scores, groups and the k best experts of each token. Source of the definition and of the rules: CANN
// aclnnMoeGatingTopK. Order of sums: softmax over E as lanes.h, the selected weights in slot order.
#include "builtin/moe_gating_topk.h"

#include "builtin/operators.h"

namespace fusediff::builtin {
namespace {

constexpr char kSchema[] = R"({
  "name": "moe_gating_topk",
  "paths": ["fused", "unfused"],
  "dims": {"T": {"range": [0, 64], "typical": [1, 2, 8, 16]},
           "E": {"range": [1, 2048], "typical": [8, 32, 64, 128, 256, 512]},
           "K": {"range": [1, 64], "typical": [1, 2, 4, 6, 8, 10]},
           "G": {"range": [1, 16], "typical": [1, 2, 4, 8]}, "KG": {"range": [1, 16], "typical": [1, 2, 4]}},
  "attrs": [
    {"name": "k", "int": "K"}, {"name": "k_group", "int": "KG"}, {"name": "group_count", "int": "G"},
    {"name": "group_select_mode", "int": [0, 1], "default": 0},
    {"name": "renorm", "bool": true, "default": false},
    {"name": "norm_type", "choice": ["sigmoid", "softmax"], "default": "sigmoid"},
    {"name": "out_flag", "bool": true, "default": true},
    {"name": "routed_scaling_factor", "float": [0.5, 4.0], "default": 1.0, "also": [0.0]},
    {"name": "eps", "float": [1e-20, 1e-3], "scale": "log", "default": 1e-20}],
  "where": ["E >= 1", "E <= 2048", "G >= 1", "E % G == 0", "KG >= 1", "KG <= G", "K >= 1", "K <= E / G * KG",
            "group_select_mode >= 0", "group_select_mode <= 1", "E / G > group_select_mode",
            "(E / G + 31) / 32 * 32 * G <= 2048"],
  "inputs": [
    {"name": "x",    "shape": ["T", "E"], "dtype": ["f32", "f16", "bf16"], "role": "score", "layout": "any"},
    {"name": "bias", "shape": ["E"],      "dtype": "=x", "role": "bias", "optional": true, "layout": "any"}],
  "outputs": [
    {"name": "norm_out",   "shape": ["T", "E"], "dtype": "f32", "stage": 1, "optional": true, "if": "out_flag == 1",
     "layout": "any",
     "bound": {"ulp": "4 * E + 16", "of": "row_max",
               "why": "softmax: as the operator softmax, x - max one rounding, and two more where exp is written as exp2: 1.2 u of the row's largest; exp 4 u; the sum of positive terms in any order (3 E + 5) u of itself; quotient 2 u. sigmoid: the argument of exp is off by 3 u abs x, which moves it by at most 3 u of itself (t exp(-t) <= 0.37, t s(-t) <= 0.28), exp, sum and quotient 6 u. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 4.2"}},
    {"name": "rank",       "shape": ["T", "E"], "dtype": "f32", "stage": 2, "optional": true, "layout": "any",
     "bound": {"ulp": "4 * E + 24", "of": {"row_max_product": [[], ["bias"]]},
               "why": "norm_out is at most 1 and off as stated there, in units of 1; bias is exact in f32; one rounding of their sum"}},
    {"name": "expert_idx", "shape": ["T", "K"], "dtype": "i32", "stage": 3, "layout": "any",
     "always": [{"range": [0, "E - 1"]}, {"distinct_in_row": true}]},
    {"name": "y",          "shape": ["T", "K"], "dtype": "=x",  "stage": 4, "layout": "any"}],
  "decide": [{"by": "rank", "pick": "expert_idx", "count": "K", "order": "largest", "nan": "least", "zeros": "equal",
              "tie": "lowest_index", "sorted": true}],
  "rows": {"dim": "T", "inputs": ["x"], "outputs": "all"}
})";

}  // namespace

constinit const kit::Operator kMoeGatingTopk{
    "moe_gating_topk",
    kSchema,
    {{"fused", run_gating_fused}, {"unfused", run_gating_unfused, gating_unfused_workspace}}};

}  // namespace fusediff::builtin
