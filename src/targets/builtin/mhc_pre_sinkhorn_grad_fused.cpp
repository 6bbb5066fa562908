// mhc_pre_sinkhorn_grad in two sweeps. The first goes token by token and leaves one row of g_hc and one factor each,
// and the sums over tokens. The second goes over tiles of 64 channels: each tile of x and phi is widened once and feeds
// grad_phi and grad_x together.
#include <algorithm>

#include "builtin/exponential.h"
#include "builtin/lanes.h"
#include "builtin/mhc_pre_sinkhorn.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr int64_t kTile = 64;

template <class A>
struct Scratch {
  A *g_hc, *factor, *h_pre;                     // of every token: [tokens, M], [tokens], [tokens, N]
  A *hc, *gz, *g, *saved, *sums, *d;            // of one token
  A *x_row, *grad_hin_row;                      // [C]
  A *x_tile, *phi_tile, *grad_hin_tile, *into;  // [tokens, 64], [M, 64], [64], [64]
  A *grad_bias, *grad_alpha;                    // [M], [3]

  Scratch(Carver& c, const MhcSizes& s)
      : g_hc(c.take<A>(s.tokens() * s.mixes())),
        factor(c.take<A>(s.tokens())),
        h_pre(c.take<A>(s.tokens() * s.streams)),
        hc(c.take<A>(s.mixes())),
        gz(c.take<A>(s.mixes())),
        g(c.take<A>(s.streams * s.streams)),
        saved(c.take<A>(s.streams * s.streams)),
        sums(c.take<A>(s.streams)),
        d(c.take<A>(s.streams)),
        x_row(c.take<A>(s.channels)),
        grad_hin_row(c.take<A>(s.channels)),
        x_tile(c.take<A>(s.tokens() * kTile)),
        phi_tile(c.take<A>(s.mixes() * kTile)),
        grad_hin_tile(c.take<A>(kTile)),
        into(c.take<A>(kTile)),
        grad_bias(c.take<A>(s.mixes())),
        grad_alpha(c.take<A>(3)) {}
};

template <class T, class A>
void load_saved(const MhcBackward<T>& f, const Scratch<A>& b, int64_t half, int64_t at, int64_t in) {
  load(f.sum_out.at(half, at, in), b.sums);
  for (int64_t i = 0; i < f.sizes.streams; ++i) {
    load(f.norm_out.at(half, at, in, i), b.saved + i * f.sizes.streams);
  }
}

template <class A>
void undo_columns(const Scratch<A>& b, int64_t n) {
  std::fill_n(b.d, n, A(0));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      b.d[j] += b.g[i * n + j] * b.saved[i * n + j];
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      b.g[i * n + j] = (b.g[i * n + j] - b.d[j]) / b.sums[j];
    }
  }
}

template <class A>
void undo_rows(const Scratch<A>& b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    A d = 0;
    for (int64_t j = 0; j < n; ++j) {
      d += b.g[i * n + j] * b.saved[i * n + j];
    }
    for (int64_t j = 0; j < n; ++j) {
      b.g[i * n + j] = (b.g[i * n + j] - d) / b.sums[i];
    }
  }
}

// to[i] = gradient at the logits of the N x N matrix.
template <class T, class A>
void undo_sinkhorn(const MhcBackward<T>& f, const Scratch<A>& b, int64_t at, int64_t in, A* to) {
  const int64_t n = f.sizes.streams;
  for (int64_t i = 0; i < n; ++i) {
    load(f.grad_h_res.at(at, in, i), b.g + i * n);
  }
  for (int64_t i = f.sizes.iterations - 1; i >= 1; --i) {
    load_saved(f, b, 2 * i + 1, at, in);
    undo_columns(b, n);
    load_saved(f, b, 2 * i, at, in);
    undo_rows(b, n);
  }
  load_saved(f, b, 1, at, in);
  undo_columns(b, n);
  load_saved(f, b, 0, at, in);
  for (int64_t i = 0; i < n; ++i) {
    const A* g = b.g + i * n;
    A* p = b.saved + i * n;
    A d = 0;
    for (int64_t j = 0; j < n; ++j) {
      p[j] -= f.hc_eps;
      d += g[j] * p[j];
    }
    for (int64_t j = 0; j < n; ++j) {
      to[i * n + j] = (g[j] - d) * p[j];
    }
  }
}

template <class A>
A dot(const A* a, const A* b, int64_t n) {
  LaneVector<A> sum;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    sum.v += LaneVector<A>(a + i).v * LaneVector<A>(b + i).v;
  }
  sum.v += LaneVector<A>(a + i, n - i).v * LaneVector<A>(b + i, n - i).v;
  return sum.fold();
}

// gz of one token, all M columns.
template <class T, class A>
void undo_token(const MhcBackward<T>& f, const Scratch<A>& b, const A* h_pre, A inv, int64_t at, int64_t in) {
  const int64_t n = f.sizes.streams;
  const A* grad_hin = dense(f.grad_hin.at(at, in), b.grad_hin_row);
  for (int64_t i = 0; i < n; ++i) {
    const A gate = h_pre[i] - f.hc_eps;
    b.gz[i] = dot(grad_hin, dense(f.x.at(at, in, i), b.x_row), f.sizes.channels) * gate * (A(1) - gate);
    const A h = A(2) * sigmoid(f.alpha(1) * (b.hc[n + i] * inv) + f.bias(n + i));
    b.gz[n + i] = f.grad_h_post(at, in, i) * h * (A(1) - h * A(0.5));
  }
  undo_sinkhorn(f, b, at, in, b.gz + 2 * n);
}

