// mhc_pre_sinkhorn_grad in four kernels: a block of threads for each token leaves its row of g_hc, its factor and its
// parts of the sums; then the sums over tokens, grad_phi and grad_x, a thread for each element.
#pragma once

#include "cuda/mhc.h"

namespace fusediff::cuda {

// What the first kernel leaves, in the workspace.
template <class A>
struct MhcGradRows {
  A *gz, *g_hc, *factor, *alpha;  // [tokens, M], [tokens, M], [tokens], [tokens, 3]

  MhcGradRows(kit::Carver& c, const MhcSizes& s)
      : gz(c.take<A>(s.tokens * s.mixes)),
        g_hc(c.take<A>(s.tokens * s.mixes)),
        factor(c.take<A>(s.tokens)),
        alpha(c.take<A>(s.tokens * 3)) {}
};

template <class A>
struct MhcGradBlock {
  A *partial, *g, *d;  // [N, 16], [N, N], [N]

  static size_t bytes(const MhcSizes& s) {
    return static_cast<size_t>(s.streams * kLanes + s.square() + s.streams) * sizeof(A);
  }

  FUSEDIFF_HD MhcGradBlock(unsigned char* memory, const MhcSizes& s) {
    partial = reinterpret_cast<A*>(memory);
    g = partial + s.streams * kLanes;
    d = g + s.square();
  }
};

// gz of the first 2 * N columns.
template <class T, class A, class Block>
FUSEDIFF_HD void undo_gates(const Block& block, const MhcBackward<T>& f, const MhcGradBlock<A>& b, A* gz, int64_t t) {
  const int64_t at = t / f.s.sequence, in = t % f.s.sequence, n = f.s.streams;
  block.each([&](int lane) {
    for (int64_t task = lane; task < n * kLanes; task += kThreads) {
      A sum = 0;
      for (int64_t c = task % kLanes; c < f.s.channels; c += kLanes) {
        sum += f.gradient(t, c) * f.value(t, task / kLanes * f.s.channels + c);
      }
      b.partial[task] = sum;
    }
  });
  block.each([&](int lane) {
    for (int64_t i = lane; i < n; i += kThreads) {
      const A gate = f.h_pre(at, in, i) - f.hc_eps;
      gz[i] = fold_lanes(b.partial + i * kLanes) * gate * (A(1) - gate);
      const A mix = f.hc_before_norm(at, in, n + i) * f.inv_rms(at, in, 0);
      const A h = A(2) * sigmoid(f.alpha(1) * mix + f.bias(n + i));
      gz[n + i] = f.grad_h_post(at, in, i) * h * (A(1) - h * A(0.5));
    }
  });
}

// Half an iteration backwards: g = (g - d) / sum, d the row or column sums of g * norm_out.
template <class T, class A, class Block>
FUSEDIFF_HD void undo_half(const Block& block, const MhcBackward<T>& f, const MhcGradBlock<A>& b, int64_t t,
                           int64_t half) {
  const int64_t n = f.s.streams;
  const bool by_rows = half % 2 == 0;
  block.each([&](int lane) {
    for (int64_t i = lane; i < n; i += kThreads) {
      A d = 0;
      for (int64_t j = 0; j < n; ++j) {
        d += by_rows ? b.g[i * n + j] * f.norm(half, t, i, j) : b.g[j * n + i] * f.norm(half, t, j, i);
      }
      b.d[i] = d;
    }
  });
  block.each([&](int lane) {
    for (int64_t i = lane; i < n * n; i += kThreads) {
      const int64_t line = by_rows ? i / n : i % n;
      b.g[i] = (b.g[i] - b.d[line]) / f.sum(half, t, line);
    }
  });
}

// gz of the last N * N columns.
template <class T, class A, class Block>
FUSEDIFF_HD void undo_sinkhorn(const Block& block, const MhcBackward<T>& f, const MhcGradBlock<A>& b, A* gz,
                               int64_t t) {
  const int64_t at = t / f.s.sequence, in = t % f.s.sequence, n = f.s.streams;
  block.each([&](int lane) {
    for (int64_t i = lane; i < n * n; i += kThreads) {
      b.g[i] = f.grad_h_res(at, in, i / n, i % n);
    }
  });
  for (int64_t half = 2 * f.s.iterations - 1; half > 0; --half) {
    undo_half(block, f, b, t, half);
  }
  block.each([&](int lane) {
    for (int64_t i = lane; i < n; i += kThreads) {
      A d = 0;
      for (int64_t j = 0; j < n; ++j) {
        d += b.g[i * n + j] * (f.norm(0, t, i, j) - f.hc_eps);
      }
      for (int64_t j = 0; j < n; ++j) {
        gz[2 * n + i * n + j] = (b.g[i * n + j] - d) * (f.norm(0, t, i, j) - f.hc_eps);
      }
    }
  });
}

// The token's g_hc and factor, and its part of grad_alpha.
template <class T, class A>
FUSEDIFF_HD void reduce_token(const MhcBackward<T>& f, const MhcGradRows<A>& r, int64_t t) {
  const int64_t at = t / f.s.sequence, in = t % f.s.sequence;
  const A inv = f.inv_rms(at, in, 0);
  A g_inv = 0;
  A parts[3] = {0, 0, 0};
  for (int64_t m = 0; m < f.s.mixes; ++m) {
    const A gz = r.gz[t * f.s.mixes + m];
    const A hc = f.hc_before_norm(at, in, m);
    const int64_t part = f.s.part_of(m);
    const A g_mix = f.alpha(part) * gz;
    parts[part] += gz * (hc * inv);
    r.g_hc[t * f.s.mixes + m] = g_mix * inv;
    g_inv += g_mix * hc;
  }
  for (int64_t part = 0; part < 3; ++part) {
    r.alpha[t * 3 + part] = parts[part];
  }
  r.factor[t] = g_inv * (inv * inv * inv) / static_cast<A>(f.s.width);
}

template <class T, class A, class Stream>
void sums_and_products(Stream& stream, const MhcBackward<T>& f, const MhcGradRows<A>& r) {
  const MhcSizes s = f.s;
  stream.elements(
      s.mixes + 3, FUSEDIFF_KERNEL(int64_t m) {
        A sum = 0;
        for (int64_t t = 0; t < s.tokens; ++t) {
          sum += m < s.mixes ? r.gz[t * s.mixes + m] : r.alpha[t * 3 + m - s.mixes];
        }
        if (m < s.mixes) {
          f.grad_bias(m) = sum;
        } else {
          f.grad_alpha(m - s.mixes) = sum;
        }
      });
  stream.elements(
      s.mixes * s.width, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t m = i / s.width, column = i % s.width;
        A sum = 0;
        for (int64_t t = 0; t < s.tokens; ++t) {
          sum += r.g_hc[t * s.mixes + m] * f.value(t, column);
        }
        f.grad_phi(m, column) = sum;
      });
  stream.elements(
      s.tokens * s.width, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t t = i / s.width, column = i % s.width, n = column / s.channels, c = column % s.channels;
        const int64_t at = t / s.sequence, in = t % s.sequence;
        A sum = 0;
        for (int64_t m = 0; m < s.mixes; ++m) {
          sum += r.g_hc[t * s.mixes + m] * f.phi(m, column);
        }
        const A through_hin = f.gradient(t, c) * f.h_pre(at, in, n);
        f.grad_x(at, in, n, c) = as_dtype<T>((through_hin + sum) - f.value(t, column) * r.factor[t]);
      });
}

