// What the paths of mhc_pre_sinkhorn and its gradient share: the calls, read and checked once. No arithmetic here.
// B batch, S sequence, N streams, C channels, K = N * C, M = N * N + 2 * N, I iterations.
#pragma once

#include <cstdint>

#include "kit/target.h"

namespace fusediff::builtin {

struct MhcSizes {
  int64_t batch, sequence, streams, channels, iterations;

  int64_t tokens() const { return batch * sequence; }
  int64_t width() const { return streams * channels; }               // K
  int64_t mixes() const { return streams * streams + 2 * streams; }  // M
};

// REJECTED unless x is [B, S, N, C] with N and C at least 1, and iterations is at least 1.
MhcSizes read_mhc_sizes(const kit::Call& call, int64_t iterations);

// Shapes of the tensors that the forward writes and the backward reads again, the same in both.
void check_mhc_saved(const MhcSizes& sizes, const kit::Tensor& h_pre, const kit::Tensor& hc_before_norm,
                     const kit::Tensor& inv_rms, const kit::Tensor& sum_out, const kit::Tensor& norm_out);

// T: dtype of x; A: dtype of everything else.
template <class T, class A = kit::Compute<T>>
struct MhcForward {
  MhcSizes sizes;
  A hc_eps, norm_eps;
  kit::View<const T, 4> x;
  kit::View<const A, 2> phi;
  kit::View<const A, 1> alpha, bias;
  kit::View<T, 3> hin;
  kit::View<A, 3> h_post;
  kit::View<A, 4> h_res;
  kit::View<A, 3> h_pre, hc_before_norm, inv_rms;  // from here on false where not wanted
  kit::View<A, 4> sum_out;
  kit::View<A, 5> norm_out;
};

template <class T, class A = kit::Compute<T>>
struct MhcBackward {
  MhcSizes sizes;
  A hc_eps;
  kit::View<const T, 3> grad_hin;
  kit::View<const A, 3> grad_h_post;
  kit::View<const A, 4> grad_h_res;
  kit::View<const T, 4> x;
  kit::View<const A, 2> phi;
  kit::View<const A, 1> alpha, bias;
  kit::View<const A, 3> h_pre, hc_before_norm, inv_rms;
  kit::View<const A, 4> sum_out;
  kit::View<const A, 5> norm_out;
  kit::View<T, 4> grad_x;
  kit::View<A, 2> grad_phi;
  kit::View<A, 1> grad_alpha, grad_bias;
};

template <class T>
MhcForward<T> read_mhc_forward(const kit::Call& call) {
  using A = kit::Compute<T>;
  MhcForward<T> f{};
  f.sizes = read_mhc_sizes(call, call.integer("num_iters"));
  f.hc_eps = static_cast<A>(call.real("hc_eps"));
  f.norm_eps = static_cast<A>(call.real("norm_eps"));
  const int64_t batch = f.sizes.batch, sequence = f.sizes.sequence, streams = f.sizes.streams;
  call.input("phi").require_shape({f.sizes.mixes(), f.sizes.width()});
  call.input("alpha").require_shape({3});
  call.input("bias").require_shape({f.sizes.mixes()});
  call.output("hin").require_shape({batch, sequence, f.sizes.channels});
  call.output("h_post").require_shape({batch, sequence, streams});
  call.output("h_res").require_shape({batch, sequence, streams, streams});
  check_mhc_saved(f.sizes, call.output("h_pre"), call.output("hc_before_norm"), call.output("inv_rms"),
                  call.output("sum_out"), call.output("norm_out"));
  f.x = call.input("x").view<const T, 4>();
  f.phi = call.input("phi").view<const A, 2>();
  f.alpha = call.input("alpha").view<const A, 1>();
  f.bias = call.input("bias").view<const A, 1>();
  f.hin = call.output("hin").view<T, 3>();
  f.h_post = call.output("h_post").view<A, 3>();
  f.h_res = call.output("h_res").view<A, 4>();
  f.h_pre = call.output("h_pre").optional_view<A, 3>();
  f.hc_before_norm = call.output("hc_before_norm").optional_view<A, 3>();
  f.inv_rms = call.output("inv_rms").optional_view<A, 3>();
  f.sum_out = call.output("sum_out").optional_view<A, 4>();
  f.norm_out = call.output("norm_out").optional_view<A, 5>();
  return f;
}

template <class T>
MhcBackward<T> read_mhc_backward(const kit::Call& call) {
  using A = kit::Compute<T>;
  MhcBackward<T> b{};
  b.norm_out = call.input("norm_out").view<const A, 5>();
  b.sizes = read_mhc_sizes(call, b.norm_out.shape[0] / 2);
  b.hc_eps = static_cast<A>(call.real("hc_eps"));
  const int64_t batch = b.sizes.batch, sequence = b.sizes.sequence, streams = b.sizes.streams;
  call.input("grad_hin").require_shape({batch, sequence, b.sizes.channels});
  call.input("grad_h_post").require_shape({batch, sequence, streams});
  call.input("grad_h_res").require_shape({batch, sequence, streams, streams});
  call.input("phi").require_shape({b.sizes.mixes(), b.sizes.width()});
  call.input("alpha").require_shape({3});
  call.input("bias").require_shape({b.sizes.mixes()});
  check_mhc_saved(b.sizes, call.input("h_pre"), call.input("hc_before_norm"), call.input("inv_rms"),
                  call.input("sum_out"), call.input("norm_out"));
  call.output("grad_x").require_shape({batch, sequence, streams, b.sizes.channels});
  call.output("grad_phi").require_shape({b.sizes.mixes(), b.sizes.width()});
  call.output("grad_alpha").require_shape({3});
  call.output("grad_bias").require_shape({b.sizes.mixes()});
  b.grad_hin = call.input("grad_hin").view<const T, 3>();
  b.grad_h_post = call.input("grad_h_post").view<const A, 3>();
  b.grad_h_res = call.input("grad_h_res").view<const A, 4>();
  b.x = call.input("x").view<const T, 4>();
  b.phi = call.input("phi").view<const A, 2>();
  b.alpha = call.input("alpha").view<const A, 1>();
  b.bias = call.input("bias").view<const A, 1>();
  b.h_pre = call.input("h_pre").view<const A, 3>();
  b.hc_before_norm = call.input("hc_before_norm").view<const A, 3>();
  b.inv_rms = call.input("inv_rms").view<const A, 3>();
  b.sum_out = call.input("sum_out").view<const A, 4>();
  b.grad_x = call.output("grad_x").view<T, 4>();
  b.grad_phi = call.output("grad_phi").view<A, 2>();
  b.grad_alpha = call.output("grad_alpha").view<A, 1>();
  b.grad_bias = call.output("grad_bias").view<A, 1>();
  return b;
}

void run_mhc_fused(const kit::Call& call);
size_t mhc_fused_workspace(const kit::Call& call);
void run_mhc_unfused(const kit::Call& call);
size_t mhc_unfused_workspace(const kit::Call& call);
void run_mhc_grad_fused(const kit::Call& call);
size_t mhc_grad_fused_workspace(const kit::Call& call);
void run_mhc_grad_unfused(const kit::Call& call);
size_t mhc_grad_unfused_workspace(const kit::Call& call);

}  // namespace fusediff::builtin
