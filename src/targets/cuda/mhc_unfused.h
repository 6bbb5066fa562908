// mhc_pre_sinkhorn as small kernels: cast, square, mean, rsqrt, matmul, scale, affine, sigmoid, softmax, a sum and a
// division for each half iteration, the weighted sum of streams, and the copies to the outputs.
#pragma once

#include "cuda/mhc.h"

namespace fusediff::cuda {

template <class A>
struct MhcBuffers {
  A *x, *product;           // [tokens, K]
  A *partial, *hc, *mix;    // [tokens, M, 16], [tokens, M], [tokens, M]
  A *inv_rms, *pre, *post;  // [tokens], [tokens, N], [tokens, N]
  A *res, *sums;            // [tokens, N, N], [tokens, N]

  MhcBuffers(kit::Carver& c, const MhcSizes& s)
      : x(c.take<A>(s.tokens * s.width)),
        product(c.take<A>(s.tokens * s.width)),
        partial(c.take<A>(s.tokens * s.mixes * kLanes)),
        hc(c.take<A>(s.tokens * s.mixes)),
        mix(c.take<A>(s.tokens * s.mixes)),
        inv_rms(c.take<A>(s.tokens)),
        pre(c.take<A>(s.tokens * s.streams)),
        post(c.take<A>(s.tokens * s.streams)),
        res(c.take<A>(s.tokens * s.square())),
        sums(c.take<A>(s.tokens * s.streams)) {}
};

template <class T, class A, class Stream>
void norms_and_mixes(Stream& stream, const MhcForward<T>& f, const MhcBuffers<A>& b) {
  const MhcSizes s = f.s;
  const int64_t all = s.tokens * s.width;
  stream.elements(
      all, FUSEDIFF_KERNEL(int64_t i) { b.x[i] = f.value(i / s.width, i % s.width); });
  stream.elements(
      all, FUSEDIFF_KERNEL(int64_t i) { b.product[i] = b.x[i] * b.x[i]; });
  stream.elements(
      s.tokens * kLanes, FUSEDIFF_KERNEL(int64_t task) {
        A sum = 0;
        for (int64_t i = task % kLanes; i < s.width; i += kLanes) {
          sum += b.product[task / kLanes * s.width + i];
        }
        b.partial[task] = sum;
      });
  stream.elements(
      s.tokens, FUSEDIFF_KERNEL(int64_t t) {
        const A mean = fold_lanes(b.partial + t * kLanes) / static_cast<A>(s.width);
        b.inv_rms[t] = inverse_root(mean + f.norm_eps);
      });
  stream.elements(
      s.tokens * s.mixes * kLanes, FUSEDIFF_KERNEL(int64_t task) {
        const int64_t row = task / kLanes;
        A sum = 0;
        for (int64_t i = task % kLanes; i < s.width; i += kLanes) {
          sum += b.x[row / s.mixes * s.width + i] * f.phi(row % s.mixes, i);
        }
        b.partial[task] = sum;
      });
  stream.elements(
      s.tokens * s.mixes, FUSEDIFF_KERNEL(int64_t i) { b.hc[i] = fold_lanes(b.partial + i * kLanes); });
  stream.elements(
      s.tokens * s.mixes, FUSEDIFF_KERNEL(int64_t i) { b.mix[i] = b.hc[i] * b.inv_rms[i / s.mixes]; });
}

// to[t, j] = alpha[part] * mix[t, from + j] + bias[from + j] for j < count.
template <class T, class A, class Stream>
void affine(Stream& stream, const MhcForward<T>& f, const A* mix, int64_t part, int64_t from, int64_t count, A* to) {
  const int64_t mixes = f.s.mixes;
  stream.elements(
      f.s.tokens * count, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t m = from + i % count;
        to[i] = f.alpha(part) * mix[i / count * mixes + m] + f.bias(m);
      });
}

template <class T, class A, class Stream>
void gates(Stream& stream, const MhcForward<T>& f, const MhcBuffers<A>& b) {
  const int64_t n = f.s.streams, count = f.s.tokens * n;
  affine(stream, f, b.mix, 0, 0, n, b.pre);
  stream.elements(
      count, FUSEDIFF_KERNEL(int64_t i) { b.pre[i] = sigmoid(b.pre[i]); });
  stream.elements(
      count, FUSEDIFF_KERNEL(int64_t i) { b.pre[i] += f.hc_eps; });
  affine(stream, f, b.mix, 1, n, n, b.post);
  stream.elements(
      count, FUSEDIFF_KERNEL(int64_t i) { b.post[i] = sigmoid(b.post[i]); });
  stream.elements(
      count, FUSEDIFF_KERNEL(int64_t i) { b.post[i] *= A(2); });
  affine(stream, f, b.mix, 2, 2 * n, n * n, b.res);
}

