// add and sigmoid: fused is one kernel; unfused reads into dense memory of the compute type, computes there, and writes
// back. The controls of the target: known to be clean.
#pragma once

#include "cuda/strided.h"
#include "kit/target.h"

namespace fusediff::cuda {

template <class T>
struct Elementwise {
  Strided<const T, 2> a, b;  // b: add only
  Strided<T, 2> y;
  int64_t count, columns;
};

// REJECTED where the shapes differ. `b` may be null. Defined in readers.cpp, as every read_ function: for the host
// alone.
template <class T>
Elementwise<T> read_elementwise(const kit::Call& call, const char* a, const char* b);

template <class T, class Stream>
void dense_of(Stream& stream, const Strided<const T, 2>& from, int64_t count, int64_t columns, Compute<T>* to) {
  stream.elements(
      count, FUSEDIFF_KERNEL(int64_t i) { to[i] = widen(from(i / columns, i % columns)); });
}

template <class T, class Stream>
void add_fused(Stream& stream, const kit::Call& call) {
  const Elementwise<T> e = read_elementwise<T>(call, "a", "b");
  stream.elements(
      e.count, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t r = i / e.columns, c = i % e.columns;
        e.y(r, c) = as_dtype<T>(widen(e.a(r, c)) + widen(e.b(r, c)));
      });
}

template <class T, class Stream>
void add_unfused(Stream& stream, const kit::Call& call) {
  const Elementwise<T> e = read_elementwise<T>(call, "a", "b");
  kit::Carver carver = call.workspace();
  Compute<T>* a = carver.take<Compute<T>>(e.count);
  Compute<T>* b = carver.take<Compute<T>>(e.count);
  dense_of(stream, e.a, e.count, e.columns, a);
  dense_of(stream, e.b, e.count, e.columns, b);
  stream.elements(
      e.count, FUSEDIFF_KERNEL(int64_t i) { a[i] += b[i]; });
  stream.elements(
      e.count, FUSEDIFF_KERNEL(int64_t i) { e.y(i / e.columns, i % e.columns) = as_dtype<T>(a[i]); });
}

template <class T, class Stream>
void sigmoid_fused(Stream& stream, const kit::Call& call) {
  const Elementwise<T> e = read_elementwise<T>(call, "x", nullptr);
  stream.elements(
      e.count, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t r = i / e.columns, c = i % e.columns;
        e.y(r, c) = as_dtype<T>(sigmoid(widen(e.a(r, c))));
      });
}

template <class T, class Stream>
void sigmoid_unfused(Stream& stream, const kit::Call& call) {
  const Elementwise<T> e = read_elementwise<T>(call, "x", nullptr);
  Compute<T>* x = call.workspace().take<Compute<T>>(e.count);
  dense_of(stream, e.a, e.count, e.columns, x);
  stream.elements(
      e.count, FUSEDIFF_KERNEL(int64_t i) { x[i] = sigmoid(x[i]); });
  stream.elements(
      e.count, FUSEDIFF_KERNEL(int64_t i) { e.y(i / e.columns, i % e.columns) = as_dtype<T>(x[i]); });
}

// Bytes of both unfused paths.
template <class T>
size_t elementwise_workspace(const kit::Call& call) {
  kit::Carver carver;
  for (size_t i = 0; i < call.raw().input_count; ++i) {
    carver.take<Compute<T>>(call.output("y").count());
  }
  return carver.bytes();
}

}  // namespace fusediff::cuda
