// mhc_pre_sinkhorn in one kernel: a block of threads for each token. 16 threads sum each row of the matrix product, and
// the sum of squares as one row more; the N x N matrix stays in shared memory.
#pragma once

#include "cuda/mhc.h"

namespace fusediff::cuda {

template <class A>
struct MhcBlock {
  A *partial, *hc, *matrix, *sums, *pre, *inv;  // [M + 1, 16], [M], [N, N], [N], [N], [1]

  static size_t bytes(const MhcSizes& s) {
    return static_cast<size_t>((s.mixes + 1) * kLanes + s.mixes + s.square() + 2 * s.streams + 1) * sizeof(A);
  }

  FUSEDIFF_HD MhcBlock(unsigned char* memory, const MhcSizes& s) {
    partial = reinterpret_cast<A*>(memory);
    hc = partial + (s.mixes + 1) * kLanes;
    matrix = hc + s.mixes;
    sums = matrix + s.square();
    pre = sums + s.streams;
    inv = pre + s.streams;
  }
};

// hc and inv of the token.
template <class T, class A, class Block>
FUSEDIFF_HD void mix_token(const Block& block, const MhcForward<T>& f, const MhcBlock<A>& b, int64_t t) {
  block.each([&](int lane) {
    for (int64_t task = lane; task < (f.s.mixes + 1) * kLanes; task += kThreads) {
      const int64_t m = task / kLanes;
      A sum = 0;
      for (int64_t i = task % kLanes; i < f.s.width; i += kLanes) {
        const A value = f.value(t, i);
        sum += value * (m < f.s.mixes ? f.phi(m, i) : value);
      }
      b.partial[task] = sum;
    }
  });
  block.each([&](int lane) {
    for (int64_t m = lane; m <= f.s.mixes; m += kThreads) {
      const A sum = fold_lanes(b.partial + m * kLanes);
      if (m < f.s.mixes) {
        b.hc[m] = sum;
      } else {
        *b.inv = inverse_root(sum / static_cast<A>(f.s.width) + f.norm_eps);
      }
    }
  });
}

// The gates, and the logits of the matrix; hc, inv_rms, h_pre and h_post are written.
template <class T, class A, class Block>
FUSEDIFF_HD void gate_token(const Block& block, const MhcForward<T>& f, const MhcBlock<A>& b, int64_t t) {
  const int64_t at = t / f.s.sequence, in = t % f.s.sequence, n = f.s.streams;
  block.each([&](int lane) {
    for (int64_t m = lane; m < f.s.mixes; m += kThreads) {
      const A z = f.alpha(f.s.part_of(m)) * (b.hc[m] * *b.inv) + f.bias(m);
      if (m < n) {
        b.pre[m] = sigmoid(z) + f.hc_eps;
        if (f.h_pre.present()) {
          f.h_pre(at, in, m) = b.pre[m];
        }
      } else if (m < 2 * n) {
        f.h_post(at, in, m - n) = A(2) * sigmoid(z);
      } else {
        b.matrix[m - 2 * n] = z;
      }
      if (f.hc_before_norm.present()) {
        f.hc_before_norm(at, in, m) = b.hc[m];
      }
    }
    if (lane == 0 && f.inv_rms.present()) {
      f.inv_rms(at, in, 0) = *b.inv;
    }
  });
}

// Half an iteration, 0 to 2 * iterations - 1: a thread for each row or column.
template <class T, class A, class Block>
FUSEDIFF_HD void half_iteration(const Block& block, const MhcForward<T>& f, const MhcBlock<A>& b, int64_t t,
                                int64_t half) {
  const int64_t at = t / f.s.sequence, in = t % f.s.sequence, n = f.s.streams;
  block.each([&](int lane) {
    for (int64_t i = lane; i < n; i += kThreads) {
      if (half == 0) {
        softmax_row(b.matrix + i * n, n, f.hc_eps, b.sums + i);
      } else if (half % 2 == 0) {
        divide_by_sum(b.matrix + i * n, 1, n, f.hc_eps, b.sums + i);
      } else {
        divide_by_sum(b.matrix + i, n, n, f.hc_eps, b.sums + i);
      }
    }
  });
  block.each([&](int lane) {
    for (int64_t i = lane; i < n * n; i += kThreads) {
      if (f.norm_out.present()) {
        f.norm_out(half, at, in, i / n, i % n) = b.matrix[i];
      }
      if (half == 2 * f.s.iterations - 1) {
        f.h_res(at, in, i / n, i % n) = b.matrix[i];
      }
      if (i < n && f.sum_out.present()) {
        f.sum_out(half, at, in, i) = b.sums[i];
      }
    }
  });
}

template <class T, class Stream, class A = Compute<T>>
void mhc_fused(Stream& stream, const kit::Call& call) {
  using Block = typename Stream::Block;
  const MhcForward<T> f = read_mhc_forward<T>(call);
  const size_t bytes = MhcBlock<A>::bytes(f.s);
  if (bytes > Stream::kSharedBytes) {
    kit::unsupported("a token needs ", static_cast<int64_t>(bytes), " bytes of shared memory");
  }
  stream.blocks(
      f.s.tokens, bytes, FUSEDIFF_KERNEL(const Block& block, int64_t t) {
        const MhcBlock<A> b(block.shared(), f.s);
        mix_token(block, f, b, t);
        gate_token(block, f, b, t);
        for (int64_t half = 0; half < 2 * f.s.iterations; ++half) {
          half_iteration(block, f, b, t, half);
        }
        block.each([&](int lane) {
          for (int64_t c = lane; c < f.s.channels; c += kThreads) {
            A sum = 0;
            for (int64_t n = 0; n < f.s.streams; ++n) {
              sum += f.value(t, n * f.s.channels + c) * b.pre[n];
            }
            f.hin(t / f.s.sequence, t % f.s.sequence, c) = as_dtype<T>(sum);
          }
        });
      });
}

}  // namespace fusediff::cuda
