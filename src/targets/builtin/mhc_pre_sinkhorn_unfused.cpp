// mhc_pre_sinkhorn as a framework composes it: cast, square, mean, rsqrt, matmul, scale, sigmoid, softmax, then a
// division by row or column sums for each half iteration, and the weighted sum of streams. Each step is one pass over
// its whole tensor.
#include <algorithm>
#include <cmath>
#include <limits>

#include "builtin/exponential_rows.h"
#include "builtin/lanes.h"
#include "builtin/mhc_pre_sinkhorn.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

template <class A>
struct Buffers {
  A *x, *product, *inv_rms, *hc, *mix, *pre, *post, *res, *sums, *phi_row, *hin;

  Buffers(Carver& carver, const MhcSizes& s)
      : x(carver.take<A>(s.tokens() * s.width())),
        product(carver.take<A>(s.tokens() * s.width())),
        inv_rms(carver.take<A>(s.tokens())),
        hc(carver.take<A>(s.tokens() * s.mixes())),
        mix(carver.take<A>(s.tokens() * s.mixes())),
        pre(carver.take<A>(s.tokens() * s.streams)),
        post(carver.take<A>(s.tokens() * s.streams)),
        res(carver.take<A>(s.tokens() * s.streams * s.streams)),
        sums(carver.take<A>(s.tokens() * s.streams)),
        phi_row(carver.take<A>(s.width())),
        hin(carver.take<A>(s.tokens() * s.channels)) {}
};

template <class T, class A>
void norms_and_mixes(const MhcForward<T>& f, const Buffers<A>& b) {
  const MhcSizes& s = f.sizes;
  const int64_t width = s.width(), mixes = s.mixes();
  for (int64_t t = 0; t < s.tokens(); ++t) {
    for (int64_t n = 0; n < s.streams; ++n) {
      load(f.x.at(t / s.sequence, t % s.sequence, n), b.x + t * width + n * s.channels);
    }
  }
  for (int64_t i = 0; i < s.tokens() * width; ++i) {
    b.product[i] = b.x[i] * b.x[i];
  }
  for (int64_t t = 0; t < s.tokens(); ++t) {
    const A* row = b.product + t * width;
    const A mean = lane_sum<A>(width, [&](int64_t i) { return row[i]; }) / static_cast<A>(width);
    b.inv_rms[t] = A(1) / std::sqrt(mean + f.norm_eps);
  }
  for (int64_t m = 0; m < mixes; ++m) {
    const A* phi = dense(f.phi.at(m), b.phi_row);
    for (int64_t t = 0; t < s.tokens(); ++t) {
      const A* row = b.x + t * width;
      b.hc[t * mixes + m] = lane_sum<A>(width, [&](int64_t i) { return row[i] * phi[i]; });
    }
  }
  for (int64_t t = 0; t < s.tokens(); ++t) {
    for (int64_t m = 0; m < mixes; ++m) {
      b.mix[t * mixes + m] = b.hc[t * mixes + m] * b.inv_rms[t];
    }
  }
}

// to[t, j] = alpha * mix[t, from + j] + bias[from + j] for j < count.
template <class T, class A>
void affine(const MhcForward<T>& f, const A* mix, int part, int64_t from, int64_t count, A* to) {
  for (int64_t t = 0; t < f.sizes.tokens(); ++t) {
    for (int64_t j = 0; j < count; ++j) {
      to[t * count + j] = f.alpha(part) * mix[t * f.sizes.mixes() + from + j] + f.bias(from + j);
    }
  }
}

// Writes the sums [tokens, N] and the matrices [tokens, N, N] of one half iteration.
template <class T, class A>
void keep(const MhcForward<T>& f, const Buffers<A>& b, int64_t half) {
  const MhcSizes& s = f.sizes;
  for (int64_t t = 0; t < s.tokens(); ++t) {
    if (f.sum_out) {
      store(f.sum_out.at(half, t / s.sequence, t % s.sequence), b.sums + t * s.streams);
    }
    for (int64_t i = 0; f.norm_out && i < s.streams; ++i) {
      store(f.norm_out.at(half, t / s.sequence, t % s.sequence, i), b.res + (t * s.streams + i) * s.streams);
    }
  }
}

template <class T, class A>
void softmax_rows(const MhcForward<T>& f, const Buffers<A>& b) {
  const int64_t n = f.sizes.streams;
  for (int64_t r = 0; r < f.sizes.tokens() * n; ++r) {
    A* row = b.res + r * n;
    A most = -std::numeric_limits<A>::infinity();
    for (int64_t j = 0; j < n; ++j) {
      most = row[j] > most ? row[j] : most;
    }
    for (int64_t j = 0; j < n; ++j) {
      row[j] -= most;
    }
    exp_row(row, n);
    b.sums[r] = 0;
    for (int64_t j = 0; j < n; ++j) {
      b.sums[r] += row[j];
    }
    for (int64_t j = 0; j < n; ++j) {
      row[j] = row[j] / b.sums[r] + f.hc_eps;
    }
  }
}

