// sigmoid: y = 1 / (1 + exp(-x)), elementwise, in every float dtype; evaluated in the compute type and rounded.
#include <algorithm>
#include <array>

#include "builtin/exponential.h"
#include "builtin/exponential_rows.h"
#include "builtin/operators.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr int64_t kTile = 64;

constexpr char kSchema[] = R"({
  "name": "sigmoid",
  "paths": ["fused", "unfused"],
  "dims": {"R": {"range": [0, 256]}, "C": {"range": [0, 1024], "typical": [1, 16, 64, 128, 512]}},
  "inputs": [
    {"name": "x", "shape": ["R", "C"], "dtype": ["f32", "f16", "bf16", "f64", "f8e4m3fn", "f8e5m2"], "role": "score",
     "layout": "any"}],
  "outputs": [
    {"name": "y", "shape": ["R", "C"], "dtype": "=x", "layout": "any", "stage": 1,
     "always": [{"finite_if_inputs_finite": true}],
     "bound": {"ulp": {"f32": 8, "f64": 8, "f16": 2, "bf16": 2, "f8e4m3fn": 2, "f8e5m2": 2}, "of": "element",
               "why": "exp within 2 ULP, four units u of itself, sum and quotient one each: 6 u with products of changes below 7, and one ULP is at least u of the value. Narrow dtypes: that in f32, then half a unit. An exp that takes its argument as x log2(e) in f32 is off by more for large -x, and one that overflows leaves 0 for what is below 2^-128"}}],
  "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"},
  "inplace": [["y", "x"]]
})";

// One element after another.
template <class T>
void sigmoid_elements(const Call& call) {
  for_each_row<T>(std::array{call.output("y"), call.input("x")}, [](const auto& row) {
    const auto& [y, x] = row;
    for (int64_t i = 0; i < y.shape[0]; ++i) {
      y(i) = convert<T>(sigmoid(convert<Compute<T>>(x(i))));
    }
  });
}

// Tiles: widen, evaluate, narrow.
template <class T>
void sigmoid_tiles(const Call& call) {
  for_each_row<T>(std::array{call.output("y"), call.input("x")}, [](const auto& row) {
    const auto& [y, x] = row;
    Compute<T> tile[kTile];
    for (int64_t from = 0; from < y.shape[0]; from += kTile) {
      const int64_t n = std::min(kTile, y.shape[0] - from);
      load(x.part(from, n), tile);
      sigmoid_row(tile, n);
      store(y.part(from, n), tile);
    }
  });
}

void unfused(const Call& call) {
  by_dtype<float, Half, BFloat16, double, F8E4M3, F8E5M2>(
      call.input("x"), [&](auto type) { sigmoid_elements<typename decltype(type)::type>(call); });
}

void fused(const Call& call) {
  by_dtype<float, Half, BFloat16, double, F8E4M3, F8E5M2>(
      call.input("x"), [&](auto type) { sigmoid_tiles<typename decltype(type)::type>(call); });
}

}  // namespace

constinit const Operator kSigmoid{"sigmoid", kSchema, {{"fused", fused}, {"unfused", unfused}}};

}  // namespace fusediff::builtin
