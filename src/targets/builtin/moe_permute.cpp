// moe_permute: copies each token to the rows of its picks, rows sorted by expert. Pure moves: every path gives the same
// bits, NaN payloads included. Source: Transformer Engine moe_permute, index map.
#include <algorithm>
#include <numeric>
#include <vector>

#include "builtin/operators.h"
#include "builtin/row_map.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "moe_permute",
  "paths": ["fused", "unfused"],
  "dims": {"T": {"range": [0, 128], "typical": [1, 2, 8, 16, 64]},
           "H": {"range": [1, 512], "typical": [1, 8, 16, 32, 64, 128, 256]},
           "K": {"range": [1, 8], "typical": [1, 2, 4, 8]}, "E": {"range": [1, 64], "typical": [4, 8, 16, 64]},
           "N": {"range": [0, 1024]}},
  "attrs": [{"name": "num_out_tokens", "int": "N"}],
  "where": ["K >= 1", "K <= 128", "K <= E", "N <= T * K"],
  "inputs": [
    {"name": "tokens",  "shape": ["T", "H"], "dtype": ["f32", "f16", "bf16", "f8e5m2", "f8e4m3fn"], "layout": "any"},
    {"name": "indices", "shape": ["T", "K"], "dtype": "i32", "role": "index", "range": [0, "E - 1"], "distinct": true,
     "layout": "any"}],
  "outputs": [
    {"name": "row_id_map", "shape": ["K", "T"], "dtype": "i32", "stage": 1, "layout": "any",
     "always": [{"range": [-1, "N - 1"]}]},
    {"name": "out", "shape": ["N", "H"], "dtype": "=tokens", "stage": 2, "layout": "any", "nan": "bits",
     "bound": {"ulp": "0", "of": "element", "why": "a copy rounds nothing"}}]
})";

template <class T>
struct Permute {
  View<const T, 2> tokens;
  View<const int32_t, 2> indices;
  View<int32_t, 2> row_id_map;
  View<T, 2> out;
};

// REJECTED where a rule of the schema is broken.
template <class T>
Permute<T> read(const Call& call) {
  Permute<T> p{call.input("tokens").view<const T, 2>(), call.input("indices").view<const int32_t, 2>(),
               call.output("row_id_map").view<int32_t, 2>(), call.output("out").view<T, 2>()};
  const int64_t tokens = p.tokens.shape[0];
  const int64_t picks = p.indices.shape[1];
  const int64_t rows = call.integer("num_out_tokens");
  require(picks >= 1 && picks <= kMaxPicks, "indices must have 1 to 128 picks, not ", picks);
  require(rows >= 0 && rows <= tokens * picks, "num_out_tokens must be 0 to ", tokens * picks, ", not ", rows);
  call.input("indices").require_shape({tokens, picks});
  call.output("row_id_map").require_shape({picks, tokens});
  call.output("out").require_shape({rows, p.tokens.shape[1]});
  return p;
}

template <class T>
void copy_row(const Row<const T>& from, const Row<T>& to) {
  if (from.stride[0] == 1 && to.stride[0] == 1) {
    std::copy_n(from.data, from.shape[0], to.data);
  } else {
    for (int64_t h = 0; h < from.shape[0]; ++h) {
      to(h) = from(h);
    }
  }
}

// Expert and flat position in one key: sorting the keys sorts stably by expert.
uint64_t key_of(int32_t expert, int64_t flat) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(expert) ^ 0x80000000u) << 32) | static_cast<uint64_t>(flat);
}

size_t fused_workspace(const Call& call) {
  Carver carver;
  carver.take<uint64_t>(call.input("indices").count());
  return carver.bytes();
}

// Sorts keys; then reads each token once and writes it to the rows of all its picks.
template <class T>
void permute_fused(const Call& call) {
  const Permute<T> p = read<T>(call);
  const int64_t tokens = p.tokens.shape[0];
  const int64_t picks = p.indices.shape[1];
  const int64_t rows = p.out.shape[0];
  uint64_t* keys = call.workspace().take<uint64_t>(tokens * picks);
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t k = 0; k < picks; ++k) {
      keys[t * picks + k] = key_of(p.indices(t, k), t * picks + k);
    }
  }
  std::sort(keys, keys + tokens * picks);
  for (int64_t row = 0; row < tokens * picks; ++row) {
    const int64_t flat = static_cast<int64_t>(keys[row] & 0xffffffffu);
    p.row_id_map(flat % picks, flat / picks) = row < rows ? static_cast<int32_t>(row) : -1;
  }
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t k = 0; k < picks; ++k) {
      const int64_t row = p.row_id_map(k, t);
      if (row >= 0) {
        copy_row(p.tokens.at(t), p.out.at(row));
      }
    }
  }
}

// Flatten, argsort, index_select, and the inverse of the order.
template <class T>
void permute_unfused(const Call& call) {
  const Permute<T> p = read<T>(call);
  const int64_t picks = p.indices.shape[1];
  const int64_t count = p.tokens.shape[0] * picks;
  const int64_t rows = p.out.shape[0];
  std::vector<int32_t> experts(static_cast<size_t>(count));
  for (int64_t flat = 0; flat < count; ++flat) {
    experts[static_cast<size_t>(flat)] = p.indices(flat / picks, flat % picks);
  }
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return experts[static_cast<size_t>(a)] < experts[static_cast<size_t>(b)];
  });
  for (int64_t row = 0; row < rows; ++row) {
    copy_row(p.tokens.at(order[static_cast<size_t>(row)] / picks), p.out.at(row));
  }
  for (int64_t row = 0; row < count; ++row) {
    const int64_t flat = order[static_cast<size_t>(row)];
    p.row_id_map(flat % picks, flat / picks) = row < rows ? static_cast<int32_t>(row) : -1;
  }
}

void fused(const Call& call) {
  by_dtype<float, Half, BFloat16, double, F8E4M3, F8E5M2>(
      call.input("tokens"), [&](auto type) { permute_fused<typename decltype(type)::type>(call); });
}

void unfused(const Call& call) {
  by_dtype<float, Half, BFloat16, double, F8E4M3, F8E5M2>(
      call.input("tokens"), [&](auto type) { permute_unfused<typename decltype(type)::type>(call); });
}

}  // namespace

constinit const Operator kMoePermute{"moe_permute", kSchema, {{"fused", fused, fused_workspace}, {"unfused", unfused}}};

}  // namespace fusediff::builtin