template <class T, class A, class Stream>
void keep_half(Stream& stream, const MhcForward<T>& f, const MhcBuffers<A>& b, int64_t half) {
  const MhcSizes s = f.s;
  if (f.sum_out.present()) {
    stream.elements(
        s.tokens * s.streams, FUSEDIFF_KERNEL(int64_t i) {
          const int64_t t = i / s.streams;
          f.sum_out(half, t / s.sequence, t % s.sequence, i % s.streams) = b.sums[i];
        });
  }
  if (f.norm_out.present()) {
    stream.elements(
        s.tokens * s.square(), FUSEDIFF_KERNEL(int64_t i) {
          const int64_t t = i / s.square(), at = i % s.square();
          f.norm_out(half, t / s.sequence, t % s.sequence, at / s.streams, at % s.streams) = b.res[i];
        });
  }
}

// Sums of rows or columns plus hc_eps, then the division.
template <class T, class A, class Stream>
void divide_by_sums(Stream& stream, const MhcForward<T>& f, const MhcBuffers<A>& b, bool by_rows) {
  const int64_t n = f.s.streams;
  stream.elements(
      f.s.tokens * n, FUSEDIFF_KERNEL(int64_t i) {
        const A* first = by_rows ? b.res + i * n : b.res + i / n * n * n + i % n;
        A sum = 0;
        for (int64_t j = 0; j < n; ++j) {
          sum += first[by_rows ? j : j * n];
        }
        b.sums[i] = sum + f.hc_eps;
      });
  stream.elements(
      f.s.tokens * n * n,
      FUSEDIFF_KERNEL(int64_t i) { b.res[i] /= b.sums[by_rows ? i / n : i / (n * n) * n + i % n]; });
}

template <class T, class A, class Stream>
void sinkhorn(Stream& stream, const MhcForward<T>& f, const MhcBuffers<A>& b) {
  const int64_t n = f.s.streams;
  stream.elements(
      f.s.tokens * n, FUSEDIFF_KERNEL(int64_t row) { softmax_row(b.res + row * n, n, f.hc_eps, b.sums + row); });
  keep_half(stream, f, b, 0);
  for (int64_t half = 1; half < 2 * f.s.iterations; ++half) {
    divide_by_sums(stream, f, b, half % 2 == 0);
    keep_half(stream, f, b, half);
  }
}

template <class T, class A, class Stream>
void write_forward(Stream& stream, const MhcForward<T>& f, const MhcBuffers<A>& b) {
  const MhcSizes s = f.s;
  stream.elements(
      s.tokens * s.channels, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t t = i / s.channels, c = i % s.channels;
        A sum = 0;
        for (int64_t n = 0; n < s.streams; ++n) {
          sum += b.product[t * s.width + n * s.channels + c];
        }
        f.hin(t / s.sequence, t % s.sequence, c) = as_dtype<T>(sum);
      });
  stream.elements(
      s.tokens * s.square(), FUSEDIFF_KERNEL(int64_t i) {
        const int64_t t = i / s.square(), at = t / s.sequence, in = t % s.sequence, n = i % s.square();
        f.h_res(at, in, n / s.streams, n % s.streams) = b.res[i];
        if (n < s.streams) {
          f.h_post(at, in, n) = b.post[t * s.streams + n];
        }
        if (n < s.streams && f.h_pre.present()) {
          f.h_pre(at, in, n) = b.pre[t * s.streams + n];
        }
        if (n == 0 && f.inv_rms.present()) {
          f.inv_rms(at, in, 0) = b.inv_rms[t];
        }
      });
  if (f.hc_before_norm.present()) {
    stream.elements(
        s.tokens * s.mixes, FUSEDIFF_KERNEL(int64_t i) {
          const int64_t t = i / s.mixes;
          f.hc_before_norm(t / s.sequence, t % s.sequence, i % s.mixes) = b.hc[i];
        });
  }
}

template <class T, class Stream, class A = Compute<T>>
void mhc_unfused(Stream& stream, const kit::Call& call) {
  const MhcForward<T> f = read_mhc_forward<T>(call);
  kit::Carver carver = call.workspace();
  const MhcBuffers<A> b(carver, f.s);
  norms_and_mixes(stream, f, b);
  gates(stream, f, b);
  sinkhorn(stream, f, b);
  stream.elements(
      f.s.tokens * f.s.width, FUSEDIFF_KERNEL(int64_t i) { b.product[i] = b.x[i] * b.pre[i / f.s.channels]; });
  write_forward(stream, f, b);
}

template <class T>
size_t mhc_unfused_workspace(const kit::Call& call) {
  kit::Carver carver;
  MhcBuffers<Compute<T>>(carver, read_mhc_forward<T>(call).s);
  return carver.bytes();
}

}  // namespace fusediff::cuda
