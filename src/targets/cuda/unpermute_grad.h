// moe_unpermute_grad. Fused: after the map is checked, a block of threads for each pick computes the dot product and
// writes its row of grad_in. Unfused: zeros, index_copy of the weighted gradients, gather and multiply, sum.
#pragma once

#include "cuda/row_map.h"

namespace fusediff::cuda {

template <class T>
struct UnpermuteGrad {
  int64_t tokens, picks, rows, columns;
  Strided<const T, 2> grad_out, in;
  RowMap map;
  Probs<T> probs;
  Strided<T, 2> grad_in;
  Strided<Compute<T>, 2> grad_probs;  // not present: not wanted
};

// REJECTED where the shapes do not fit each other (readers.cpp).
template <class T>
UnpermuteGrad<T> read_unpermute_grad(const kit::Call& call);

template <class T>
struct UnpermuteGradBuffers {
  int32_t* flag;
  int64_t* pick_of;              // [rows]
  Compute<T>*product, *partial;  // [T, K, H], [T, K, 16]; unfused only

  UnpermuteGradBuffers(kit::Carver& carver, const UnpermuteGrad<T>& g, bool fused)
      : flag(carver.take<int32_t>(1)),
        pick_of(carver.take<int64_t>(g.rows)),
        product(carver.take<Compute<T>>(fused ? 0 : g.tokens * g.picks * g.columns)),
        partial(carver.take<Compute<T>>(fused ? 0 : g.tokens * g.picks * kLanes)) {}
};

template <class T, class Stream>
void unpermute_grad_fused(Stream& stream, const kit::Call& call) {
  using A = Compute<T>;
  using Block = typename Stream::Block;
  const UnpermuteGrad<T> g = read_unpermute_grad<T>(call);
  kit::Carver carver = call.workspace();
  const UnpermuteGradBuffers<T> b(carver, g, true);
  check_row_map(stream, g.map, g.rows, b.flag);
  invert_row_map(stream, g.map, g.rows, b.pick_of, b.flag);
  stream.elements(
      g.rows * g.columns, FUSEDIFF_KERNEL(int64_t i) {
        if (b.pick_of[i / g.columns] < 0) {
          g.grad_in(i / g.columns, i % g.columns) = T{};
        }
      });
  stream.blocks(
      g.tokens * g.picks, kLanes * sizeof(A), FUSEDIFF_KERNEL(const Block& block, int64_t slot) {
        const int64_t t = slot / g.picks, k = slot % g.picks;
        const int64_t row = g.map(k, t);
        A* partial = reinterpret_cast<A*>(block.shared());
        block.each([&](int lane) {
          A sum = 0;
          for (int64_t h = lane; row >= 0 && lane < kLanes && h < g.columns; h += kLanes) {
            sum += widen(g.grad_out(t, h)) * widen(g.in(row, h));
          }
          if (lane < kLanes) {
            partial[lane] = sum;
          }
        });
        block.each([&](int lane) {
          if (lane == 0 && g.grad_probs.present()) {
            g.grad_probs(t, k) = row < 0 ? A(0) : fold_lanes(partial);
          }
          const A weight = g.probs.present() ? g.probs(t, k) : A(1);
          for (int64_t h = lane; row >= 0 && h < g.columns; h += kThreads) {
            g.grad_in(row, h) = as_dtype<T>(weight * widen(g.grad_out(t, h)));
          }
        });
      });
}

template <class T, class Stream>
void unpermute_grad_unfused(Stream& stream, const kit::Call& call) {
  using A = Compute<T>;
  const UnpermuteGrad<T> g = read_unpermute_grad<T>(call);
  kit::Carver carver = call.workspace();
  const UnpermuteGradBuffers<T> b(carver, g, false);
  const int64_t columns = g.columns, picks = g.picks, all = g.tokens * picks * columns;
  check_row_map(stream, g.map, g.rows, b.flag);
  invert_row_map(stream, g.map, g.rows, b.pick_of, b.flag);
  stream.elements(
      g.rows * columns, FUSEDIFF_KERNEL(int64_t i) { g.grad_in(i / columns, i % columns) = T{}; });
  stream.elements(
      all, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t t = i / columns / picks, k = i / columns % picks, h = i % columns;
        const int64_t row = g.map(k, t);
        if (row >= 0) {
          const A gradient = widen(g.grad_out(t, h));
          g.grad_in(row, h) = as_dtype<T>(g.probs.present() ? g.probs(t, k) * gradient : gradient);
        }
      });
  if (!g.grad_probs.present()) {
    return;
  }
  stream.elements(
      all, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t t = i / columns / picks, k = i / columns % picks, h = i % columns;
        const int64_t row = g.map(k, t);
        b.product[i] = row < 0 ? A(0) : widen(g.grad_out(t, h)) * widen(g.in(row, h));
      });
  stream.elements(
      g.tokens * picks * kLanes, FUSEDIFF_KERNEL(int64_t i) {
        A sum = 0;
        for (int64_t h = i % kLanes; h < columns; h += kLanes) {
          sum += b.product[i / kLanes * columns + h];
        }
        b.partial[i] = sum;
      });
  stream.elements(
      g.tokens * picks, FUSEDIFF_KERNEL(int64_t slot) {
        const int64_t t = slot / picks, k = slot % picks;
        g.grad_probs(t, k) = g.map(k, t) < 0 ? A(0) : fold_lanes(b.partial + slot * kLanes);
      });
}

template <class T>
size_t unpermute_grad_workspace(const kit::Call& call, bool fused) {
  kit::Carver carver;
  UnpermuteGradBuffers<T>(carver, read_unpermute_grad<T>(call), fused);
  return carver.bytes();
}

}  // namespace fusediff::cuda
