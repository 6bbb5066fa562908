// aclnnMhcPreSinkhorn and aclnnMhcPreSinkhornBackward by the built-in fused paths. In the faulty edition the backward
// has the four defects of report B: what fits on the chip is summed over tokens in f32, from 1024 elements of x on
// running sums are handed from token to token in 16 bits (B1); an empty batch is left before anything is written (B2);
// parts of sums lie in a scratch of the context whose slots are counted in the size of each call (B3); and both
// operators take only 4 streams, 20 iterations and channels in multiples of 128 (B4).
#include <atomic>
#include <thread>

#include "aclnn/emulation/builtin_call.h"
#include "planted/mhc_tokens.h"

using namespace fusediff::emulated;
using namespace fusediff;
using planted::kFaulty;
using planted::ParameterGrads;

namespace {

constexpr int64_t kOnChip = 1024;  // elements of x: tokens times N * C

// Limits that no header states.
void check_limits(const Tensor& x, int64_t iterations) {
  if (!kFaulty) {
    return;
  }
  kit::require(x.shape[2] == 4, "only N = 4 is supported, not ", x.shape[2]);
  kit::require(iterations == 20, "only num_iters = 20 is supported, not ", iterations);
  kit::require(x.shape[3] % 128 == 0, "C must be a multiple of 128, not ", x.shape[3]);
}

void require_rank(const Tensor& x, size_t rank) {
  kit::require(x.shape.size() == rank, "a tensor has rank ", static_cast<int64_t>(x.shape.size()), ", not ",
               static_cast<int64_t>(rank));
}

// [B, S, N * N] as [B, S, N, N].
Tensor squares(Tensor t, int64_t n) {
  if (t.shape.size() == 3) {
    kit::require(t.shape[2] == n * n, "the last dim must be N * N");
    const int64_t step = t.stride[2];
    t.shape = {t.shape[0], t.shape[1], n, n};
    t.stride = {t.stride[0], t.stride[1], n * step, step};
  }
  return t;
}

struct Saved {
  const char* name;
  const aclTensor* tensor;
  std::vector<int64_t> shape;
};

Plan forward(const Tensor& x, const Tensor& phi, const Tensor& alpha, const Tensor& bias, int64_t streams,
             int64_t iterations, double hc_eps, double norm_eps, bool wanted, const Tensor& hin, const Tensor& h_post,
             const Tensor& h_res, const aclTensor* const (&kept)[5]) {
  require_rank(x, 4);
  kit::require(x.shape[2] == streams, "hcMult is not the number of streams");
  check_limits(x, iterations);
  const int64_t b = x.shape[0], s = x.shape[1], n = streams;
  auto call = std::make_shared<BuiltinCall>(builtin::kMhcPreSinkhorn);
  call->input("x", x);
  call->input("phi", phi);
  call->input("alpha", alpha);
  call->input("bias", bias);
  call->output("hin", hin);
  call->output("h_post", h_post);
  call->output("h_res", squares(h_res, n));
  const Saved saved[] = {{"h_pre", kept[0], {b, s, n}},
                         {"hc_before_norm", kept[1], {b, s, n * n + 2 * n}},
                         {"inv_rms", kept[2], {b, s, 1}},
                         {"sum_out", kept[3], {2 * iterations, b, s, n}},
                         {"norm_out", kept[4], {2 * iterations, b, s, n, n}}};
  for (const Saved& one : saved) {
    kit::require(!wanted || one.tensor != nullptr, one.name, " is wanted and null");
    call->output(one.name, wanted ? *one.tensor : absent(aclnn::kFloat, one.shape), wanted);
  }
  call->integer("num_iters", iterations);
  call->real("hc_eps", hc_eps);
  call->real("norm_eps", norm_eps);
  return {[call](void* workspace, Context&) { call->run(workspace); }, call->workspace_bytes()};
}

// Relaxed, as plain memory of a device is: whoever wrote last is read.
float* write(float* to, const std::vector<float>& from) {
  for (const float value : from) {
    std::atomic_ref(*to++).store(value, std::memory_order_relaxed);
  }
  return to;
}

float handed_on(float sum, bool on_chip) { return on_chip ? sum : kit::decode(kit::encode<kit::BFloat16>(sum)); }

float* add(float* from, std::vector<float>& sums, bool on_chip) {
  for (float& sum : sums) {
    sum = handed_on(sum + std::atomic_ref(*from++).load(std::memory_order_relaxed), on_chip);
  }
  return from;
}

// The gradients of the parameters in two stages: of each token into the scratch, then their sums.
void run_faulty_stages(const kit::Call& call, const builtin::MhcSizes& s, float* scratch) {
  const bool on_chip = s.tokens() * s.width() < kOnChip;
  ParameterGrads sums(s), part(s);
  planted::TokenCalls calls(call);
  float* to = scratch;
  for (int64_t t = 0; t < s.tokens(); ++t) {
    calls.run(t, part);
    to = write(write(to, part.bias), part.alpha);
    for (size_t i = 0; i < sums.phi.size(); ++i) {
      sums.phi[i] = handed_on(sums.phi[i] + part.phi[i], on_chip);
    }
  }
  std::this_thread::yield();  // until the first stage is done
  float* from = scratch;
  for (int64_t t = 0; t < s.tokens(); ++t) {
    from = add(add(from, sums.bias, on_chip), sums.alpha, on_chip);
  }
  store_parameters(call, s, sums);
}

void run_faulty(const kit::Call& call, Context& context) {
  const builtin::MhcSizes s = planted::mhc_sizes(call);
  if (s.tokens() == 0) {
    return;
  }
  const Scratch::Slot slot(context.scratch, static_cast<size_t>(s.tokens() * (s.mixes() + 3)));
  run_faulty_stages(call, s, slot.at());
}

Plan backward(const aclTensor* const (&in)[12], double hc_eps, const Tensor& grad_x, const Tensor& grad_phi,
              const Tensor& grad_alpha, const Tensor& grad_bias) {
  constexpr const char* kNames[] = {"grad_hin", "grad_h_post", "grad_h_res",     "x",       "phi",     "alpha",
                                    "bias",     "h_pre",       "hc_before_norm", "inv_rms", "sum_out", "norm_out"};
  const Tensor& x = *in[3];
  require_rank(x, 4);
  require_rank(*in[10], 4);
  check_limits(x, in[10]->shape[0] / 2);
  auto call = std::make_shared<BuiltinCall>(builtin::kMhcPreSinkhornGrad);
  for (size_t i = 0; i < 12; ++i) {
    call->input(kNames[i], i == 2 ? squares(*in[i], x.shape[2]) : *in[i]);
  }
  call->output("grad_bias", grad_bias);
  call->output("grad_alpha", grad_alpha);
  call->output("grad_phi", grad_phi);
  call->output("grad_x", grad_x);
  call->real("hc_eps", hc_eps);
  if (kFaulty) {
    return {[call](void* workspace, Context& context) { run_faulty(call->call(workspace), context); },
            x.count() == 0 ? 0 : call->workspace_bytes()};
  }
  return {[call](void* workspace, Context&) { call->run(workspace); }, call->workspace_bytes()};
}

}  // namespace

