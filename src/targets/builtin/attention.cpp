// attention: out = softmax(scale * q @ k^T + mask) @ v, each query over the keys that it sees. Source of the online
// form: Milakov and Gimelshein, arXiv 1805.02867; Dao et al., FlashAttention, arXiv 2205.14135.
// Softmax in one pass and in two differ by what is rounded when the maximum changes. Here the changes are part of the
// definition, so that paths agree by bits whatever their loops: the maximum of a query is renewed at every 32nd key.
// In the compute type, p never rounded to the storage dtype; m = -inf, l = +0, acc = +0; then for each block of 32 keys
// that the query sees (the last may be shorter):
//   s = (dot(q, k), summed as lanes.h) * scale + mask     M = max(m, all s; NaN apart)     c = M, or 0 where M is -inf
//   a = exp(m - c); l = l * a; acc = acc * a; then key by key p = exp(s - c); l = l + p; acc = acc + p * v; m = M
// out = acc / l, lse = m + log(l). Where l is 0 (no key, or every one masked) out is 0 and lse -inf. Keys that causal
// hides take no part at all, and their score is -inf; query i of S sees key j of L where j <= i + L - S.
// The bounds of lse and out are of largest inputs: an error of the scores is one of all weights in proportion, and no
// output says how large the terms of a score were.
#include "builtin/attention.h"

#include "builtin/operators.h"

namespace fusediff::builtin {
namespace {

constexpr char kSchema[] = R"({
  "name": "attention",
  "paths": ["fused", "unfused"],
  "dims": {"B": {"range": [0, 3], "typical": [1, 2]}, "H": {"range": [0, 4], "typical": [1, 2]},
           "S": {"range": [0, 64], "typical": [1, 2, 16, 32]}, "L": {"range": [0, 96], "typical": [1, 16, 32, 33, 64]},
           "D": {"range": [0, 64], "typical": [8, 16, 32, 64]}},
  "attrs": [
    {"name": "scale", "float": [0.05, 2.0], "scale": "log", "default": 0.125, "also": [1.0]},
    {"name": "causal", "bool": true, "default": false}],
  "inputs": [
    {"name": "q", "shape": ["B", "H", "S", "D"], "dtype": ["f32", "f16", "bf16", "f8e4m3fn", "f8e5m2"], "layout": "any"},
    {"name": "k", "shape": ["B", "H", "L", "D"], "dtype": "=q", "layout": "any"},
    {"name": "v", "shape": ["B", "H", "L", "D"], "dtype": "=q", "layout": "any"},
    {"name": "mask", "shape": ["S", "L"], "dtype": "f32", "role": "mask", "optional": true, "layout": "any"}],
  "outputs": [
    {"name": "scores", "shape": ["B", "H", "S", "L"], "dtype": "f32", "stage": 1, "optional": true, "layout": "any",
     "bound": {"ulp": "2 * D + 4", "of": "abs_inputs",
               "why": "S is scale times the sum of absolute products. D products, each off by half a unit of a term, subnormal or not, and D additions, each by half a unit of a partial sum of at most S (1 + u)^(2 D) < 2 S: at most one ULP; scale and the product with it one each. A mask adds 0 or -inf, which is exact. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 4.2"}},
    {"name": "lse", "shape": ["B", "H", "S"], "dtype": "f32", "stage": 2, "optional": true, "layout": "any",
     "bound": {"ulp": "D * D + 18 * D + 2 * L + 24", "of": {"row_max_product": [["q", "k", "scale"], []]},
               "why": "P = scale times the largest abs q and k, T = D P bounds every score. lse moves by no more than the scores do: (D + 3) u T. l is a sum of positive terms: L additions, exp 4 u, its argument at most 3 u 2 T, five roundings for each of L / 32 + 1 changes of the maximum, whose arguments add up to 2 T, again 3 u each; log and the last sum 3 u of T + log L, log L <= L / 4 + 2: u T (D + 18) + u (2 L + 20). A mask adds 0 or -inf, which is exact. One ULP is at least u of P + 1. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 4.2"}},
    {"name": "out", "shape": ["B", "H", "S", "D"], "dtype": "=q", "stage": 3, "layout": "any",
     "bound": {"ulp": {"f32": "4 * D * D + 60 * D + 5 * L + 48", "f16": "2 + (4 * D * D + 60 * D + 5 * L + 48) / 8192",
                       "bf16": "2 + (4 * D * D + 60 * D + 5 * L + 48) / 65536",
                       "f8e4m3fn": "2 + (4 * D * D + 60 * D + 5 * L + 48) / 1048576",
                       "f8e5m2": "2 + (4 * D * D + 60 * D + 5 * L + 48) / 1048576"},
               "of": {"row_max_product": [["v", "q", "k", "scale"], ["v"]]},
               "why": "P, T as for lse, v = 2^-24, u the unit roundoff of the dtype. A weight before division is off by r = v ((D + 15) T + 9 + 5 L / 32) of itself, l by that and L v, the sum of products with values by that and (L + 1) v of the largest of them, the quotient v: the mean moves by at most e^(2 r) - 1, or 2 where that is more, so by 4 r of max abs value; the last rounding half an ULP of it. One ULP is at least u of the scale. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 4.2"}}],
  "rows": {"dim": "B", "inputs": ["q", "k", "v"], "outputs": "all"}
})";

}  // namespace

constinit const kit::Operator kAttention{"attention",
                                         kSchema,
                                         {{"fused", run_attention_fused, attention_fused_workspace},
                                          {"unfused", run_attention_unfused, attention_unfused_workspace}}};

}  // namespace fusediff::builtin
