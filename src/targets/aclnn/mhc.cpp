// mhc_pre_sinkhorn by aclnnMhcPreSinkhorn and its backward by aclnnMhcPreSinkhornBackward. The library has no
// composition of small operators: the other side is the built-in one. The records state what the header said when the
// backward was reported: shapes and dtypes, nothing of N, num_iters and C.
#include "aclnn/operators.h"
#include "aclnn/steps.h"

namespace fusediff::aclnn {
namespace {

constexpr char kForwardSchema[] = R"({"name": "mhc_pre_sinkhorn", "like": "builtin", "paths": ["fused"]})";
constexpr char kBackwardSchema[] = R"({"name": "mhc_pre_sinkhorn_grad", "like": "builtin", "paths": ["fused"]})";

// The optional outputs come all together or not at all; h_res is documented as [B, S, N * N].
void forward(Steps& s) {
  const kit::Call& call = s.call();
  const kit::Tensor x = call.input("x");
  const int64_t streams = x.size(2);
  bool saved = false;
  for (const char* name : {"h_pre", "hc_before_norm", "inv_rms", "sum_out", "norm_out"}) {
    saved = saved || call.output(name).present();
  }
  const auto optional = [&](const char* name) { return saved ? s.output_or_temporary(name).handle : nullptr; };
  const aclTensor* const in[] = {s.input("x").handle, s.input("phi").handle, s.input("alpha").handle,
                                 s.input("bias").handle};
  aclTensor* const out[] = {s.output("hin").handle, s.output("h_post").handle,
                            s.output("h_res", {x.size(0), x.size(1), streams * streams}).handle};
  aclTensor* const kept[] = {optional("h_pre"), optional("hc_before_norm"), optional("inv_rms"), optional("sum_out"),
                             optional("norm_out")};
  s.step("aclnnMhcPreSinkhorn", in[0], in[1], in[2], in[3], streams, call.integer("num_iters"), call.real("hc_eps"),
         call.real("norm_eps"), saved, out[0], out[1], out[2], kept[0], kept[1], kept[2], kept[3], kept[4]);
}

void backward(Steps& s) {
  constexpr const char* kInputs[] = {"grad_hin", "grad_h_post", "grad_h_res",     "x",       "phi",     "alpha",
                                     "bias",     "h_pre",       "hc_before_norm", "inv_rms", "sum_out", "norm_out"};
  const aclTensor* in[12];
  for (size_t i = 0; i < 12; ++i) {
    in[i] = s.input(kInputs[i]).handle;
  }
  const aclTensor* const out[] = {s.output("grad_x").handle, s.output("grad_phi").handle, s.output("grad_alpha").handle,
                                  s.output("grad_bias").handle};
  s.step("aclnnMhcPreSinkhornBackward", in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7], in[8], in[9], in[10],
         in[11], s.call().real("hc_eps"), out[0], out[1], out[2], out[3]);
}

}  // namespace

constinit const kit::Operator kMhcPreSinkhorn{
    "mhc_pre_sinkhorn", kForwardSchema, {{"fused", run_steps<forward>, measure_steps<forward>}}};
constinit const kit::Operator kMhcPreSinkhornGrad{
    "mhc_pre_sinkhorn_grad", kBackwardSchema, {{"fused", run_steps<backward>, measure_steps<backward>}}};

}  // namespace fusediff::aclnn
