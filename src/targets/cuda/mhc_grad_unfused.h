// mhc_pre_sinkhorn_grad as small kernels: each step of the forward, backwards, as one pass over its whole tensor; then
// the two matrix products and the sums over tokens.
#pragma once

#include "cuda/mhc.h"

namespace fusediff::cuda {

template <class A>
struct MhcGradBuffers {
  A *x, *product, *grad_x;     // [tokens, K]
  A *partial, *g, *d, *post;   // [tokens, N, 16], [tokens, N, N], [tokens, N], [tokens, N]
  A *mix, *gz, *g_mix, *g_hc;  // [tokens, M]
  A *factor, *g_inv, *alpha;   // [tokens], [tokens], [tokens, 3]

  MhcGradBuffers(kit::Carver& c, const MhcSizes& s)
      : x(c.take<A>(s.tokens * s.width)),
        product(c.take<A>(s.tokens * s.width)),
        grad_x(c.take<A>(s.tokens * s.width)),
        partial(c.take<A>(s.tokens * s.streams * kLanes)),
        g(c.take<A>(s.tokens * s.square())),
        d(c.take<A>(s.tokens * s.streams)),
        post(c.take<A>(s.tokens * s.streams)),
        mix(c.take<A>(s.tokens * s.mixes)),
        gz(c.take<A>(s.tokens * s.mixes)),
        g_mix(c.take<A>(s.tokens * s.mixes)),
        g_hc(c.take<A>(s.tokens * s.mixes)),
        factor(c.take<A>(s.tokens)),
        g_inv(c.take<A>(s.tokens)),
        alpha(c.take<A>(s.tokens * 3)) {}
};

// d = row or column sums of g * (norm_out - less); then g -= d.
template <class T, class A, class Stream>
void subtract_sums(Stream& stream, const MhcBackward<T>& f, const MhcGradBuffers<A>& b, int64_t half, A less) {
  const int64_t n = f.s.streams;
  const bool by_rows = half % 2 == 0;
  stream.elements(
      f.s.tokens * n, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t t = i / n, line = i % n;
        A d = 0;
        for (int64_t j = 0; j < n; ++j) {
          const int64_t row = by_rows ? line : j, column = by_rows ? j : line;
          d += b.g[(t * n + row) * n + column] * (f.norm(half, t, row, column) - less);
        }
        b.d[i] = d;
      });
  stream.elements(
      f.s.tokens * n * n, FUSEDIFF_KERNEL(int64_t i) { b.g[i] -= b.d[by_rows ? i / n : i / (n * n) * n + i % n]; });
}

// The last N * N columns of gz.
template <class T, class A, class Stream>
void undo_sinkhorn_steps(Stream& stream, const MhcBackward<T>& f, const MhcGradBuffers<A>& b) {
  const MhcSizes s = f.s;
  const int64_t n = s.streams, all = s.tokens * s.square();
  stream.elements(
      all, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t t = i / s.square();
        b.g[i] = f.grad_h_res(t / s.sequence, t % s.sequence, i / n % n, i % n);
      });
  for (int64_t half = 2 * s.iterations - 1; half > 0; --half) {
    subtract_sums(stream, f, b, half, A(0));
    stream.elements(
        all, FUSEDIFF_KERNEL(int64_t i) { b.g[i] /= f.sum(half, i / s.square(), half % 2 == 0 ? i / n % n : i % n); });
  }
  subtract_sums(stream, f, b, 0, f.hc_eps);
  stream.elements(
      all, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t t = i / s.square();
        b.gz[t * s.mixes + 2 * n + i % s.square()] = b.g[i] * (f.norm(0, t, i / n % n, i % n) - f.hc_eps);
      });
}

// The first 2 * N columns of gz.
template <class T, class A, class Stream>
void undo_gate_steps(Stream& stream, const MhcBackward<T>& f, const MhcGradBuffers<A>& b) {
  const MhcSizes s = f.s;
  const int64_t n = s.streams;
  stream.elements(
      s.tokens * s.width,
      FUSEDIFF_KERNEL(int64_t i) { b.product[i] = f.gradient(i / s.width, i % s.channels) * b.x[i]; });
  stream.elements(
      s.tokens * n * kLanes, FUSEDIFF_KERNEL(int64_t task) {
        A sum = 0;
        for (int64_t c = task % kLanes; c < s.channels; c += kLanes) {
          sum += b.product[task / kLanes * s.channels + c];
        }
        b.partial[task] = sum;
      });
  stream.elements(
      s.tokens * n, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t t = i / n;
        const A gate = f.h_pre(t / s.sequence, t % s.sequence, i % n) - f.hc_eps;
        b.gz[t * s.mixes + i % n] = fold_lanes(b.partial + i * kLanes) * gate * (A(1) - gate);
      });
  stream.elements(
      s.tokens * n, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t m = n + i % n;
        b.post[i] = f.alpha(1) * b.mix[i / n * s.mixes + m] + f.bias(m);
      });
  stream.elements(
      s.tokens * n, FUSEDIFF_KERNEL(int64_t i) { b.post[i] = sigmoid(b.post[i]); });
  stream.elements(
      s.tokens * n, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t t = i / n;
        const A h = A(2) * b.post[i];
        const A gradient = f.grad_h_post(t / s.sequence, t % s.sequence, i % n);
        b.gz[t * s.mixes + n + i % n] = gradient * h * (A(1) - h * A(0.5));
      });
}

