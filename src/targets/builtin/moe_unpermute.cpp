// moe_unpermute: each token is the sum over its picks, in their order, of their rows times their probabilities; picks
// that were cut off are skipped. Source: Transformer Engine moe_unpermute, index map. An f32 product and an f32 sum,
// each rounded to the storage dtype as well where `compute` is storage.
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
  "name": "moe_unpermute",
  "paths": ["fused", "unfused"],
  "dims": {"T": {"range": [0, 128], "typical": [1, 2, 8, 16, 64]},
           "H": {"range": [1, 512], "typical": [1, 8, 16, 32, 64, 128, 256]},
           "K": {"range": [1, 8], "typical": [1, 2, 4, 8]}, "E": {"range": [1, 64], "typical": [4, 8, 16, 64]},
           "N": {"range": [0, 1024]}},
  "attrs": [{"name": "compute", "choice": ["f32", "storage"], "default": "f32"}],
  "where": ["K >= 1", "K <= 128", "K <= E", "N <= T * K"],
  "given": [
    {"name": "tokens",  "shape": ["T", "H"], "dtype": "=in"},
    {"name": "indices", "shape": ["T", "K"], "dtype": "i32", "role": "index", "range": [0, "E - 1"],
     "distinct": true}],
  "inputs": [
    {"name": "in", "shape": ["N", "H"], "dtype": ["f32", "f16", "bf16", "f8e5m2", "f8e4m3fn"], "layout": "any"},
    {"name": "row_id_map", "shape": ["K", "T"], "dtype": "i32", "role": "saved", "layout": "any",
     "saved": {"op": "moe_permute", "output": "row_id_map", "inputs": {"tokens": "tokens", "indices": "indices"}}},
    {"name": "probs", "shape": ["T", "K"], "dtype": "f32", "role": "probability", "optional": true, "layout": "any"}],
  "outputs": [
    {"name": "out", "shape": ["T", "H"], "dtype": "=in", "stage": 1, "layout": "any",
     "bound": {"ulp": "2 * K", "of": "abs_inputs",
               "why": "S is the sum of absolute terms. K products, and K - 1 additions after the first, which adds to zero: each rounds once in the precision that is kept, by half a unit of a term or a partial sum, subnormal or not. These are at most S (1 + u)^K < 2 S for K <= 128 and u <= 2^-8 (8-bit dtypes keep theirs in f16), so half a unit is at most one ULP of S: 2 K - 1. One more for the last rounding into the dtype where f32 or f16 was kept (the others are then below 2^-6 ULP each) and for the f32 operation beneath a storage one. After Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 4.2"}}],
  "rows": {"dim": "T", "inputs": ["row_id_map", "probs"], "outputs": "all"}
})";

template <class T>
struct Unpermute {
  View<const T, 2> in;
  RowMap map;
  Probs<T> probs;
  View<T, 2> out;
};

// REJECTED where the shapes do not fit each other.
template <class T>
Unpermute<T> read(const Call& call) {
  Unpermute<T> u{call.input("in").view<const T, 2>(), {}, {}, call.output("out").view<T, 2>()};
  u.map = read_row_map(call, u.out.shape[0], u.in.shape[0]);
  u.probs = read_probs<T>(call, u.out.shape[0], u.map.shape[0]);
  require(u.in.shape[1] == u.out.shape[1], "in and out differ in their last dimension");
  return u;
}

// Token by token, a tile of columns at a time.
template <class T, bool kStorage>
void sum_fused(const Call& call) {
  const Unpermute<T> u = read<T>(call);
  const int64_t columns = u.in.shape[1];
  Compute<T> sum[kTile];
  Compute<T> term[kTile];
  for (int64_t t = 0; t < u.out.shape[0]; ++t) {
    for (int64_t from = 0; from < columns; from += kTile) {
      const int64_t n = std::min(kTile, columns - from);
      std::fill_n(sum, n, Compute<T>{0});
      for (int64_t k = 0; k < u.map.shape[0]; ++k) {
        const int64_t row = u.map(k, t);
        if (row < 0) {
          continue;
        }
        const Compute<T> weight = u.probs ? u.probs(t, k) : Compute<T>{1};
        load(u.in.at(row).part(from, n), term);
        for (int64_t i = 0; i < n; ++i) {
          sum[i] = kept<T, kStorage>(sum[i] + kept<T, kStorage>(weight * term[i]));
        }
      }
      store(u.out.at(t).part(from, n), sum);
    }
  }
}

