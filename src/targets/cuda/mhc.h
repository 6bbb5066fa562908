// mhc_pre_sinkhorn and its gradient: the calls, read and checked by the built-in operator's own rules, as structs that
// a kernel may hold, and the arithmetic that every path does in the same order. A token is a pair of batch and
// sequence.
#pragma once

#include "cuda/strided.h"
#include "kit/target.h"

namespace fusediff::cuda {

struct MhcSizes {
  int64_t sequence, streams, channels, iterations, tokens, width, mixes;

  FUSEDIFF_HD int64_t square() const { return streams * streams; }
  // Which alpha scales column m of the mixes.
  FUSEDIFF_HD int64_t part_of(int64_t m) const { return m < streams ? 0 : m < 2 * streams ? 1 : 2; }
};

template <class T, class A = Compute<T>>
struct MhcForward {
  MhcSizes s;
  A hc_eps, norm_eps;
  Strided<const T, 4> x;
  Strided<const A, 2> phi;
  Strided<const A, 1> alpha, bias;
  Strided<T, 3> hin;
  Strided<A, 3> h_post;
  Strided<A, 4> h_res;
  Strided<A, 3> h_pre, hc_before_norm, inv_rms;  // from here on not present where not wanted
  Strided<A, 4> sum_out;
  Strided<A, 5> norm_out;

  // Element i of the flattened token t.
  FUSEDIFF_HD A value(int64_t t, int64_t i) const {
    return widen(x(t / s.sequence, t % s.sequence, i / s.channels, i % s.channels));
  }
};

template <class T, class A = Compute<T>>
struct MhcBackward {
  MhcSizes s;
  A hc_eps;
  Strided<const T, 3> grad_hin;
  Strided<const A, 3> grad_h_post;
  Strided<const A, 4> grad_h_res;
  Strided<const T, 4> x;
  Strided<const A, 2> phi;
  Strided<const A, 1> alpha, bias;
  Strided<const A, 3> h_pre, hc_before_norm, inv_rms;
  Strided<const A, 4> sum_out;
  Strided<const A, 5> norm_out;
  Strided<T, 4> grad_x;
  Strided<A, 2> grad_phi;
  Strided<A, 1> grad_alpha, grad_bias;

  FUSEDIFF_HD A value(int64_t t, int64_t i) const {
    return widen(x(t / s.sequence, t % s.sequence, i / s.channels, i % s.channels));
  }
  FUSEDIFF_HD A gradient(int64_t t, int64_t c) const { return widen(grad_hin(t / s.sequence, t % s.sequence, c)); }
  FUSEDIFF_HD A sum(int64_t half, int64_t t, int64_t i) const {
    return sum_out(half, t / s.sequence, t % s.sequence, i);
  }
  FUSEDIFF_HD A norm(int64_t half, int64_t t, int64_t i, int64_t j) const {
    return norm_out(half, t / s.sequence, t % s.sequence, i, j);
  }
};

// REJECTED where a rule of the schema is broken (readers.cpp).
template <class T>
MhcForward<T> read_mhc_forward(const kit::Call& call);
template <class T>
MhcBackward<T> read_mhc_backward(const kit::Call& call);

// Row i of an n x n matrix becomes its softmax plus eps; *sum: the sum of the exponentials.
template <class A>
FUSEDIFF_HD void softmax_row(A* row, int64_t n, A eps, A* sum) {
  A most = minus_infinity<A>();
  for (int64_t j = 0; j < n; ++j) {
    most = row[j] > most ? row[j] : most;
  }
  A total = 0;
  for (int64_t j = 0; j < n; ++j) {
    row[j] = exponential(row[j] - most);
    total += row[j];
  }
  for (int64_t j = 0; j < n; ++j) {
    row[j] = row[j] / total + eps;
  }
  *sum = total;
}

// `count` values, `step` apart, are divided by their sum plus eps; *sum: the divisor.
template <class A>
FUSEDIFF_HD void divide_by_sum(A* values, int64_t step, int64_t count, A eps, A* sum) {
  A total = 0;
  for (int64_t j = 0; j < count; ++j) {
    total += values[j * step];
  }
  total += eps;
  for (int64_t j = 0; j < count; ++j) {
    values[j * step] /= total;
  }
  *sum = total;
}

}  // namespace fusediff::cuda
