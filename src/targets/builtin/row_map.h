// What the operators of the moe_permute family share: the map from (pick, token) to a row, read and checked once, and
// the precision in which a sum over picks is kept. No path stands here.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "kit/target.h"

namespace fusediff::builtin {

// Picks a token. The bounds of the family are derived for this many: (1 + 2^-8)^128 < 2.
inline constexpr int64_t kMaxPicks = 128;

// row_id_map [K, T]: the row of pick k of token t, or -1 where it was cut off.
using RowMap = kit::View<const int32_t, 2>;

// REJECTED unless the map has `tokens` columns and each entry is -1 or one of `rows` rows.
inline RowMap read_row_map(const kit::Call& call, int64_t tokens, int64_t rows) {
  const RowMap map = call.input("row_id_map").view<const int32_t, 2>();
  kit::require(map.shape[1] == tokens, "row_id_map has ", map.shape[1], " columns, the call has ", tokens, " tokens");
  kit::require(map.shape[0] >= 1 && map.shape[0] <= kMaxPicks, "row_id_map must have 1 to 128 picks, not ",
               map.shape[0]);
  for (int64_t k = 0; k < map.shape[0]; ++k) {
    for (int64_t t = 0; t < tokens; ++t) {
      const int64_t row = map(k, t);
      kit::require(row >= -1 && row < rows, "row_id_map[", k, ",", t, "] is ", row, ", not -1 or one of ", rows,
                   " rows");
    }
  }
  return map;
}

// probs [T, K]; false as a bool where absent: every weight is one.
template <class T>
using Probs = kit::View<const kit::Compute<T>, 2>;

template <class T>
Probs<T> read_probs(const kit::Call& call, int64_t tokens, int64_t picks) {
  call.input("probs").require_shape({tokens, picks});
  return call.input("probs").optional_view<const kit::Compute<T>, 2>();
}

// `value` as a sum over picks keeps it: unchanged, or, with kStorage, rounded to the storage dtype T; 8-bit dtypes keep
// theirs in f16, as Transformer Engine does.
template <class T, bool kStorage>
kit::Compute<T> kept(kit::Compute<T> value) {
  if constexpr (kStorage && kit::Narrow<T>) {
    using Kept = std::conditional_t<sizeof(T) == 1, kit::Half, T>;
    return kit::convert<kit::Compute<T>>(kit::convert<Kept>(value));
  } else {
    return value;
  }
}

// Calls f(Type<T>, std::bool_constant<kStorage>) by the dtype of a tensor and the attribute `compute`.
template <class F>
void by_dtype_and_compute(const kit::Call& call, const kit::Tensor& tensor, F&& f) {
  const std::string_view compute = call.text("compute");
  kit::require(compute == "f32" || compute == "storage", "compute must be f32 or storage, not ", compute);
  kit::by_dtype<float, kit::Half, kit::BFloat16, double, kit::F8E4M3, kit::F8E5M2>(tensor, [&](auto type) {
    if (compute == "storage") {
      f(type, std::true_type{});
    } else {
      f(type, std::false_type{});
    }
  });
}

}  // namespace fusediff::builtin
