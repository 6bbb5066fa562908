// softmax, layer_norm and rms_norm over the last dimension. Fused: at::softmax, at::native_layer_norm, and for
// rms_norm, which ATen 1.13 lacks, one reduction by at::linalg_vector_norm. Unfused: the small operators, in f32 for
// the 16-bit dtypes. at::softmax keeps its largest value and its sum to itself: where these outputs are wanted, amax
// and sum give them on both paths.
#include "builtin/operators.h"
#include "torch/aten.h"
#include "torch/operators.h"

#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/softmax.h>

namespace fusediff::torch {
namespace {

using namespace kit;

// exp(x - max) with max and sum given to their outputs.
struct Exponentials {
  at::Tensor terms, sum;
};

Exponentials exponentials(const Call& call) {
  const at::Tensor x = widened(aten(call.input("x")));
  require(x.size(1) >= 1, "x must have at least one column");
  const at::Tensor max = x.amax(-1, true);
  const at::Tensor terms = (x - max).exp();
  const at::Tensor sum = terms.sum(-1, true);
  give(call.output("max"), max.squeeze(-1));
  give(call.output("sum"), sum.squeeze(-1));
  return {terms, sum};
}

void softmax_unfused(const Call& call) {
  const Exponentials e = exponentials(call);
  give(call.output("y"), e.terms / e.sum);
}

void softmax_fused(const Call& call) {
  const at::Tensor y = at::softmax(aten(call.input("x")), -1);
  if (call.output("max").present() || call.output("sum").present()) {
    exponentials(call);
  }
  give(call.output("y"), y);
}

void layer_norm_fused(const Call& call) {
  const at::Tensor x = aten(call.input("x"));
  require(x.size(1) >= 1, "x must have at least one column");
  const auto [y, mean, rstd] =
      at::native_layer_norm(x, x.size(1), aten(call.input("gamma")), aten(call.input("beta")), call.real("eps"));
  give(call.output("mean"), mean.squeeze(-1));
  give(call.output("rstd"), rstd.squeeze(-1));
  give(call.output("y"), y);
}

void layer_norm_unfused(const Call& call) {
  const at::Tensor x = widened(aten(call.input("x")));
  require(x.size(1) >= 1, "x must have at least one column");
  const at::Tensor mean = x.mean(-1, true);
  const at::Tensor d = x - mean;
  const at::Tensor rstd = (d.square().mean(-1, true) + call.real("eps")).rsqrt();
  const at::Tensor y = d * rstd * widened(aten(call.input("gamma"))) + widened(aten(call.input("beta")));
  give(call.output("mean"), mean.squeeze(-1));
  give(call.output("rstd"), rstd.squeeze(-1));
  give(call.output("y"), y);
}

// x, or x + residual in the storage dtype, which is what the norm reads.
at::Tensor summed(const Call& call) {
  const at::Tensor x = aten(call.input("x"));
  require(x.size(1) >= 1, "x must have at least one column");
  return call.flag("add_residual") ? x + aten(call.input("residual")) : x;
}

void finish_rms_norm(const Call& call, const at::Tensor& sum, const at::Tensor& rstd) {
  const at::Tensor y = widened(sum) * rstd * widened(aten(call.input("gamma")));
  if (call.flag("add_residual")) {
    give(call.output("residual_out"), sum);
  }
  give(call.output("rstd"), rstd.squeeze(-1));
  give(call.output("y"), y);
}

void rms_norm_fused(const Call& call) {
  const at::Tensor sum = summed(call);
  const at::Tensor norm = at::linalg_vector_norm(sum, 2, -1, true, wide_type(sum));
  const double columns = static_cast<double>(sum.size(1));
  finish_rms_norm(call, sum, (norm.square() / columns + call.real("eps")).rsqrt());
}

void rms_norm_unfused(const Call& call) {
  const at::Tensor sum = summed(call);
  finish_rms_norm(call, sum, (widened(sum).square().mean(-1, true) + call.real("eps")).rsqrt());
}

constexpr char kSoftmaxSchema[] = R"({
  "name": "softmax", "like": "builtin", "paths": ["fused", "unfused", "reference"],
  "where": ["C >= 1"], "dtype": {"x": ["f32", "bf16"]}
})";

constexpr char kLayerNormSchema[] = R"({
  "name": "layer_norm", "like": "builtin", "paths": ["fused", "unfused", "reference"], "dtype": {"x": ["f32"]}
})";

constexpr char kRmsNormSchema[] = R"({
  "name": "rms_norm", "like": "builtin", "paths": ["fused", "unfused", "reference"],
  "dtype": {"x": ["f32", "f16", "bf16"]}
})";

}  // namespace

const Operator kSoftmax{
    "softmax",
    kSoftmaxSchema,
    {{"fused", in_aten<softmax_fused>}, {"unfused", in_aten<softmax_unfused>}, reference_of(builtin::kSoftmax)}};

const Operator kLayerNorm{"layer_norm",
                          kLayerNormSchema,
                          {{"fused", in_aten<layer_norm_fused>},
                           {"unfused", in_aten<layer_norm_unfused>},
                           reference_of(builtin::kLayerNorm)}};

const Operator kRmsNorm{
    "rms_norm",
    kRmsNormSchema,
    {{"fused", in_aten<rms_norm_fused>}, {"unfused", in_aten<rms_norm_unfused>}, reference_of(builtin::kRmsNorm)}};

}  // namespace fusediff::torch