// The intermediate tensors of the composition, [tokens * picks, columns].
template <class T>
struct Spread {
  std::vector<T> rows;
  std::vector<Compute<T>> products;
};

// Zeros, then index_copy, for `tokens` tokens from `first` on.
template <class T>
void spread_rows(const Unpermute<T>& u, int64_t first, int64_t tokens, Spread<T>& s) {
  const int64_t picks = u.map.shape[0];
  const int64_t columns = u.in.shape[1];
  std::fill(s.rows.begin(), s.rows.end(), T{});
  for (int64_t slot = 0; slot < tokens * picks; ++slot) {
    const int64_t row = u.map(slot % picks, first + slot / picks);
    for (int64_t h = 0; row >= 0 && h < columns; ++h) {
      s.rows[static_cast<size_t>(slot * columns + h)] = u.in(row, h);
    }
  }
}

// Times the probabilities (which promote the rows to f32), zeros where a pick was cut off.
template <class T, bool kStorage>
void multiply(const Unpermute<T>& u, int64_t first, int64_t tokens, Spread<T>& s) {
  const int64_t picks = u.map.shape[0];
  const int64_t columns = u.in.shape[1];
  for (int64_t slot = 0; slot < tokens * picks; ++slot) {
    const int64_t t = first + slot / picks;
    const int64_t k = slot % picks;
    for (int64_t h = 0; h < columns; ++h) {
      const size_t at = static_cast<size_t>(slot * columns + h);
      const Compute<T> value = convert<Compute<T>>(s.rows[at]);
      const Compute<T> product = u.probs ? value * u.probs(t, k) : value;
      s.products[at] = u.map(k, t) < 0 ? Compute<T>{0} : kept<T, kStorage>(product);
    }
  }
}

// Zeros, index_copy, multiply, sum over the picks; some tokens at a time, so that the intermediate tensors stay small.
template <class T, bool kStorage>
void sum_unfused(const Call& call) {
  const Unpermute<T> u = read<T>(call);
  const int64_t columns = u.in.shape[1];
  const int64_t picks = u.map.shape[0];
  Spread<T> s;
  s.rows.resize(static_cast<size_t>(kTokens * picks * columns));
  s.products.resize(s.rows.size());
  for (int64_t first = 0; first < u.out.shape[0]; first += kTokens) {
    const int64_t tokens = std::min(kTokens, u.out.shape[0] - first);
    spread_rows(u, first, tokens, s);
    multiply<T, kStorage>(u, first, tokens, s);
    for (int64_t t = 0; t < tokens; ++t) {
      for (int64_t h = 0; h < columns; ++h) {
        Compute<T> sum = 0;
        for (int64_t k = 0; k < picks; ++k) {
          sum = kept<T, kStorage>(sum + s.products[static_cast<size_t>((t * picks + k) * columns + h)]);
        }
        u.out(first + t, h) = convert<T>(sum);
      }
    }
  }
}

void fused(const Call& call) {
  by_dtype_and_compute(call, call.input("in"), [&](auto type, auto storage) {
    sum_fused<typename decltype(type)::type, decltype(storage)::value>(call);
  });
}

void unfused(const Call& call) {
  by_dtype_and_compute(call, call.input("in"), [&](auto type, auto storage) {
    sum_unfused<typename decltype(type)::type, decltype(storage)::value>(call);
  });
}

}  // namespace

constinit const Operator kMoeUnpermute{"moe_unpermute", kSchema, {{"fused", fused}, {"unfused", unfused}}};

}  // namespace fusediff::builtin
