// Some rows of a case as a call of their own, as the schema's `rows` has them: inputs cut out as bytes, saved ones too,
// and rows of outputs put where they belong. Runs nothing, judges nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/prepare.h"
#include "model/call.h"
#include "model/case.h"

namespace fusediff {

struct Rows {
  std::string dim;
  std::int64_t count = 0;
  std::vector<int> inputs;   // [call.inputs] the axis along which rows lie; -1: every row has all of it
  std::vector<int> outputs;  // [call.outputs] the same; -1: not a matter of rows, not compared
};

// REQUIRES: call.op has `rows`.
Rows rows_of(const Call& call);

struct RowsCall {
  Call call;
  std::vector<Bytes> inputs;
};

// The rows `picked`, in that order. An error says what but the rows would be another call: a rule that breaks, a size,
// attribute or range that hangs on their number, values that are legal only together.
Result<RowsCall> call_of_rows(const Case& c, const Prepared& prepared, const Rows& rows,
                              std::span<const std::int64_t> picked, std::uint64_t max_bytes);

// Where an axis lies in a dense row-major array: `outer` blocks of `length` slices of `inner` elements.
struct Axis {
  std::size_t outer = 1;
  std::size_t length = 1;
  std::size_t inner = 1;
};
// unit: what one element counts for in `inner`, e.g. its bytes.
Axis axis_at(const std::vector<std::int64_t>& shape, int axis, std::size_t unit);

// The slices `picked`, in that order.
template <typename T>
std::vector<T> slices(const std::vector<T>& from, const Axis& axis, std::span<const std::int64_t> picked) {
  std::vector<T> to;
  to.reserve(axis.outer * picked.size() * axis.inner);
  for (std::size_t block = 0; block < axis.outer; ++block) {
    for (const std::int64_t slice : picked) {
      const auto first = from.begin() + static_cast<std::ptrdiff_t>(
                                            (block * axis.length + static_cast<std::size_t>(slice)) * axis.inner);
      to.insert(to.end(), first, first + static_cast<std::ptrdiff_t>(axis.inner));
    }
  }
  return to;
}

// Two arrays one behind the other along an axis; axis.length is of the whole, `first` of the front one.
std::vector<std::byte> joined(const std::vector<std::byte>& front, const std::vector<std::byte>& back, const Axis& axis,
                              std::size_t first);

}  // namespace fusediff
