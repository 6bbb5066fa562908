// mhc_pre_sinkhorn in one pass, token by token: the token is widened once and stays in cache; the sum of squares and
// four rows of phi go through it together, 16 lanes wide; the N x N matrix never leaves its buffer.
#include <algorithm>
#include <cmath>
#include <limits>

#include "builtin/exponential.h"
#include "builtin/lanes.h"
#include "builtin/mhc_pre_sinkhorn.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr int64_t kRowsTogether = 4;

template <class A>
struct TokenBuffer {
  A *phi, *x, *hc, *matrix, *sums, *pre, *post, *hin;

  // phi: room for a dense copy, taken only where its rows are not dense already.
  TokenBuffer(Carver& carver, const MhcSizes& s, bool copy_phi)
      : phi(carver.take<A>(copy_phi ? s.mixes() * s.width() : 0)),
        x(carver.take<A>(s.width())),
        hc(carver.take<A>(s.mixes())),
        matrix(carver.take<A>(s.streams * s.streams)),
        sums(carver.take<A>(s.streams)),
        pre(carver.take<A>(s.streams)),
        post(carver.take<A>(s.streams)),
        hin(carver.take<A>(s.channels)) {}
};

// hc[0..kRows) = dot products of x with kRows rows of phi, all in one sweep.
template <int64_t kRows, class A>
void dots(const A* x, const A* phi, int64_t row_stride, int64_t width, A* hc) {
  LaneVector<A> sums[kRows];
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    const LaneVector<A> values(x + i);
    for (int64_t r = 0; r < kRows; ++r) {
      sums[r].v += values.v * LaneVector<A>(phi + r * row_stride + i).v;
    }
  }
  const LaneVector<A> values(x + i, width - i);
  for (int64_t r = 0; r < kRows; ++r) {
    sums[r].v += values.v * LaneVector<A>(phi + r * row_stride + i, width - i).v;
    hc[r] = sums[r].fold();
  }
}

template <class A>
A sum_of_squares(const A* x, int64_t width) {
  LaneVector<A> sum;
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    const LaneVector<A> values(x + i);
    sum.v += values.v * values.v;
  }
  const LaneVector<A> values(x + i, width - i);
  sum.v += values.v * values.v;
  return sum.fold();
}

// Divides the matrix in place and leaves the divisors in sums.
template <class A>
void divide_rows(A* p, A* sums, int64_t n, A eps) {
  for (int64_t i = 0; i < n; ++i) {
    A sum = 0;
    for (int64_t j = 0; j < n; ++j) {
      sum += p[i * n + j];
    }
    sums[i] = sum + eps;
    for (int64_t j = 0; j < n; ++j) {
      p[i * n + j] /= sums[i];
    }
  }
}

template <class A>
void divide_columns(A* p, A* sums, int64_t n, A eps) {
  std::fill_n(sums, n, A(0));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      sums[j] += p[i * n + j];
    }
  }
  for (int64_t j = 0; j < n; ++j) {
    sums[j] += eps;
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      p[i * n + j] /= sums[j];
    }
  }
}

template <class A>
void softmax_rows(A* p, A* sums, int64_t n, A eps) {
  for (int64_t i = 0; i < n; ++i) {
    A* row = p + i * n;
    A most = -std::numeric_limits<A>::infinity();
    for (int64_t j = 0; j < n; ++j) {
      most = row[j] > most ? row[j] : most;
    }
    sums[i] = 0;
    for (int64_t j = 0; j < n; ++j) {
      row[j] = exp(row[j] - most);
      sums[i] += row[j];
    }
    for (int64_t j = 0; j < n; ++j) {
      row[j] = row[j] / sums[i] + eps;
    }
  }
}

template <class T, class A>
void keep(const MhcForward<T>& f, const TokenBuffer<A>& b, int64_t half, int64_t at, int64_t in) {
  if (f.sum_out) {
    store(f.sum_out.at(half, at, in), b.sums);
  }
  for (int64_t i = 0; f.norm_out && i < f.sizes.streams; ++i) {
    store(f.norm_out.at(half, at, in, i), b.matrix + i * f.sizes.streams);
  }
}

