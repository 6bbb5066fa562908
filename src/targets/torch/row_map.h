// row_id_map [K, T] of the moe_permute family as index tensors: which row belongs to which pick. No arithmetic on rows.
#pragma once

#include "torch/aten.h"

namespace fusediff::torch {

struct RowMap {
  int64_t tokens, picks;
  at::Tensor slots;  // [n] i64: token * picks + pick of those that were not cut off, ascending
  at::Tensor rows;   // [n] i64: their rows, distinct
};

// REJECTED unless the map has `tokens` columns and each entry is -1 or one of `rows` rows, none of them twice.
RowMap read_row_map(const kit::Call& call, int64_t tokens, int64_t rows);

// [T, K, columns] with the rows at their picks, zeros where a pick was cut off: zeros, index_select, index_copy.
at::Tensor spread(const RowMap& map, const at::Tensor& rows);

// True where sums are kept in the storage dtype. REJECTED for an unknown attribute `compute`.
bool keeps_storage(const kit::Call& call);

}  // namespace fusediff::torch
