// mhc_pre_sinkhorn_grad as automatic differentiation composes it: each step of the forward, backwards, as one pass over
// its whole tensor; then two matrix products and the sums over tokens.
#include <algorithm>

#include "builtin/exponential_rows.h"
#include "builtin/lanes.h"
#include "builtin/mhc_pre_sinkhorn.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

template <class A>
struct Buffers {
  A *x, *grad_x, *product, *grad_hin, *phi, *grad_phi;  // [tokens, K], ..., [tokens, C], [M, K], [M, K]
  A *hc, *mix, *gz, *g_mix, *g_hc;                      // [tokens, M]
  A *h_pre, *post;                                      // [tokens, N]
  A *g, *saved, *sums, *d;                              // [tokens, N, N], [tokens, N, N], [tokens, N], [tokens, N]
  A *inv_rms, *factor;                                  // [tokens]
  A *grad_bias, *grad_alpha;                            // [M], [3]

  Buffers(Carver& c, const MhcSizes& s)
      : x(c.take<A>(s.tokens() * s.width())),
        grad_x(c.take<A>(s.tokens() * s.width())),
        product(c.take<A>(s.tokens() * s.width())),
        grad_hin(c.take<A>(s.tokens() * s.channels)),
        phi(c.take<A>(s.mixes() * s.width())),
        grad_phi(c.take<A>(s.mixes() * s.width())),
        hc(c.take<A>(s.tokens() * s.mixes())),
        mix(c.take<A>(s.tokens() * s.mixes())),
        gz(c.take<A>(s.tokens() * s.mixes())),
        g_mix(c.take<A>(s.tokens() * s.mixes())),
        g_hc(c.take<A>(s.tokens() * s.mixes())),
        h_pre(c.take<A>(s.tokens() * s.streams)),
        post(c.take<A>(s.tokens() * s.streams)),
        g(c.take<A>(s.tokens() * s.streams * s.streams)),
        saved(c.take<A>(s.tokens() * s.streams * s.streams)),
        sums(c.take<A>(s.tokens() * s.streams)),
        d(c.take<A>(s.tokens() * s.streams)),
        inv_rms(c.take<A>(s.tokens())),
        factor(c.take<A>(s.tokens())),
        grad_bias(c.take<A>(s.mixes())),
        grad_alpha(c.take<A>(3)) {}
};

template <class T, class A>
void read_inputs(const MhcBackward<T>& f, const Buffers<A>& b) {
  const MhcSizes& s = f.sizes;
  for (int64_t t = 0; t < s.tokens(); ++t) {
    const int64_t at = t / s.sequence, in = t % s.sequence;
    for (int64_t n = 0; n < s.streams; ++n) {
      load(f.x.at(at, in, n), b.x + t * s.width() + n * s.channels);
      load(f.grad_h_res.at(at, in, n), b.g + (t * s.streams + n) * s.streams);
    }
    load(f.grad_hin.at(at, in), b.grad_hin + t * s.channels);
    load(f.hc_before_norm.at(at, in), b.hc + t * s.mixes());
    load(f.h_pre.at(at, in), b.h_pre + t * s.streams);
    load(f.inv_rms.at(at, in), b.inv_rms + t);
  }
  for (int64_t m = 0; m < s.mixes(); ++m) {
    load(f.phi.at(m), b.phi + m * s.width());
  }
  for (int64_t i = 0; i < s.tokens() * s.mixes(); ++i) {
    b.mix[i] = b.hc[i] * b.inv_rms[i / s.mixes()];
  }
}

// saved and sums = norm_out[half] and sum_out[half].
template <class T, class A>
void read_saved(const MhcBackward<T>& f, const Buffers<A>& b, int64_t half) {
  const MhcSizes& s = f.sizes;
  for (int64_t t = 0; t < s.tokens(); ++t) {
    const int64_t at = t / s.sequence, in = t % s.sequence;
    load(f.sum_out.at(half, at, in), b.sums + t * s.streams);
    for (int64_t i = 0; i < s.streams; ++i) {
      load(f.norm_out.at(half, at, in, i), b.saved + (t * s.streams + i) * s.streams);
    }
  }
}