template <class T, class A>
void sinkhorn(const MhcForward<T>& f, const TokenBuffer<A>& b, int64_t at, int64_t in) {
  const int64_t n = f.sizes.streams;
  softmax_rows(b.matrix, b.sums, n, f.hc_eps);
  keep(f, b, 0, at, in);
  divide_columns(b.matrix, b.sums, n, f.hc_eps);
  keep(f, b, 1, at, in);
  for (int64_t i = 1; i < f.sizes.iterations; ++i) {
    divide_rows(b.matrix, b.sums, n, f.hc_eps);
    keep(f, b, 2 * i, at, in);
    divide_columns(b.matrix, b.sums, n, f.hc_eps);
    keep(f, b, 2 * i + 1, at, in);
  }
  for (int64_t i = 0; i < n; ++i) {
    store(f.h_res.at(at, in, i), b.matrix + i * n);
  }
}

// The matrix product of one token with phi, four rows at a time.
template <class A>
void mix_token(const MhcSizes& s, const TokenBuffer<A>& b, const A* phi, int64_t row_stride) {
  int64_t m = 0;
  for (; m + kRowsTogether <= s.mixes(); m += kRowsTogether) {
    dots<kRowsTogether>(b.x, phi + m * row_stride, row_stride, s.width(), b.hc + m);
  }
  for (; m < s.mixes(); ++m) {
    dots<1>(b.x, phi + m * row_stride, row_stride, s.width(), b.hc + m);
  }
}

// hin of a token: the streams weighted by pre, from the widened token.
template <class A>
void weigh_streams(const MhcSizes& s, const TokenBuffer<A>& b) {
  std::fill_n(b.hin, s.channels, A(0));
  for (int64_t n = 0; n < s.streams; ++n) {
    const A weight = b.pre[n];
    const A* stream = b.x + n * s.channels;
    for (int64_t c = 0; c < s.channels; ++c) {
      b.hin[c] += stream[c] * weight;
    }
  }
}

template <class T, class A>
void run_token(const MhcForward<T>& f, const TokenBuffer<A>& b, const A* phi, int64_t row_stride, int64_t at,
               int64_t in) {
  const MhcSizes& s = f.sizes;
  const int64_t n = s.streams;
  for (int64_t i = 0; i < n; ++i) {
    load(f.x.at(at, in, i), b.x + i * s.channels);
  }
  const A mean = sum_of_squares(b.x, s.width()) / static_cast<A>(s.width());
  const A inv_rms = A(1) / std::sqrt(mean + f.norm_eps);
  mix_token(s, b, phi, row_stride);
  store(f.hc_before_norm.at(at, in), b.hc);
  store(f.inv_rms.at(at, in), &inv_rms);
  for (int64_t i = 0; i < n; ++i) {
    b.pre[i] = sigmoid(f.alpha(0) * (b.hc[i] * inv_rms) + f.bias(i)) + f.hc_eps;
    b.post[i] = A(2) * sigmoid(f.alpha(1) * (b.hc[n + i] * inv_rms) + f.bias(n + i));
  }
  for (int64_t i = 0; i < n * n; ++i) {
    b.matrix[i] = f.alpha(2) * (b.hc[2 * n + i] * inv_rms) + f.bias(2 * n + i);
  }
  store(f.h_pre.at(at, in), b.pre);
  store(f.h_post.at(at, in), b.post);
  sinkhorn(f, b, at, in);
  weigh_streams(s, b);
  store(f.hin.at(at, in), b.hin);
}

template <class T, class A = Compute<T>>
void sweep(const Call& call) {
  const MhcForward<T> f = read_mhc_forward<T>(call);
  const MhcSizes& s = f.sizes;
  const bool copy_phi = f.phi.stride[1] != 1;
  Carver carver = call.workspace();
  const TokenBuffer<A> b(carver, s, copy_phi);
  for (int64_t m = 0; copy_phi && m < s.mixes(); ++m) {
    load(f.phi.at(m), b.phi + m * s.width());
  }
  const A* phi = copy_phi ? b.phi : f.phi.data;
  const int64_t row_stride = copy_phi ? s.width() : f.phi.stride[0];
  for (int64_t at = 0; at < s.batch; ++at) {
    for (int64_t in = 0; in < s.sequence; ++in) {
      run_token(f, b, phi, row_stride, at, in);
    }
  }
}

}  // namespace

void run_mhc_fused(const Call& call) {
  by_dtype<Half, BFloat16, double>(call.input("x"), [&](auto type) { sweep<typename decltype(type)::type>(call); });
}

size_t mhc_fused_workspace(const Call& call) {
  Carver carver;
  by_dtype<Half, BFloat16, double>(call.input("x"), [&](auto type) {
    using T = typename decltype(type)::type;
    const MhcForward<T> f = read_mhc_forward<T>(call);
    TokenBuffer<Compute<T>>(carver, f.sizes, f.phi.stride[1] != 1);
  });
  return carver.bytes();
}

}  // namespace fusediff::builtin
