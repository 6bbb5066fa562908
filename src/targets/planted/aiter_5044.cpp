// EXPECT: class=overrun op=rms_norm experiment=pair output=y
// Rows are stored four values at a time without a tail mask: where the width is no multiple of four, a row writes over
// the head of the next one, which then writes its own, and the last row writes behind the tensor. From aiter 5044.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "planted/planted.h"

namespace fusediff::planted {
namespace {

using namespace kit;

constexpr int64_t kVector = 4;

constexpr char kSchema[] = R"({
  "name": "rms_norm",
  "paths": ["fused", "unfused"],
  "dims": {"R": {"range": [0, 64], "typical": [1, 2, 8]}, "C": {"range": [1, 512], "typical": [8, 64, 128, 256]}},
  "attrs": [{"name": "eps", "float": [1e-12, 1e-2], "scale": "log", "default": 1e-6}],
  "where": ["C >= 1"],
  "inputs": [
    {"name": "x",      "shape": ["R", "C"], "dtype": ["f32", "f16", "bf16"], "layout": "inner_dense"},
    {"name": "weight", "shape": ["C"],      "dtype": "=x"}],
  "outputs": [
    {"name": "y", "shape": ["R", "C"], "dtype": "=x", "stage": 1, "layout": "inner_dense",
     "bound": {"ulp": "C + 8", "of": "element",
               "why": "f32, relative: the sum of C squares has positive terms, (1 + u)^(C + 1); divided by C, eps added: C + 3 roundings, halved by the square root; root, reciprocal, two products and the rounding into the dtype: 5 more. An ULP is at least u times the element: C / 2 + 7 and second-order terms. After Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1"}}],
  "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"}
})";

template <class A>
A scale_of(const A* row, int64_t n, A eps) {
  A sum = 0;
  for (int64_t c = 0; c < n; ++c) {
    sum += row[c] * row[c];
  }
  return 1 / std::sqrt(sum / static_cast<A>(n) + eps);
}

template <class T>
void norm_fused(const Call& call) {
  using A = Compute<T>;
  const auto x = call.input("x").view<const T, 2>();
  const auto y = call.output("y").view<T, 2>();
  const int64_t columns = x.shape[1];
  // Whole vectors, so that arithmetic needs no tail either.
  const auto padded = static_cast<size_t>((columns + kVector - 1) / kVector * kVector);
  std::vector<A> row(padded);
  std::vector<A> weight(padded);
  std::vector<T> packed(padded);
  load(call.input("weight").view<const T, 1>(), weight.data());
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    load(x.at(r), row.data());
    const A scale = scale_of(row.data(), columns, static_cast<A>(call.real("eps")));
    for (size_t c = 0; c < padded; ++c) {
      packed[c] = convert<T>(row[c] * scale * weight[c]);
    }
    T* to = y.at(r).data;
    for (int64_t c = 0; c < columns; c += kVector) {
      const int64_t n = kFaulty ? kVector : std::min(kVector, columns - c);
      std::memcpy(to + c, packed.data() + c, static_cast<size_t>(n) * sizeof(T));
    }
  }
}

template <class T>
void norm_unfused(const Call& call) {
  using A = Compute<T>;
  const auto x = call.input("x").view<const T, 2>();
  const auto weight = call.input("weight").view<const T, 1>();
  const auto y = call.output("y").view<T, 2>();
  std::vector<A> row(static_cast<size_t>(x.shape[1]));
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    load(x.at(r), row.data());
    const A scale = scale_of(row.data(), x.shape[1], static_cast<A>(call.real("eps")));
    for (int64_t c = 0; c < x.shape[1]; ++c) {
      y(r, c) = convert<T>(row[static_cast<size_t>(c)] * scale * convert<A>(weight(c)));
    }
  }
}

void fused(const Call& call) {
  by_dtype<float, Half, BFloat16>(call.input("x"), [&](auto type) { norm_fused<typename decltype(type)::type>(call); });
}

void unfused(const Call& call) {
  by_dtype<float, Half, BFloat16, double>(call.input("x"),
                                          [&](auto type) { norm_unfused<typename decltype(type)::type>(call); });
}

}  // namespace

constinit const Operator kAiter5044{"rms_norm", kSchema, {{"fused", fused}, {"unfused", unfused}}};

}  // namespace fusediff::planted

PLANTED_TARGET("aiter_5044", fusediff::planted::kAiter5044);