// g minus the row or column sums of g * saved.
template <class A>
void subtract_sums(const MhcSizes& s, const Buffers<A>& b, bool by_rows) {
  const int64_t n = s.streams;
  std::fill_n(b.d, s.tokens() * n, A(0));
  for (int64_t i = 0; i < s.tokens() * n * n; ++i) {
    b.d[by_rows ? i / n : i / (n * n) * n + i % n] += b.g[i] * b.saved[i];
  }
  for (int64_t i = 0; i < s.tokens() * n * n; ++i) {
    b.g[i] -= b.d[by_rows ? i / n : i / (n * n) * n + i % n];
  }
}

template <class T, class A>
void undo_division(const MhcBackward<T>& f, const Buffers<A>& b, int64_t half, bool by_rows) {
  const int64_t n = f.sizes.streams;
  read_saved(f, b, half);
  subtract_sums(f.sizes, b, by_rows);
  for (int64_t i = 0; i < f.sizes.tokens() * n * n; ++i) {
    b.g[i] /= b.sums[by_rows ? i / n : i / (n * n) * n + i % n];
  }
}

// The last N * N columns of gz.
template <class T, class A>
void undo_sinkhorn(const MhcBackward<T>& f, const Buffers<A>& b) {
  const MhcSizes& s = f.sizes;
  const int64_t square = s.streams * s.streams;
  for (int64_t i = s.iterations - 1; i >= 1; --i) {
    undo_division(f, b, 2 * i + 1, false);
    undo_division(f, b, 2 * i, true);
  }
  undo_division(f, b, 1, false);
  read_saved(f, b, 0);
  for (int64_t i = 0; i < s.tokens() * square; ++i) {
    b.saved[i] -= f.hc_eps;
  }
  subtract_sums(s, b, true);
  for (int64_t i = 0; i < s.tokens() * square; ++i) {
    b.gz[i / square * s.mixes() + 2 * s.streams + i % square] = b.g[i] * b.saved[i];
  }
}

// The first 2 * N columns of gz.
template <class T, class A>
void undo_gates(const MhcBackward<T>& f, const Buffers<A>& b) {
  const MhcSizes& s = f.sizes;
  const int64_t n = s.streams;
  for (int64_t i = 0; i < s.tokens() * s.width(); ++i) {
    b.product[i] = b.grad_hin[i / s.width() * s.channels + i % s.channels] * b.x[i];
  }
  for (int64_t i = 0; i < s.tokens() * n; ++i) {
    const A* row = b.product + i * s.channels;
    const A dot = lane_sum<A>(s.channels, [&](int64_t c) { return row[c]; });
    const A gate = b.h_pre[i] - f.hc_eps;
    b.gz[i / n * s.mixes() + i % n] = dot * gate * (A(1) - gate);
    b.post[i] = f.alpha(1) * b.mix[i / n * s.mixes() + n + i % n] + f.bias(n + i % n);
  }
  sigmoid_row(b.post, s.tokens() * n);
  for (int64_t i = 0; i < s.tokens() * n; ++i) {
    const A h = A(2) * b.post[i];
    const A g = f.grad_h_post(i / n / s.sequence, i / n % s.sequence, i % n);
    b.gz[i / n * s.mixes() + n + i % n] = g * h * (A(1) - h * A(0.5));
  }
}

// Which alpha scales column m.
inline int part_of(int64_t m, int64_t streams) { return m < streams ? 0 : m < 2 * streams ? 1 : 2; }

template <class T, class A>
void sum_over_tokens(const MhcBackward<T>& f, const Buffers<A>& b) {
  const MhcSizes& s = f.sizes;
  std::fill_n(b.grad_bias, s.mixes(), A(0));
  std::fill_n(b.grad_alpha, 3, A(0));
  for (int64_t t = 0; t < s.tokens(); ++t) {
    A parts[3] = {};
    for (int64_t m = 0; m < s.mixes(); ++m) {
      b.grad_bias[m] += b.gz[t * s.mixes() + m];
      parts[part_of(m, s.streams)] += b.gz[t * s.mixes() + m] * b.mix[t * s.mixes() + m];
    }
    for (int part = 0; part < 3; ++part) {
      b.grad_alpha[part] += parts[part];
    }
  }
}

