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
// out has no bound: the scores' error, u times the sum of |q k|, is an error of all weights in proportion, and no
// number of the output says how large that sum was. scores and lse, which come before it, have theirs.
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
     "bound": {"ulp": "2 * D + 2 * L + 40", "of": "abs_inputs",
               "why": "S, lse of the scores' magnitudes, is at least each of these and log of the number of keys. lse moves by no more than the scores do: 2 D + 4. l is a sum of positive terms: L additions, exp 2 u, z log L u on the mean, and at most 4 roundings and 0.37 u of z for each of L / 32 + 1 changes of the maximum: below u (5 L / 4 + 18), absolutely, so over 0.69 of S where there are two keys, and nothing where there is one; log and the last sum 3 u S, exp2 in the place of exp 8 u S. Says nothing beside a mask, whose -inf has an infinite magnitude"}},
    {"name": "out", "shape": ["B", "H", "S", "D"], "dtype": "=q", "stage": 3, "layout": "any"}],
  "rows": {"dim": "B", "inputs": ["q", "k", "v"], "outputs": "all"}
})";

}  // namespace

constinit const kit::Operator kAttention{"attention",
                                         kSchema,
                                         {{"fused", run_attention_fused, attention_fused_workspace},
                                          {"unfused", run_attention_unfused, attention_unfused_workspace}}};

}  // namespace fusediff::builtin
