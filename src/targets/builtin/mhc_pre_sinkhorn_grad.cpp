// mhc_pre_sinkhorn_grad: the exact derivative of mhc_pre_sinkhorn as defined there. Two places differ from the
// published formulas, which drop eps: norm_out[0] = softmax + hc_eps, so the softmax is norm_out[0] - hc_eps, and the
// gate is h_pre - hc_eps. The half iterations p / (sum + hc_eps) need no correction: their derivative, written in
// norm_out and sum_out, is the published one. norm_eps enters through inv_rms alone. Order of sums: over C as lanes.h;
// over N, M and tokens (B * S) in index order.
#include "builtin/mhc_pre_sinkhorn.h"
#include "builtin/operators.h"

namespace fusediff::builtin {
namespace {

// The dims have the names of the forward: I is its number of iterations.
constexpr char kSchema[] = R"({
  "name": "mhc_pre_sinkhorn_grad",
  "paths": ["fused", "unfused"],
  "dims": {"B": {"range": [0, 4], "typical": [1, 2]}, "S": {"range": [0, 8], "typical": [1, 2, 4]},
           "N": {"range": [1, 8], "typical": [4]}, "C": {"range": [1, 2048], "typical": [1, 8, 16, 64, 128, 256]},
           "I": {"range": [1, 32], "typical": [1, 2, 3, 20]}},
  "attrs": [{"name": "hc_eps", "float": [1e-8, 1e-2], "scale": "log", "default": 1e-6}],
  "where": ["N >= 1", "C >= 1", "I >= 1"],
  "inputs": [
    {"name": "grad_hin",    "shape": ["B", "S", "C"], "dtype": "=x", "role": "cotangent", "layout": "any"},
    {"name": "grad_h_post", "shape": ["B", "S", "N"], "dtype": "f32", "role": "cotangent", "layout": "any"},
    {"name": "grad_h_res",  "shape": ["B", "S", "N", "N"], "dtype": "f32", "role": "cotangent", "layout": "any"},
    {"name": "x",     "shape": ["B", "S", "N", "C"], "dtype": ["bf16", "f16"], "layout": "any"},
    {"name": "phi",   "shape": ["N * N + 2 * N", "N * C"], "dtype": "f32", "layout": "any"},
    {"name": "alpha", "shape": ["3"], "dtype": "f32", "layout": "any"},
    {"name": "bias",  "shape": ["N * N + 2 * N"], "dtype": "f32", "role": "bias", "layout": "any"},
    {"name": "h_pre", "shape": ["B", "S", "N"], "dtype": "f32", "role": "saved", "layout": "any",
     "saved": {"op": "mhc_pre_sinkhorn", "output": "h_pre",
               "inputs": {"x": "x", "phi": "phi", "alpha": "alpha", "bias": "bias"}}},
    {"name": "hc_before_norm", "shape": ["B", "S", "N * N + 2 * N"], "dtype": "f32", "role": "saved", "layout": "any",
     "saved": {"op": "mhc_pre_sinkhorn", "output": "hc_before_norm",
               "inputs": {"x": "x", "phi": "phi", "alpha": "alpha", "bias": "bias"}}},
    {"name": "inv_rms", "shape": ["B", "S", "1"], "dtype": "f32", "role": "saved", "layout": "any",
     "saved": {"op": "mhc_pre_sinkhorn", "output": "inv_rms",
               "inputs": {"x": "x", "phi": "phi", "alpha": "alpha", "bias": "bias"}}},
    {"name": "sum_out", "shape": ["2 * I", "B", "S", "N"], "dtype": "f32", "role": "saved", "layout": "any",
     "saved": {"op": "mhc_pre_sinkhorn", "output": "sum_out",
               "inputs": {"x": "x", "phi": "phi", "alpha": "alpha", "bias": "bias"}}},
    {"name": "norm_out", "shape": ["2 * I", "B", "S", "N", "N"], "dtype": "f32", "role": "saved", "layout": "any",
     "saved": {"op": "mhc_pre_sinkhorn", "output": "norm_out",
               "inputs": {"x": "x", "phi": "phi", "alpha": "alpha", "bias": "bias"}}}],
  "outputs": [
    {"name": "grad_bias",  "shape": ["N * N + 2 * N"], "dtype": "f32", "stage": 1, "layout": "any"},
    {"name": "grad_alpha", "shape": ["3"], "dtype": "f32", "stage": 2, "layout": "any"},
    {"name": "grad_phi",   "shape": ["N * N + 2 * N", "N * C"], "dtype": "f32", "stage": 3, "layout": "any"},
    {"name": "grad_x",     "shape": ["B", "S", "N", "C"], "dtype": "=x", "stage": 3, "layout": "any"}],
  "gradient": {"of": "mhc_pre_sinkhorn",
               "wrt": {"grad_x": "x", "grad_phi": "phi", "grad_alpha": "alpha", "grad_bias": "bias"},
               "cotangents": {"grad_hin": "hin", "grad_h_post": "h_post", "grad_h_res": "h_res"}},
  "rows": {"dim": "S", "inputs": ["grad_hin", "grad_h_post", "grad_h_res", "x", "h_pre", "hc_before_norm", "inv_rms",
                                  "sum_out", "norm_out"], "outputs": ["grad_x"]}
})";

}  // namespace

constinit const kit::Operator kMhcPreSinkhornGrad{"mhc_pre_sinkhorn_grad",
                                                  kSchema,
                                                  {{"fused", run_mhc_grad_fused, mhc_grad_fused_workspace},
                                                   {"unfused", run_mhc_grad_unfused, mhc_grad_unfused_workspace}}};

}  // namespace fusediff::builtin