// Adds the token's part to the sums; writes its g_hc and factor.
template <class T, class A>
void reduce_token(const MhcBackward<T>& f, const Scratch<A>& b, A inv, A* g_hc, A* factor) {
  const MhcSizes& s = f.sizes;
  const int64_t ends[] = {s.streams, 2 * s.streams, s.mixes()};
  A g_inv = 0;
  int64_t m = 0;
  for (int part = 0; part < 3; ++part) {
    A grad_alpha = 0;
    for (; m < ends[part]; ++m) {
      b.grad_bias[m] += b.gz[m];
      grad_alpha += b.gz[m] * (b.hc[m] * inv);
      const A g_mix = f.alpha(part) * b.gz[m];
      g_hc[m] = g_mix * inv;
      g_inv += g_mix * b.hc[m];
    }
    b.grad_alpha[part] += grad_alpha;
  }
  *factor = g_inv * (inv * inv * inv) / static_cast<A>(s.width());
}

// grad_phi and grad_x of `count` channels of one stream, from channel `from` on.
template <class T, class A>
void finish_tile(const MhcBackward<T>& f, const Scratch<A>& b, int64_t stream, int64_t from, int64_t count) {
  const MhcSizes& s = f.sizes;
  const int64_t column = stream * s.channels + from;
  for (int64_t t = 0; t < s.tokens(); ++t) {
    load(f.x.at(t / s.sequence, t % s.sequence, stream).part(from, count), b.x_tile + t * kTile);
  }
  for (int64_t m = 0; m < s.mixes(); ++m) {
    load(f.phi.at(m).part(column, count), b.phi_tile + m * kTile);
    std::fill_n(b.into, count, A(0));
    for (int64_t t = 0; t < s.tokens(); ++t) {
      const A g = b.g_hc[t * s.mixes() + m];
      for (int64_t c = 0; c < count; ++c) {
        b.into[c] += g * b.x_tile[t * kTile + c];
      }
    }
    store(f.grad_phi.at(m).part(column, count), b.into);
  }
  for (int64_t t = 0; t < s.tokens(); ++t) {
    const int64_t at = t / s.sequence, in = t % s.sequence;
    load(f.grad_hin.at(at, in).part(from, count), b.grad_hin_tile);
    std::fill_n(b.into, count, A(0));
    for (int64_t m = 0; m < s.mixes(); ++m) {
      const A g = b.g_hc[t * s.mixes() + m];
      for (int64_t c = 0; c < count; ++c) {
        b.into[c] += g * b.phi_tile[m * kTile + c];
      }
    }
    const A weight = b.h_pre[t * s.streams + stream];
    for (int64_t c = 0; c < count; ++c) {
      b.into[c] = (b.grad_hin_tile[c] * weight + b.into[c]) - b.x_tile[t * kTile + c] * b.factor[t];
    }
    store(f.grad_x.at(at, in, stream).part(from, count), b.into);
  }
}

template <class T, class A = Compute<T>>
void sweep(const Call& call) {
  const MhcBackward<T> f = read_mhc_backward<T>(call);
  const MhcSizes& s = f.sizes;
  Carver carver = call.workspace();
  const Scratch<A> b(carver, s);
  std::fill_n(b.grad_bias, s.mixes(), A(0));
  std::fill_n(b.grad_alpha, 3, A(0));
  for (int64_t t = 0; t < s.tokens(); ++t) {
    const int64_t at = t / s.sequence, in = t % s.sequence;
    const A inv = f.inv_rms(at, in, 0);
    A* h_pre = b.h_pre + t * s.streams;
    load(f.h_pre.at(at, in), h_pre);
    load(f.hc_before_norm.at(at, in), b.hc);
    undo_token(f, b, h_pre, inv, at, in);
    reduce_token(f, b, inv, b.g_hc + t * s.mixes(), b.factor + t);
  }
  store(f.grad_bias, b.grad_bias);
  store(f.grad_alpha, b.grad_alpha);
  for (int64_t stream = 0; stream < s.streams; ++stream) {
    for (int64_t from = 0; from < s.channels; from += kTile) {
      finish_tile(f, b, stream, from, std::min(kTile, s.channels - from));
    }
  }
}

}  // namespace

void run_mhc_grad_fused(const Call& call) {
  by_dtype<Half, BFloat16, double>(call.input("x"), [&](auto type) { sweep<typename decltype(type)::type>(call); });
}

size_t mhc_grad_fused_workspace(const Call& call) {
  Carver carver;
  by_dtype<Half, BFloat16, double>(call.input("x"), [&](auto type) {
    using T = typename decltype(type)::type;
    Scratch<Compute<T>>(carver, read_mhc_backward<T>(call).sizes);
  });
  return carver.bytes();
}

}  // namespace fusediff::builtin
