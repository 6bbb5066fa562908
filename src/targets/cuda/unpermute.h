// moe_permute_grad and moe_unpermute, which are one sum over picks, without and with probabilities. Fused: one kernel,
// a thread for each element. Unfused: zeros, index_copy, multiply, sum.
#pragma once

#include "cuda/row_map.h"

namespace fusediff::cuda {

template <class T>
struct SumOverPicks {
  int64_t tokens, picks, rows, columns;
  bool storage;
  Strided<const T, 2> in;
  RowMap map;
  Probs<T> probs;
  Strided<T, 2> out;
};

// REJECTED where the shapes do not fit each other (readers.cpp).
template <class T>
SumOverPicks<T> read_permute_grad(const kit::Call& call);
template <class T>
SumOverPicks<T> read_unpermute(const kit::Call& call);

template <class T, class Stream>
void sum_fused(Stream& stream, const kit::Call& call, const SumOverPicks<T>& u) {
  using A = Compute<T>;
  check_row_map(stream, u.map, u.rows, call.workspace().take<int32_t>(1));
  stream.elements(
      u.tokens * u.columns, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t t = i / u.columns, h = i % u.columns;
        A sum = 0;
        for (int64_t k = 0; k < u.picks; ++k) {
          const int64_t row = u.map(k, t);
          if (row >= 0) {
            const A value = widen(u.in(row, h));
            const A term = u.probs.present() ? kept<T>(u.probs(t, k) * value, u.storage) : value;
            sum = kept<T>(sum + term, u.storage);
          }
        }
        u.out(t, h) = as_dtype<T>(sum);
      });
}

template <class T>
struct SumBuffers {
  int32_t* flag;
  T* spread;            // [T, K, H]
  Compute<T>* product;  // [T, K, H]

  SumBuffers(kit::Carver carver, const SumOverPicks<T>& u, size_t* bytes = nullptr)
      : flag(carver.take<int32_t>(1)),
        spread(carver.take<T>(u.tokens * u.picks * u.columns)),
        product(carver.take<Compute<T>>(u.tokens * u.picks * u.columns)) {
    if (bytes != nullptr) {
      *bytes = carver.bytes();
    }
  }
};

template <class T, class Stream>
void sum_unfused(Stream& stream, const kit::Call& call, const SumOverPicks<T>& u) {
  using A = Compute<T>;
  const SumBuffers<T> b(call.workspace(), u);
  const int64_t columns = u.columns, picks = u.picks, all = u.tokens * picks * columns;
  check_row_map(stream, u.map, u.rows, b.flag);
  stream.elements(
      all, FUSEDIFF_KERNEL(int64_t i) { b.spread[i] = T{}; });
  stream.elements(
      all, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t slot = i / columns;
        const int64_t row = u.map(slot % picks, slot / picks);
        if (row >= 0) {
          b.spread[i] = u.in(row, i % columns);
        }
      });
  stream.elements(
      all, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t t = i / columns / picks, k = i / columns % picks;
        const A value = widen(b.spread[i]);
        const A product = u.probs.present() ? kept<T>(value * u.probs(t, k), u.storage) : value;
        b.product[i] = u.map(k, t) < 0 ? A(0) : product;
      });
  stream.elements(
      u.tokens * columns, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t t = i / columns, h = i % columns;
        A sum = 0;
        for (int64_t k = 0; k < picks; ++k) {
          sum = kept<T>(sum + b.product[(t * picks + k) * columns + h], u.storage);
        }
        u.out(t, h) = as_dtype<T>(sum);
      });
}

template <class T>
size_t sum_unfused_workspace(const SumOverPicks<T>& u) {
  size_t bytes = 0;
  SumBuffers<T>(kit::Carver(), u, &bytes);
  return bytes;
}

inline size_t sum_fused_workspace(const kit::Call&) {
  kit::Carver carver;
  carver.take<int32_t>(1);
  return carver.bytes();
}

}  // namespace fusediff::cuda
