#include "engine/row_slices.h"

#include <algorithm>

#include "model/values.h"

namespace fusediff {
namespace {

bool listed(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

template <typename Rule>
int axis_of(const Rule& rule, const std::string& dim) {
  for (std::size_t d = 0; d < rule.shape.size(); ++d) {
    if (rule.shape[d].text() == dim) return static_cast<int>(d);
  }
  return -1;
}

// Equal but for the axis of the rows.
bool same_but(int axis, const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  for (std::size_t d = 0; d < a.size(); ++d) {
    if (static_cast<int>(d) != axis && a[d] != b[d]) return false;
  }
  return true;
}

bool same_value(const Result<std::int64_t>& a, const Result<std::int64_t>& b) {
  return a.ok() == b.ok() && (!a.ok() || *a == *b);
}
bool same_value(const Expr& expr, const Call& a, const Call& b) {
  return same_value(a.evaluate(expr), b.evaluate(expr));
}

// A dense layout goes with the shape; strides of one's own fit the rows too.
Case with_rows(const Case& c, const Call& call, const std::string& dim, std::int64_t count) {
  Case fewer = c;
  fewer.experiment = {};
  fewer.dims[dim] = count;
  for (const std::vector<Tensor>* tensors : {&call.inputs, &call.outputs}) {
    for (const Tensor& tensor : *tensors) {
      const auto choice = fewer.layout.find(tensor.name);
      if (choice != fewer.layout.end() && is_dense(tensor)) choice->second.stride.reset();
    }
  }
  return fewer;
}

// What hangs on the number of rows although a row should not; "" when nothing does.
std::string differs_in_more(const Call& whole, const Call& part, const Rows& rows) {
  const Operator& op = *whole.op;
  for (std::size_t a = 0; a < whole.attrs.size(); ++a) {
    if (whole.attrs[a].value != part.attrs[a].value)
      return "the attribute " + whole.attrs[a].name + " hangs on " + rows.dim;
  }
  for (std::size_t i = 0; i < whole.inputs.size(); ++i) {
    const std::string& name = whole.inputs[i].name;
    const InputRule& rule = op.inputs[i];
    if (whole.inputs[i].present != part.inputs[i].present)
      return "whether there is a " + name + " hangs on " + rows.dim;
    if (!whole.inputs[i].present) continue;
    if (!same_but(rows.inputs[i], whole.inputs[i].shape, part.inputs[i].shape)) {
      return "the shape of " + name + " hangs on " + rows.dim +
             (rows.inputs[i] < 0 ? " and the record's `rows` does not list it" : " in more than its rows");
    }
    const bool limits =
        !rule.range || (same_value(rule.range->first, whole, part) && same_value(rule.range->second, whole, part));
    if (!limits) return "the range of " + name + " hangs on " + rows.dim;
    if (rule.sum && !same_value(*rule.sum, whole, part)) return "the sum of " + name + " hangs on " + rows.dim;
  }
  for (std::size_t o = 0; o < whole.outputs.size(); ++o) {
    const std::string& name = whole.outputs[o].name;
    if (whole.outputs[o].present != part.outputs[o].present)
      return "whether there is a " + name + " hangs on " + rows.dim;
    if (rows.outputs[o] >= 0 && !same_but(rows.outputs[o], whole.outputs[o].shape, part.outputs[o].shape))
      return "the shape of " + name + " hangs on " + rows.dim + " in more than its rows";
  }
  return "";
}

std::string rows_text(std::size_t count) { return count == 1 ? "one row" : std::to_string(count) + " rows"; }

}  // namespace

Rows rows_of(const Call& call) {
  const Operator& op = *call.op;
  Rows rows;
  rows.dim = op.rows->dim;
  for (std::size_t d = 0; d < op.dims.size(); ++d) {
    if (op.dims[d].name == rows.dim) rows.count = call.dims[d];
  }
  for (const InputRule& rule : op.inputs)
    rows.inputs.push_back(listed(op.rows->inputs, rule.name) ? axis_of(rule, rows.dim) : -1);
  for (const OutputRule& rule : op.outputs) {
    const bool is_row = op.rows->all_outputs || listed(op.rows->outputs, rule.name);
    rows.outputs.push_back(is_row ? axis_of(rule, rows.dim) : -1);
  }
  return rows;
}

Axis axis_at(const std::vector<std::int64_t>& shape, int axis, std::size_t unit) {
  Axis at;
  at.inner = unit;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const auto size = static_cast<std::size_t>(shape[d]);
    if (static_cast<int>(d) < axis) at.outer *= size;
    if (static_cast<int>(d) == axis) at.length = size;
    if (static_cast<int>(d) > axis) at.inner *= size;
  }
  return at;
}

std::vector<std::byte> joined(const std::vector<std::byte>& front, const std::vector<std::byte>& back, const Axis& axis,
                              std::size_t first) {
  std::vector<std::byte> whole;
  whole.reserve(front.size() + back.size());
  const auto part = [&](const std::vector<std::byte>& from, std::size_t block, std::size_t length) {
    const auto begin = from.begin() + static_cast<std::ptrdiff_t>(block * length * axis.inner);
    whole.insert(whole.end(), begin, begin + static_cast<std::ptrdiff_t>(length * axis.inner));
  };
  for (std::size_t block = 0; block < axis.outer; ++block) {
    part(front, block, first);
    part(back, block, axis.length - first);
  }
  return whole;
}

Result<RowsCall> call_of_rows(const Case& c, const Prepared& prepared, const Rows& rows,
                              std::span<const std::int64_t> picked, std::uint64_t max_bytes) {
  const Call& whole = prepared.call;
  const auto count = static_cast<std::int64_t>(picked.size());
  RowsCall part;
  if (count == rows.count) {
    part.call = whole;
  } else {
    Result<Call> call = bind(with_rows(c, whole, rows.dim, count), *whole.op, max_bytes);
    if (!call.ok()) return user_error(rows_text(picked.size()) + " alone: " + call.error().what);
    part.call = *std::move(call);
  }
  const std::string more = differs_in_more(whole, part.call, rows);
  if (!more.empty()) return user_error(more);
  for (std::size_t i = 0; i < whole.inputs.size(); ++i) {
    const Tensor& tensor = whole.inputs[i];
    const int at = rows.inputs[i];
    const std::vector<std::int64_t> shape = stored_shape(tensor);
    // Along a stride of 0 all rows are one.
    const bool cut = tensor.present && at >= 0 && shape[static_cast<std::size_t>(at)] == rows.count;
    part.inputs.push_back(cut ? slices(prepared.inputs[i], axis_at(shape, at, size_of(tensor.dtype)), picked)
                              : prepared.inputs[i]);
    if (!tensor.present) continue;
    const Status legal = check_values(part.inputs.back(), whole.op->inputs[i], part.call.inputs[i], part.call);
    if (!legal.ok()) return user_error(rows_text(picked.size()) + " alone: " + legal.error().what);
  }
  return part;
}

}  // namespace fusediff