// Divides the matrices by their row sums or column sums, hc_eps added.
template <class T, class A>
void divide_by_sums(const MhcForward<T>& f, const Buffers<A>& b, bool by_rows) {
  const int64_t n = f.sizes.streams;
  std::fill_n(b.sums, f.sizes.tokens() * n, A(0));
  for (int64_t i = 0; i < f.sizes.tokens() * n * n; ++i) {
    b.sums[by_rows ? i / n : i / (n * n) * n + i % n] += b.res[i];
  }
  for (int64_t i = 0; i < f.sizes.tokens() * n; ++i) {
    b.sums[i] += f.hc_eps;
  }
  for (int64_t i = 0; i < f.sizes.tokens() * n * n; ++i) {
    b.res[i] /= b.sums[by_rows ? i / n : i / (n * n) * n + i % n];
  }
}

template <class T, class A>
void sinkhorn(const MhcForward<T>& f, const Buffers<A>& b) {
  softmax_rows(f, b);
  keep(f, b, 0);
  divide_by_sums(f, b, false);
  keep(f, b, 1);
  for (int64_t i = 1; i < f.sizes.iterations; ++i) {
    divide_by_sums(f, b, true);
    keep(f, b, 2 * i);
    divide_by_sums(f, b, false);
    keep(f, b, 2 * i + 1);
  }
}

template <class T, class A>
void weighted_streams(const MhcForward<T>& f, const Buffers<A>& b) {
  const MhcSizes& s = f.sizes;
  for (int64_t i = 0; i < s.tokens() * s.width(); ++i) {
    b.product[i] = b.x[i] * b.pre[i / s.channels];
  }
  std::fill_n(b.hin, s.tokens() * s.channels, A(0));
  for (int64_t t = 0; t < s.tokens(); ++t) {
    for (int64_t i = 0; i < s.width(); ++i) {
      b.hin[t * s.channels + i % s.channels] += b.product[t * s.width() + i];
    }
  }
}

template <class T, class A>
void write_outputs(const MhcForward<T>& f, const Buffers<A>& b) {
  const MhcSizes& s = f.sizes;
  for (int64_t t = 0; t < s.tokens(); ++t) {
    const int64_t at = t / s.sequence, in = t % s.sequence;
    store(f.hin.at(at, in), b.hin + t * s.channels);
    store(f.h_post.at(at, in), b.post + t * s.streams);
    store(f.h_pre.at(at, in), b.pre + t * s.streams);
    store(f.hc_before_norm.at(at, in), b.hc + t * s.mixes());
    store(f.inv_rms.at(at, in), b.inv_rms + t);
    for (int64_t i = 0; i < s.streams; ++i) {
      store(f.h_res.at(at, in, i), b.res + (t * s.streams + i) * s.streams);
    }
  }
}

template <class T, class A = Compute<T>>
void compose(const Call& call) {
  const MhcForward<T> f = read_mhc_forward<T>(call);
  Carver carver = call.workspace();
  const Buffers<A> b(carver, f.sizes);
  const int64_t n = f.sizes.streams;
  norms_and_mixes(f, b);
  affine(f, b.mix, 0, 0, n, b.pre);
  sigmoid_row(b.pre, f.sizes.tokens() * n);
  for (int64_t i = 0; i < f.sizes.tokens() * n; ++i) {
    b.pre[i] += f.hc_eps;
  }
  affine(f, b.mix, 1, n, n, b.post);
  sigmoid_row(b.post, f.sizes.tokens() * n);
  for (int64_t i = 0; i < f.sizes.tokens() * n; ++i) {
    b.post[i] *= 2;
  }
  affine(f, b.mix, 2, 2 * n, n * n, b.res);
  sinkhorn(f, b);
  weighted_streams(f, b);
  write_outputs(f, b);
}

}  // namespace

void run_mhc_unfused(const Call& call) {
  by_dtype<Half, BFloat16, double>(call.input("x"), [&](auto type) { compose<typename decltype(type)::type>(call); });
}

size_t mhc_unfused_workspace(const Call& call) {
  Carver carver;
  by_dtype<Half, BFloat16, double>(call.input("x"), [&](auto type) {
    using T = typename decltype(type)::type;
    Buffers<Compute<T>>(carver, read_mhc_forward<T>(call).sizes);
  });
  return carver.bytes();
}

}  // namespace fusediff::builtin