template <class T, class A, class Stream>
void sums_over_tokens(Stream& stream, const MhcBackward<T>& f, const MhcGradBuffers<A>& b) {
  const MhcSizes s = f.s;
  stream.elements(
      s.mixes, FUSEDIFF_KERNEL(int64_t m) {
        A sum = 0;
        for (int64_t t = 0; t < s.tokens; ++t) {
          sum += b.gz[t * s.mixes + m];
        }
        f.grad_bias(m) = sum;
      });
  stream.elements(
      s.tokens * 3, FUSEDIFF_KERNEL(int64_t i) {
        A sum = 0;
        for (int64_t m = 0; m < s.mixes; ++m) {
          if (s.part_of(m) == i % 3) {
            sum += b.gz[i / 3 * s.mixes + m] * b.mix[i / 3 * s.mixes + m];
          }
        }
        b.alpha[i] = sum;
      });
  stream.elements(
      3, FUSEDIFF_KERNEL(int64_t part) {
        A sum = 0;
        for (int64_t t = 0; t < s.tokens; ++t) {
          sum += b.alpha[t * 3 + part];
        }
        f.grad_alpha(part) = sum;
      });
}

// g_hc, and factor = g_inv * inv_rms^3 / K.
template <class T, class A, class Stream>
void undo_norm(Stream& stream, const MhcBackward<T>& f, const MhcGradBuffers<A>& b) {
  const MhcSizes s = f.s;
  const int64_t all = s.tokens * s.mixes;
  stream.elements(
      all, FUSEDIFF_KERNEL(int64_t i) { b.g_mix[i] = f.alpha(s.part_of(i % s.mixes)) * b.gz[i]; });
  stream.elements(
      all, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t t = i / s.mixes;
        b.g_hc[i] = b.g_mix[i] * f.inv_rms(t / s.sequence, t % s.sequence, 0);
      });
  stream.elements(
      s.tokens, FUSEDIFF_KERNEL(int64_t t) {
        A sum = 0;
        for (int64_t m = 0; m < s.mixes; ++m) {
          sum += b.g_mix[t * s.mixes + m] * f.hc_before_norm(t / s.sequence, t % s.sequence, m);
        }
        b.g_inv[t] = sum;
      });
  stream.elements(
      s.tokens, FUSEDIFF_KERNEL(int64_t t) {
        const A inv = f.inv_rms(t / s.sequence, t % s.sequence, 0);
        b.factor[t] = b.g_inv[t] * (inv * inv * inv) / static_cast<A>(s.width);
      });
}

template <class T, class A, class Stream>
void products(Stream& stream, const MhcBackward<T>& f, const MhcGradBuffers<A>& b) {
  const MhcSizes s = f.s;
  stream.elements(
      s.mixes * s.width, FUSEDIFF_KERNEL(int64_t i) {
        A sum = 0;
        for (int64_t t = 0; t < s.tokens; ++t) {
          sum += b.g_hc[t * s.mixes + i / s.width] * b.x[t * s.width + i % s.width];
        }
        f.grad_phi(i / s.width, i % s.width) = sum;
      });
  const int64_t all = s.tokens * s.width;
  stream.elements(
      all, FUSEDIFF_KERNEL(int64_t i) {
        A sum = 0;
        for (int64_t m = 0; m < s.mixes; ++m) {
          sum += b.g_hc[i / s.width * s.mixes + m] * f.phi(m, i % s.width);
        }
        b.product[i] = sum;
      });
  stream.elements(
      all, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t t = i / s.width;
        const A h_pre = f.h_pre(t / s.sequence, t % s.sequence, i % s.width / s.channels);
        b.grad_x[i] = f.gradient(t, i % s.channels) * h_pre;
      });
  stream.elements(
      all, FUSEDIFF_KERNEL(int64_t i) { b.grad_x[i] += b.product[i]; });
  stream.elements(
      all, FUSEDIFF_KERNEL(int64_t i) { b.grad_x[i] -= b.x[i] * b.factor[i / s.width]; });
  stream.elements(
      all, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t t = i / s.width, n = i % s.width / s.channels;
        f.grad_x(t / s.sequence, t % s.sequence, n, i % s.channels) = as_dtype<T>(b.grad_x[i]);
      });
}

template <class T, class Stream, class A = Compute<T>>
void mhc_grad_unfused(Stream& stream, const kit::Call& call) {
  const MhcBackward<T> f = read_mhc_backward<T>(call);
  kit::Carver carver = call.workspace();
  const MhcGradBuffers<A> b(carver, f.s);
  const MhcSizes s = f.s;
  stream.elements(
      s.tokens * s.width, FUSEDIFF_KERNEL(int64_t i) { b.x[i] = f.value(i / s.width, i % s.width); });
  stream.elements(
      s.tokens * s.mixes, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t t = i / s.mixes, at = t / s.sequence, in = t % s.sequence;
        b.mix[i] = f.hc_before_norm(at, in, i % s.mixes) * f.inv_rms(at, in, 0);
      });
  undo_sinkhorn_steps(stream, f, b);
  undo_gate_steps(stream, f, b);
  sums_over_tokens(stream, f, b);
  undo_norm(stream, f, b);
  products(stream, f, b);
}

template <class T>
size_t mhc_grad_unfused_workspace(const kit::Call& call) {
  kit::Carver carver;
  MhcGradBuffers<Compute<T>>(carver, read_mhc_backward<T>(call).s);
  return carver.bytes();
}

}  // namespace fusediff::cuda