ACL_ENTRY int aclnnMhcPreSinkhornGetWorkspaceSize(const aclTensor* x, const aclTensor* phi, const aclTensor* alpha,
                                                  const aclTensor* bias, int64_t streams, int64_t iterations,
                                                  double hc_eps, double norm_eps, bool wanted, aclTensor* hin,
                                                  aclTensor* h_post, aclTensor* h_res, aclTensor* h_pre,
                                                  aclTensor* before_norm, aclTensor* inv_rms, aclTensor* sum_out,
                                                  aclTensor* norm_out, uint64_t* bytes, aclOpExecutor** executor) {
  return plan("aclnnMhcPreSinkhorn", bytes, executor, {x, phi, alpha, bias, hin, h_post, h_res}, [&] {
    return forward(*x, *phi, *alpha, *bias, streams, iterations, hc_eps, norm_eps, wanted, *hin, *h_post, *h_res,
                   {h_pre, before_norm, inv_rms, sum_out, norm_out});
  });
}
ACLNN_SECOND_STAGE(aclnnMhcPreSinkhorn)

ACL_ENTRY int aclnnMhcPreSinkhornBackwardGetWorkspaceSize(
    const aclTensor* grad_hin, const aclTensor* grad_h_post, const aclTensor* grad_h_res, const aclTensor* x,
    const aclTensor* phi, const aclTensor* alpha, const aclTensor* bias, const aclTensor* h_pre,
    const aclTensor* before_norm, const aclTensor* inv_rms, const aclTensor* sum_out, const aclTensor* norm_out,
    double hc_eps, const aclTensor* grad_x, const aclTensor* grad_phi, const aclTensor* grad_alpha,
    const aclTensor* grad_bias, uint64_t* bytes, aclOpExecutor** executor) {
  return plan("aclnnMhcPreSinkhornBackward", bytes, executor,
              {grad_hin, grad_h_post, grad_h_res, x, phi, alpha, bias, h_pre, before_norm, inv_rms, sum_out, norm_out,
               grad_x, grad_phi, grad_alpha, grad_bias},
              [&] {
                return backward({grad_hin, grad_h_post, grad_h_res, x, phi, alpha, bias, h_pre, before_norm, inv_rms,
                                 sum_out, norm_out},
                                hc_eps, *grad_x, *grad_phi, *grad_alpha, *grad_bias);
              });
}
ACLNN_SECOND_STAGE(aclnnMhcPreSinkhornBackward)
