// add: y = a + b, elementwise, in every float dtype; rounded once from the sum in the compute type.
#include <algorithm>
#include <array>

#include "builtin/operators.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr int64_t kTile = 64;

constexpr char kSchema[] = R"({
  "name": "add",
  "paths": ["fused", "unfused"],
  "dims": {"R": {"range": [0, 256]}, "C": {"range": [0, 1024], "typical": [1, 16, 64, 128, 512]}},
  "inputs": [
    {"name": "a", "shape": ["R", "C"], "dtype": ["f32", "f16", "bf16", "f64", "f8e4m3fn", "f8e5m2"], "layout": "any"},
    {"name": "b", "shape": ["R", "C"], "dtype": "=a", "layout": "any"}],
  "outputs": [
    {"name": "y", "shape": ["R", "C"], "dtype": "=a", "layout": "any", "stage": 1,
     "bound": {"ulp": "1", "of": "element",
               "why": "one IEEE addition: half a unit in the last place. Narrow dtypes: the f32 sum of two of them, then one rounding; twice rounded is within half a unit and 2^-12 of one, below 1"}}],
  "rows": {"dim": "R", "inputs": ["a", "b"], "outputs": "all"},
  "inplace": [["y", "a"], ["y", "b"]]
})";

// One element after another.
template <class T>
void add_elements(const Call& call) {
  const std::array tensors{call.output("y"), call.input("a"), call.input("b")};
  for_each_row<T>(tensors, [](const auto& row) {
    const auto& [y, a, b] = row;
    for (int64_t i = 0; i < y.shape[0]; ++i) {
      y(i) = convert<T>(convert<Compute<T>>(a(i)) + convert<Compute<T>>(b(i)));
    }
  });
}

// Tiles: widen both, add, narrow.
template <class T>
void add_tiles(const Call& call) {
  using A = Compute<T>;
  const std::array tensors{call.output("y"), call.input("a"), call.input("b")};
  for_each_row<T>(tensors, [](const auto& row) {
    const auto& [y, a, b] = row;
    A left[kTile];
    A right[kTile];
    for (int64_t from = 0; from < y.shape[0]; from += kTile) {
      const int64_t n = std::min(kTile, y.shape[0] - from);
      load(a.part(from, n), left);
      load(b.part(from, n), right);
      for (int64_t i = 0; i < n; ++i) {
        left[i] += right[i];
      }
      store(y.part(from, n), left);
    }
  });
}

void unfused(const Call& call) {
  by_dtype<float, Half, BFloat16, double, F8E4M3, F8E5M2>(
      call.input("a"), [&](auto type) { add_elements<typename decltype(type)::type>(call); });
}

void fused(const Call& call) {
  by_dtype<float, Half, BFloat16, double, F8E4M3, F8E5M2>(
      call.input("a"), [&](auto type) { add_tiles<typename decltype(type)::type>(call); });
}

}  // namespace

constinit const Operator kAdd{"add", kSchema, {{"fused", fused}, {"unfused", unfused}}};

}  // namespace fusediff::builtin