// g_hc, and factor = g_inv * inv_rms^3 / K.
template <class T, class A>
void undo_norm(const MhcBackward<T>& f, const Buffers<A>& b) {
  const MhcSizes& s = f.sizes;
  const int64_t mixes = s.mixes();
  for (int64_t i = 0; i < s.tokens() * mixes; ++i) {
    b.g_mix[i] = f.alpha(part_of(i % mixes, s.streams)) * b.gz[i];
  }
  for (int64_t i = 0; i < s.tokens() * mixes; ++i) {
    b.g_hc[i] = b.g_mix[i] * b.inv_rms[i / mixes];
  }
  for (int64_t t = 0; t < s.tokens(); ++t) {
    A g_inv = 0;
    for (int64_t m = 0; m < mixes; ++m) {
      g_inv += b.g_mix[t * mixes + m] * b.hc[t * mixes + m];
    }
    const A inv = b.inv_rms[t];
    b.factor[t] = g_inv * (inv * inv * inv) / static_cast<A>(s.width());
  }
}

template <class T, class A>
void products(const MhcBackward<T>& f, const Buffers<A>& b) {
  const MhcSizes& s = f.sizes;
  const int64_t width = s.width(), mixes = s.mixes();
  std::fill_n(b.grad_phi, mixes * width, A(0));
  std::fill_n(b.product, s.tokens() * width, A(0));
  for (int64_t t = 0; t < s.tokens(); ++t) {
    for (int64_t m = 0; m < mixes; ++m) {
      const A g = b.g_hc[t * mixes + m];
      A* into_phi = b.grad_phi + m * width;
      A* into_x = b.product + t * width;
      for (int64_t i = 0; i < width; ++i) {
        into_phi[i] += g * b.x[t * width + i];
      }
      for (int64_t i = 0; i < width; ++i) {
        into_x[i] += g * b.phi[m * width + i];
      }
    }
  }
  for (int64_t i = 0; i < s.tokens() * width; ++i) {
    b.grad_x[i] = b.grad_hin[i / width * s.channels + i % s.channels] * b.h_pre[i / s.channels];
  }
  for (int64_t i = 0; i < s.tokens() * width; ++i) {
    b.grad_x[i] += b.product[i];
  }
  for (int64_t i = 0; i < s.tokens() * width; ++i) {
    b.grad_x[i] -= b.x[i] * b.factor[i / width];
  }
}

template <class T, class A = Compute<T>>
void compose(const Call& call) {
  const MhcBackward<T> f = read_mhc_backward<T>(call);
  const MhcSizes& s = f.sizes;
  Carver carver = call.workspace();
  const Buffers<A> b(carver, s);
  read_inputs(f, b);
  undo_sinkhorn(f, b);
  undo_gates(f, b);
  sum_over_tokens(f, b);
  undo_norm(f, b);
  products(f, b);
  store(f.grad_alpha, b.grad_alpha);
  store(f.grad_bias, b.grad_bias);
  for (int64_t m = 0; m < s.mixes(); ++m) {
    store(f.grad_phi.at(m), b.grad_phi + m * s.width());
  }
  for (int64_t r = 0; r < s.tokens() * s.streams; ++r) {
    const int64_t t = r / s.streams;
    store(f.grad_x.at(t / s.sequence, t % s.sequence, r % s.streams), b.grad_x + r * s.channels);
  }
}

}  // namespace

void run_mhc_grad_unfused(const Call& call) {
  by_dtype<Half, BFloat16, double>(call.input("x"), [&](auto type) { compose<typename decltype(type)::type>(call); });
}

size_t mhc_grad_unfused_workspace(const Call& call) {
  Carver carver;
  by_dtype<Half, BFloat16, double>(call.input("x"), [&](auto type) {
    using T = typename decltype(type)::type;
    Buffers<Compute<T>>(carver, read_mhc_backward<T>(call).sizes);
  });
  return carver.bytes();
}

}  // namespace fusediff::builtin
