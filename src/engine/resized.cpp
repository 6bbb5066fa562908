#include "engine/resized.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "model/call.h"

namespace fusediff {
namespace {

// Raw elements of a larger tensor: their leading part.
void cut_bits(const Tensor& before, const Tensor& after, Fill& fill) {
  const std::vector<std::int64_t> from = stored_shape(before), to = stored_shape(after);
  const bool known = fill.kind == FillKind::kBits && fill.bits && fill.bits->size() == stored_bytes(before);
  bool smaller = known && from != to && from.size() == to.size() && before.dtype == after.dtype;
  for (std::size_t d = 0; smaller && d < to.size(); ++d) smaller = to[d] <= from[d];
  if (!smaller) return;
  const std::size_t size = size_of(after.dtype);
  const std::vector<std::int64_t> step = dense_strides(from);
  std::vector<std::byte> kept(stored_bytes(after));
  std::vector<std::int64_t> at(to.size(), 0);
  for (std::size_t i = 0; i < kept.size(); i += size) {
    std::int64_t source = 0;
    for (std::size_t d = 0; d < at.size(); ++d) source += at[d] * step[d];
    std::copy_n(fill.bits->data() + static_cast<std::size_t>(source) * size, size, kept.data() + i);
    for (std::size_t d = at.size(); d-- > 0 && ++at[d] == to[d];) at[d] = 0;
  }
  fill.bits = std::make_shared<const std::vector<std::byte>>(std::move(kept));
  fill.bits_file.clear();
  fill.bits_dtype = after.dtype;
}

void move_inside(const Tensor& before, const Tensor& after, InputValue& value) {
  cut_bits(before, after, value.fill);
  const std::int64_t rows = row_count(after), columns = column_count(after);
  if (rows == 0 || columns == 0) {
    value.patches.clear();
    value.set.clear();
    return;
  }
  for (Patch& patch : value.patches) {
    for (std::int64_t* row : {&patch.row_low, &patch.row_high}) *row = std::min(*row, rows - 1);
    for (std::int64_t* column : {&patch.column_low, &patch.column_high}) *column = std::min(*column, columns - 1);
  }
  if (before.shape.size() != after.shape.size()) return;
  std::map<std::int64_t, Literal> moved;
  for (const auto& [index, literal] : value.set) {
    std::int64_t rest = index, to = 0, size = 1;
    for (std::size_t d = after.shape.size(); d-- > 0;) {
      to += std::min(rest % before.shape[d], after.shape[d] - 1) * size;
      rest /= before.shape[d];
      size *= after.shape[d];
    }
    moved[to] = literal;
  }
  value.set = std::move(moved);
}

}  // namespace

void keep_row_inside(Case& c, const Operator& op) {
  if (!op.rows) return;
  const auto rows = c.dims.find(op.rows->dim);
  if (rows != c.dims.end())
    c.experiment.row = std::clamp<std::int64_t>(c.experiment.row, 0, std::max<std::int64_t>(rows->second - 1, 0));
}

Case resized(const Case& original, const Operator& op, const std::map<std::string, std::int64_t>& sizes,
             std::uint64_t max_bytes) {
  Case c = original;
  for (const auto& [dim, size] : sizes) c.dims[dim] = size;
  keep_row_inside(c, op);
  const Result<Call> before = bind(original, op, max_bytes), after = bind(c, op, max_bytes);
  if (!before.ok() || !after.ok()) return c;
  for (const auto list : {&Call::inputs, &Call::givens}) {
    for (std::size_t i = 0; i < ((*after).*list).size(); ++i) {
      const auto value = c.inputs.find(((*after).*list)[i].name);
      if (value != c.inputs.end()) move_inside(((*before).*list)[i], ((*after).*list)[i], value->second);
    }
  }
  return c;
}

}  // namespace fusediff
