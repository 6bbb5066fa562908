// moe_permute_grad: the gradient of a token is the sum over its picks, in their order, of the gradients of their rows;
// picks that were cut off are skipped. Source: Transformer Engine moe_permute, backward.
#include <algorithm>
#include <vector>

#include "builtin/operators.h"
#include "builtin/row_map.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr int64_t kTile = 64;    // columns in registers
constexpr int64_t kTokens = 16;  // tokens a step of the composition

constexpr char kSchema[] = R"({
  "name": "moe_permute_grad",
  "paths": ["fused", "unfused"],
  "dims": {"T": {"range": [0, 128], "typical": [1, 2, 8, 16, 64]},
           "H": {"range": [1, 512], "typical": [1, 8, 16, 32, 64, 128, 256]},
           "K": {"range": [1, 8], "typical": [1, 2, 4, 8]}, "E": {"range": [1, 64], "typical": [4, 8, 16, 64]},
           "N": {"range": [0, 1024]}},
  "attrs": [{"name": "compute", "choice": ["f32", "storage"], "default": "f32"}],
  "where": ["K >= 1", "K <= 128", "K <= E", "N <= T * K"],
  "given": [
    {"name": "tokens",  "shape": ["T", "H"], "dtype": "=grad_out"},
    {"name": "indices", "shape": ["T", "K"], "dtype": "i32", "role": "index", "range": [0, "E - 1"],
     "distinct": true}],
  "inputs": [
    {"name": "grad_out", "shape": ["N", "H"], "dtype": ["f32", "f16", "bf16", "f8e5m2", "f8e4m3fn"],
     "role": "cotangent", "layout": "any"},
    {"name": "row_id_map", "shape": ["K", "T"], "dtype": "i32", "role": "saved", "layout": "any",
     "saved": {"op": "moe_permute", "output": "row_id_map", "inputs": {"tokens": "tokens", "indices": "indices"}}}],
  "outputs": [
    {"name": "grad_tokens", "shape": ["T", "H"], "dtype": "=grad_out", "stage": 1, "layout": "any",
     "bound": {"ulp": "K", "of": "abs_inputs",
               "why": "S is the sum of absolute terms. K - 1 additions after the first, which adds to zero: each rounds once in the precision that is kept, by half a unit of a partial sum. Partial sums are at most S (1 + u)^K < 2 S for K <= 128 and u <= 2^-8 (8-bit dtypes keep theirs in f16), so half a unit is at most one ULP of S: K - 1. One more for the last rounding into the dtype where f32 or f16 was kept (the additions are then below 2^-6 ULP each) and for the f32 addition beneath a storage one. After Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 4.2"}}],
  "rows": {"dim": "T", "inputs": ["row_id_map"], "outputs": "all"},
  "gradient": {"of": "moe_permute", "wrt": {"grad_tokens": "tokens"}, "cotangents": {"grad_out": "out"}}
})";

template <class T>
struct PermuteGrad {
  View<const T, 2> grad_out;
  RowMap map;
  View<T, 2> grad_tokens;
};

// REJECTED where the shapes do not fit each other.
template <class T>
PermuteGrad<T> read(const Call& call) {
  PermuteGrad<T> g{call.input("grad_out").view<const T, 2>(), {}, call.output("grad_tokens").view<T, 2>()};
  g.map = read_row_map(call, g.grad_tokens.shape[0], g.grad_out.shape[0]);
  require(g.grad_tokens.shape[1] == g.grad_out.shape[1], "grad_out and grad_tokens differ in their last dimension");
  return g;
}

// Token by token, a tile of columns at a time.
template <class T, bool kStorage>
void sum_fused(const Call& call) {
  const PermuteGrad<T> g = read<T>(call);
  const int64_t columns = g.grad_out.shape[1];
  Compute<T> sum[kTile];
  Compute<T> term[kTile];
  for (int64_t t = 0; t < g.grad_tokens.shape[0]; ++t) {
    for (int64_t from = 0; from < columns; from += kTile) {
      const int64_t n = std::min(kTile, columns - from);
      std::fill_n(sum, n, Compute<T>{0});
      for (int64_t k = 0; k < g.map.shape[0]; ++k) {
        const int64_t row = g.map(k, t);
        if (row < 0) {
          continue;
        }
        load(g.grad_out.at(row).part(from, n), term);
        for (int64_t i = 0; i < n; ++i) {
          sum[i] = kept<T, kStorage>(sum[i] + term[i]);
        }
      }
      store(g.grad_tokens.at(t).part(from, n), sum);
    }
  }
}

// Zeros, index_copy, sum over the picks; some tokens at a time, so that the intermediate tensor stays small.
template <class T, bool kStorage>
void sum_unfused(const Call& call) {
  const PermuteGrad<T> g = read<T>(call);
  const int64_t columns = g.grad_out.shape[1];
  const int64_t picks = g.map.shape[0];
  const int64_t all = g.grad_tokens.shape[0];
  std::vector<T> spread(static_cast<size_t>(kTokens * picks * columns));
  for (int64_t first = 0; first < all; first += kTokens) {
    const int64_t tokens = std::min(kTokens, all - first);
    std::fill(spread.begin(), spread.end(), T{});
    for (int64_t slot = 0; slot < tokens * picks; ++slot) {
      const int64_t row = g.map(slot % picks, first + slot / picks);
      for (int64_t h = 0; row >= 0 && h < columns; ++h) {
        spread[static_cast<size_t>(slot * columns + h)] = g.grad_out(row, h);
      }
    }
    for (int64_t t = 0; t < tokens; ++t) {
      for (int64_t h = 0; h < columns; ++h) {
        Compute<T> sum = 0;
        for (int64_t k = 0; k < picks; ++k) {
          const T term = spread[static_cast<size_t>((t * picks + k) * columns + h)];
          sum = kept<T, kStorage>(sum + convert<Compute<T>>(term));
        }
        g.grad_tokens(first + t, h) = convert<T>(sum);
      }
    }
  }
}

void fused(const Call& call) {
  by_dtype_and_compute(call, call.input("grad_out"), [&](auto type, auto storage) {
    sum_fused<typename decltype(type)::type, decltype(storage)::value>(call);
  });
}

void unfused(const Call& call) {
  by_dtype_and_compute(call, call.input("grad_out"), [&](auto type, auto storage) {
    sum_unfused<typename decltype(type)::type, decltype(storage)::value>(call);
  });
}

}  // namespace

constinit const Operator kMoePermuteGrad{"moe_permute_grad", kSchema, {{"fused", fused}, {"unfused", unfused}}};

}  // namespace fusediff::builtin
