// mhc_pre_sinkhorn: the mixing coefficients of manifold-constrained hyper-connections (arXiv 2512.24880) for each
// token, as CANN aclnnMhcPreSinkhorn defines them, without its limits on N, C and the number of iterations. Order of
// sums: over K as lanes.h; over N (rows, columns and streams) in index order.
#include "builtin/mhc_pre_sinkhorn.h"

#include "builtin/operators.h"

namespace fusediff::builtin {
namespace {

constexpr char kSchema[] = R"({
  "name": "mhc_pre_sinkhorn",
  "paths": ["fused", "unfused"],
  "dims": {"B": {"range": [0, 4], "typical": [1, 2]}, "S": {"range": [0, 8], "typical": [1, 2, 4]},
           "N": {"range": [1, 8], "typical": [4]}, "C": {"range": [1, 2048], "typical": [1, 8, 16, 64, 128, 256]},
           "I": {"range": [1, 32], "typical": [1, 2, 3, 20]}},
  "attrs": [
    {"name": "num_iters", "int": "I"},
    {"name": "hc_eps", "float": [1e-8, 1e-2], "scale": "log", "default": 1e-6},
    {"name": "norm_eps", "float": [1e-8, 1e-2], "scale": "log", "default": 1e-6}],
  "where": ["N >= 1", "C >= 1", "I >= 1"],
  "inputs": [
    {"name": "x",     "shape": ["B", "S", "N", "C"], "dtype": ["bf16", "f16"], "layout": "any"},
    {"name": "phi",   "shape": ["N * N + 2 * N", "N * C"], "dtype": "f32", "layout": "any"},
    {"name": "alpha", "shape": ["3"], "dtype": "f32", "layout": "any"},
    {"name": "bias",  "shape": ["N * N + 2 * N"], "dtype": "f32", "role": "bias", "layout": "any"}],
  "outputs": [
    {"name": "hin",    "shape": ["B", "S", "C"], "dtype": "=x", "stage": 5, "layout": "any"},
    {"name": "h_post", "shape": ["B", "S", "N"], "dtype": "f32", "stage": 2, "layout": "any"},
    {"name": "h_res",  "shape": ["B", "S", "N", "N"], "dtype": "f32", "stage": 4, "layout": "any"},
    {"name": "h_pre",  "shape": ["B", "S", "N"], "dtype": "f32", "stage": 2, "optional": true, "layout": "any"},
    {"name": "hc_before_norm", "shape": ["B", "S", "N * N + 2 * N"], "dtype": "f32", "stage": 1, "optional": true,
     "layout": "any",
     "bound": {"ulp": "N * C + 8", "of": "abs_inputs",
               "why": "a sum of K = N * C products: each product half a unit, chains of at most ceil(K / 16) + 4 additions, gamma_(K + 8) times the sum of absolute products (Higham, Accuracy and Stability, 3.1); products that underflow add at most half of the smallest subnormal each"}},
    {"name": "inv_rms",  "shape": ["B", "S", "1"], "dtype": "f32", "stage": 1, "optional": true, "layout": "any",
     "bound": {"ulp": "N * C + 16", "of": "element",
               "why": "K = N * C squares, their sum in any order, / K, + norm_eps and that itself: terms are positive, so a relative gamma_(K + 4), which the root halves; root and quotient one u each; at most doubled by products of changes; one ULP is at least u of the value (Higham, Accuracy and Stability, 2.2, 3.1 and 4.2). Not where squares overflow"}},
    {"name": "sum_out",  "shape": ["2 * I", "B", "S", "N"], "dtype": "f32", "stage": 3, "optional": true, "layout": "any"},
    {"name": "norm_out", "shape": ["2 * I", "B", "S", "N", "N"], "dtype": "f32", "stage": 3, "optional": true,
     "layout": "any"}],
  "rows": {"dim": "S", "inputs": ["x"], "outputs": "all"}
})";

}  // namespace

MhcSizes read_mhc_sizes(const kit::Call& call, int64_t iterations) {
  const kit::Tensor x = call.input("x");
  kit::require(x.rank() == 4, "x must be [B, S, N, C], not of rank ", x.rank());
  const MhcSizes sizes{x.size(0), x.size(1), x.size(2), x.size(3), iterations};
  kit::require(sizes.streams >= 1 && sizes.channels >= 1, "x must have at least one stream and one channel");
  kit::require(iterations >= 1, "the number of iterations must be at least 1, not ", iterations);
  return sizes;
}

void check_mhc_saved(const MhcSizes& sizes, const kit::Tensor& h_pre, const kit::Tensor& hc_before_norm,
                     const kit::Tensor& inv_rms, const kit::Tensor& sum_out, const kit::Tensor& norm_out) {
  h_pre.require_shape({sizes.batch, sizes.sequence, sizes.streams});
  hc_before_norm.require_shape({sizes.batch, sizes.sequence, sizes.mixes()});
  inv_rms.require_shape({sizes.batch, sizes.sequence, 1});
  sum_out.require_shape({2 * sizes.iterations, sizes.batch, sizes.sequence, sizes.streams});
  norm_out.require_shape({2 * sizes.iterations, sizes.batch, sizes.sequence, sizes.streams, sizes.streams});
}

constinit const kit::Operator kMhcPreSinkhorn{
    "mhc_pre_sinkhorn",
    kSchema,
    {{"fused", run_mhc_fused, mhc_fused_workspace}, {"unfused", run_mhc_unfused, mhc_unfused_workspace}}};

}  // namespace fusediff::builtin
