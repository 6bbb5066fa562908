// The calls of every operator, read and checked on the host by the built-in operators' own rules. The values of tensors
// are not read here: they lie in device memory.
#include "builtin/mhc_pre_sinkhorn.h"
#include "builtin/moe_gating_topk.h"
#include "cuda/elementwise.h"
#include "cuda/gating.h"
#include "cuda/mhc.h"
#include "cuda/permute.h"
#include "cuda/unpermute.h"
#include "cuda/unpermute_grad.h"

namespace fusediff::cuda {

template <class T>
Elementwise<T> read_elementwise(const kit::Call& call, const char* a, const char* b) {
  Elementwise<T> e{};
  const kit::Tensor y = call.output("y");
  e.y = y.view<T, 2>();
  call.input(a).require_shape({y.size(0), y.size(1)});
  e.a = call.input(a).view<const T, 2>();
  if (b != nullptr) {
    call.input(b).require_shape({y.size(0), y.size(1)});
    e.b = call.input(b).view<const T, 2>();
  }
  e.count = y.count();
  e.columns = y.size(1);
  return e;
}

template <class T>
Gating<T> read_gating(const kit::Call& call) {
  const builtin::Gating<T> from = builtin::read_gating<T>(call);
  Gating<T> g{};
  g.tokens = from.tokens;
  g.experts = from.experts;
  g.k = from.k;
  g.groups = from.groups;
  g.kept_groups = from.kept_groups;
  g.group_size = from.experts / from.groups;
  g.softmax = from.softmax;
  g.divide = from.divide;
  g.two = from.group_mode == 1;
  g.scale = from.scale;
  g.eps = from.eps;
  g.x = from.x;
  g.bias = from.bias;
  g.norm_out = from.norm_out;
  g.rank = from.rank;
  g.expert_idx = from.expert_idx;
  g.y = from.y;
  return g;
}

// REJECTED where the shapes break a rule. The entries are not read.
RowMap read_row_map(const kit::Call& call, int64_t tokens) {
  const kit::View<const int32_t, 2> map = call.input("row_id_map").view<const int32_t, 2>();
  kit::require(map.shape[1] == tokens, "row_id_map has ", map.shape[1], " columns, the call has ", tokens, " tokens");
  kit::require(map.shape[0] >= 1 && map.shape[0] <= kMaxPicks, "row_id_map must have 1 to 128 picks, not ",
               map.shape[0]);
  return map;
}

template <class T>
Probs<T> read_probs(const kit::Call& call, int64_t tokens, int64_t picks) {
  call.input("probs").require_shape({tokens, picks});
  return call.input("probs").optional_view<const Compute<T>, 2>();
}

// The attribute `compute`: true is storage.
bool read_storage(const kit::Call& call) {
  const std::string_view compute = call.text("compute");
  kit::require(compute == "f32" || compute == "storage", "compute must be f32 or storage, not ", compute);
  return compute == "storage";
}

// REJECTED where a rule of the schema is broken.
template <class T>
Permute<T> read_permute(const kit::Call& call) {
  Permute<T> p{};
  p.from = call.input("tokens").view<const T, 2>();
  p.indices = call.input("indices").view<const int32_t, 2>();
  p.tokens = p.from.shape[0];
  p.columns = p.from.shape[1];
  p.picks = p.indices.shape[1];
  p.rows = call.integer("num_out_tokens");
  kit::require(p.picks >= 1 && p.picks <= kMaxPicks, "indices must have 1 to 128 picks, not ", p.picks);
  kit::require(p.rows >= 0 && p.rows <= p.count(), "num_out_tokens must be 0 to ", p.count(), ", not ", p.rows);
  call.input("indices").require_shape({p.tokens, p.picks});
  call.output("row_id_map").require_shape({p.picks, p.tokens});
  call.output("out").require_shape({p.rows, p.columns});
  p.map = call.output("row_id_map").view<int32_t, 2>();
  p.out = call.output("out").view<T, 2>();
  return p;
}

// REJECTED where the shapes do not fit each other. `in`, `out`: what the tensors of the call are named.
template <class T>
SumOverPicks<T> read_sum(const kit::Call& call, const char* in, const char* out, bool with_probs) {
  SumOverPicks<T> u{};
  u.in = call.input(in).view<const T, 2>();
  u.out = call.output(out).view<T, 2>();
  u.tokens = u.out.shape[0];
  u.rows = u.in.shape[0];
  u.columns = u.in.shape[1];
  kit::require(u.columns == u.out.shape[1], in, " and ", out, " differ in their last dimension");
  u.map = read_row_map(call, u.tokens);
  u.picks = u.map.shape[0];
  u.storage = read_storage(call);
  if (with_probs) {
    u.probs = read_probs<T>(call, u.tokens, u.picks);
  }
  return u;
}

template <class T>
SumOverPicks<T> read_permute_grad(const kit::Call& call) {
  return read_sum<T>(call, "grad_out", "grad_tokens", false);
}

template <class T>
SumOverPicks<T> read_unpermute(const kit::Call& call) {
  return read_sum<T>(call, "in", "out", true);
}

// REJECTED where the shapes do not fit each other.
template <class T>
UnpermuteGrad<T> read_unpermute_grad(const kit::Call& call) {
  UnpermuteGrad<T> g{};
  g.grad_out = call.input("grad_out").view<const T, 2>();
  g.in = call.input("in").view<const T, 2>();
  g.tokens = g.grad_out.shape[0];
  g.rows = g.in.shape[0];
  g.columns = g.in.shape[1];
  kit::require(g.columns == g.grad_out.shape[1], "in and grad_out differ in their last dimension");
  g.map = read_row_map(call, g.tokens);
  g.picks = g.map.shape[0];
  g.probs = read_probs<T>(call, g.tokens, g.picks);
  call.output("grad_in").require_shape({g.rows, g.columns});
  call.output("grad_probs").require_shape({g.tokens, g.picks});
  g.grad_in = call.output("grad_in").view<T, 2>();
  g.grad_probs = call.output("grad_probs").optional_view<Compute<T>, 2>();
  return g;
}

MhcSizes sizes_of(const builtin::MhcSizes& s) {
  return {s.sequence, s.streams, s.channels, s.iterations, s.tokens(), s.width(), s.mixes()};
}

template <class T>
MhcForward<T> read_mhc_forward(const kit::Call& call) {
  const builtin::MhcForward<T> f = builtin::read_mhc_forward<T>(call);
  return {sizes_of(f.sizes), f.hc_eps, f.norm_eps,       f.x,       f.phi,     f.alpha,   f.bias, f.hin, f.h_post,
          f.h_res,           f.h_pre,  f.hc_before_norm, f.inv_rms, f.sum_out, f.norm_out};
}

template <class T>
MhcBackward<T> read_mhc_backward(const kit::Call& call) {
  const builtin::MhcBackward<T> f = builtin::read_mhc_backward<T>(call);
  return {sizes_of(f.sizes), f.hc_eps,   f.grad_hin,   f.grad_h_post,    f.grad_h_res, f.x,       f.phi,
          f.alpha,           f.bias,     f.h_pre,      f.hc_before_norm, f.inv_rms,    f.sum_out, f.norm_out,
          f.grad_x,          f.grad_phi, f.grad_alpha, f.grad_bias};
}

#define FUSEDIFF_CUDA_ANY(T)                                                               \
  template Elementwise<T> read_elementwise<T>(const kit::Call&, const char*, const char*); \
  template Permute<T> read_permute<T>(const kit::Call&);                                   \
  template SumOverPicks<T> read_permute_grad<T>(const kit::Call&);                         \
  template SumOverPicks<T> read_unpermute<T>(const kit::Call&);                            \
  template UnpermuteGrad<T> read_unpermute_grad<T>(const kit::Call&)
FUSEDIFF_CUDA_ANY(float);
FUSEDIFF_CUDA_ANY(double);
FUSEDIFF_CUDA_ANY(Half);
FUSEDIFF_CUDA_ANY(BFloat16);
FUSEDIFF_CUDA_ANY(F8E4M3);
FUSEDIFF_CUDA_ANY(F8E5M2);
template Gating<float> read_gating<float>(const kit::Call&);
template Gating<double> read_gating<double>(const kit::Call&);
template Gating<Half> read_gating<Half>(const kit::Call&);
template Gating<BFloat16> read_gating<BFloat16>(const kit::Call&);
template MhcForward<double> read_mhc_forward<double>(const kit::Call&);
template MhcBackward<double> read_mhc_backward<double>(const kit::Call&);
template MhcForward<Half> read_mhc_forward<Half>(const kit::Call&);
template MhcBackward<Half> read_mhc_backward<Half>(const kit::Call&);
template MhcForward<BFloat16> read_mhc_forward<BFloat16>(const kit::Call&);
template MhcBackward<BFloat16> read_mhc_backward<BFloat16>(const kit::Call&);

}  // namespace fusediff::cuda
