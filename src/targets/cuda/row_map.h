// What the operators of the moe_permute family share on the device: row_id_map, checked by kernels before anything is
// read through it, its inverse, and the precision in which a sum over picks is kept. No path stands here.
#pragma once

#include "cuda/strided.h"
#include "kit/target.h"

namespace fusediff::cuda {

inline constexpr int64_t kMaxPicks = 128;

// row_id_map [K, T]: the row of pick k of token t, or -1 where it was cut off.
using RowMap = Strided<const int32_t, 2>;

// REJECTED where an entry is neither -1 nor one of `rows` rows. `flag`: one word of workspace.
template <class Stream>
void check_row_map(Stream& stream, const RowMap& map, int64_t rows, int32_t* flag) {
  const int64_t tokens = map.shape[1];
  stream.elements(
      1, FUSEDIFF_KERNEL(int64_t) { *flag = 0; });
  stream.elements(
      map.shape[0] * tokens, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t row = map(i / tokens, i % tokens);
        if (row < -1 || row >= rows) {
          *flag = 1;  // every thread that writes writes this
        }
      });
  kit::require(stream.fetch(flag) == 0, "row_id_map has an entry that is neither -1 nor one of ", rows, " rows");
}

// picks[row] = the place k * T + t that names the row, or -1. The map must have been checked. REJECTED where two places
// name one row.
template <class Stream>
void invert_row_map(Stream& stream, const RowMap& map, int64_t rows, int64_t* picks, int32_t* flag) {
  const int64_t tokens = map.shape[1];
  const int64_t count = map.shape[0] * tokens;
  stream.elements(
      rows, FUSEDIFF_KERNEL(int64_t row) { picks[row] = -1; });
  stream.elements(
      count, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t row = map(i / tokens, i % tokens);
        if (row >= 0) {
          picks[row] = i;  // two that name one row: either stays, and the other is seen below
        }
      });
  stream.elements(
      count, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t row = map(i / tokens, i % tokens);
        if (row >= 0 && picks[row] != i) {
          *flag = 1;
        }
      });
  kit::require(stream.fetch(flag) == 0, "row_id_map names a row twice");
}

// probs [T, K]; not present: every weight is one.
template <class T>
using Probs = Strided<const Compute<T>, 2>;

// `value` as a sum over picks keeps it: unchanged, or rounded to the storage dtype T; 8-bit dtypes keep theirs in f16.
template <class T>
FUSEDIFF_HD Compute<T> kept(Compute<T> value, bool storage) {
  if constexpr (kit::Narrow<T>) {
    using Kept = std::conditional_t<sizeof(T) == 1, Half, T>;
    return storage ? widen(as_dtype<Kept>(value)) : value;
  } else {
    return value;
  }
}

}  // namespace fusediff::cuda
