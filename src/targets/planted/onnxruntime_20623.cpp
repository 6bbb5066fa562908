// EXPECT: class=input_changed op=layer_norm experiment=pair output=x
// Centres x in place, although x is an input, and then writes a correct y. From onnxruntime 20623.
#include <cmath>
#include <vector>

#include "planted/planted.h"

namespace fusediff::planted {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "layer_norm",
  "paths": ["fused", "unfused"],
  "dims": {"R": {"range": [0, 64], "typical": [1, 2, 8]}, "C": {"range": [1, 512], "typical": [8, 64, 128, 256]}},
  "attrs": [{"name": "eps", "float": [1e-12, 1e-2], "scale": "log", "default": 1e-5}],
  "where": ["C >= 1"],
  "inputs": [
    {"name": "x",     "shape": ["R", "C"], "dtype": "f32", "layout": "inner_dense"},
    {"name": "scale", "shape": ["C"],      "dtype": "f32"},
    {"name": "bias",  "shape": ["C"],      "dtype": "f32"}],
  "outputs": [{"name": "y", "shape": ["R", "C"], "dtype": "f32", "stage": 1, "layout": "inner_dense"}],
  "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"}
})";

template <class A>
A mean_of(const A* row, int64_t n) {
  A sum = 0;
  for (int64_t c = 0; c < n; ++c) {
    sum += row[c];
  }
  return sum / static_cast<A>(n);
}

template <class A>
A inverse_deviation(const A* centred, int64_t n, A eps) {
  A sum = 0;
  for (int64_t c = 0; c < n; ++c) {
    sum += centred[c] * centred[c];
  }
  return 1 / std::sqrt(sum / static_cast<A>(n) + eps);
}

void fused(const Call& call) {
  const auto x = call.input("x").view<const float, 2>();
  const auto scale = call.input("scale").view<const float, 1>();
  const auto bias = call.input("bias").view<const float, 1>();
  const auto y = call.output("y").view<float, 2>();
  const int64_t columns = x.shape[1];
  std::vector<float> own(static_cast<size_t>(columns));
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    const float* row = x.at(r).data;
    float* centred = kFaulty ? const_cast<float*>(row) : own.data();
    const float mean = mean_of(row, columns);
    for (int64_t c = 0; c < columns; ++c) {
      centred[c] = row[c] - mean;
    }
    const float inverse = inverse_deviation(centred, columns, static_cast<float>(call.real("eps")));
    for (int64_t c = 0; c < columns; ++c) {
      y(r, c) = centred[c] * inverse * scale(c) + bias(c);
    }
  }
}

template <class A>
void norm_unfused(const Call& call) {
  const auto x = call.input("x").view<const A, 2>();
  const auto scale = call.input("scale").view<const A, 1>();
  const auto bias = call.input("bias").view<const A, 1>();
  const auto y = call.output("y").view<A, 2>();
  std::vector<A> row(static_cast<size_t>(x.shape[1]));
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    load(x.at(r), row.data());
    const A mean = mean_of(row.data(), x.shape[1]);
    for (A& value : row) {
      value -= mean;
    }
    const A inverse = inverse_deviation(row.data(), x.shape[1], static_cast<A>(call.real("eps")));
    for (int64_t c = 0; c < x.shape[1]; ++c) {
      y(r, c) = row[static_cast<size_t>(c)] * inverse * scale(c) + bias(c);
    }
  }
}

void unfused(const Call& call) {
  by_dtype<float, double>(call.input("x"), [&](auto type) { norm_unfused<typename decltype(type)::type>(call); });
}

}  // namespace

constinit const Operator kOnnxruntime20623{"layer_norm", kSchema, {{"fused", fused}, {"unfused", unfused}}};

}  // namespace fusediff::planted

PLANTED_TARGET("onnxruntime_20623", fusediff::planted::kOnnxruntime20623);