template <class T, class Stream, class A = Compute<T>>
void mhc_grad_fused(Stream& stream, const kit::Call& call) {
  using Block = typename Stream::Block;
  const MhcBackward<T> f = read_mhc_backward<T>(call);
  kit::Carver carver = call.workspace();
  const MhcGradRows<A> r(carver, f.s);
  const size_t bytes = MhcGradBlock<A>::bytes(f.s);
  if (bytes > Stream::kSharedBytes) {
    kit::unsupported("a token needs ", static_cast<int64_t>(bytes), " bytes of shared memory");
  }
  stream.blocks(
      f.s.tokens, bytes, FUSEDIFF_KERNEL(const Block& block, int64_t t) {
        const MhcGradBlock<A> b(block.shared(), f.s);
        undo_gates(block, f, b, r.gz + t * f.s.mixes, t);
        undo_sinkhorn(block, f, b, r.gz + t * f.s.mixes, t);
        block.each([&](int lane) {
          if (lane == 0) {
            reduce_token(f, r, t);
          }
        });
      });
  sums_and_products(stream, f, r);
}

template <class T>
size_t mhc_grad_fused_workspace(const kit::Call& call) {
  kit::Carver carver;
  MhcGradRows<Compute<T>>(carver, read_mhc_backward<T>(call).s);
  return carver.bytes();
}

}  // namespace fusediff::cuda
