// The relation of the same value in every position of a row: an operator that is blind to position (its f64 truth is
// the same in every position of an output's row) must give the same bits there. A row is along the last dimension.
// Makes no call and judges nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/prepare.h"
#include "engine/truth.h"
#include "model/call.h"
#include "model/case.h"

namespace fusediff {

// What all positions of a row get: the row's first value, or an ordinary one that is another in each row.
enum class EvenValue { kFirst, kOrdinary };

// The case with one value in every position of each row of every float input (of role probability: an equal share).
// Index, counts, offsets, mask and saved inputs stay. Nothing when no input has a row of two.
std::optional<Case> with_even_rows(const Case& c, const Prepared& prepared, EvenValue value);

// [outputs] true where no input tells the positions of a row apart: an axis of an input that is the output's last one
// is its own last one, and every row of it is even; no other axis hangs on the dims of that size. Elsewhere a truth
// that is the same in every position may be so by chance, through sums that cancel or a variance that is 0. prepared:
// of the case with even rows.
std::vector<bool> alike_positions(const Prepared& prepared);

using RowFlags = std::vector<std::vector<bool>>;  // [outputs][rows], empty for an output without rows of two

// Rows of two or more that hold the same in every position, any NaN being like any other.
RowFlags even_rows(const Call& call, const std::vector<Bytes>& outputs);
RowFlags even_rows(const Call& call, const Truth& truth);  // bit for bit, in f64; none where there is no truth

// The outputs with each flagged row filled with its own first element.
std::vector<Bytes> levelled(const Call& call, std::vector<Bytes> outputs, const RowFlags& rows);

// "in row 3, positions 0..15 give 0.25, 16..18 give 0.26": the row of a logical index. REQUIRES: rank >= 1.
std::string runs_of_row(const Tensor& tensor, const Bytes& bytes, std::int64_t index);

}  // namespace fusediff
