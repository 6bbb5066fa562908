#include "oracle/always.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "model/number_text.h"

namespace fusediff {
namespace {

struct View {
  const Tensor& tensor;
  std::span<const std::byte> bytes;
  std::int64_t rows, columns;

  std::uint64_t bits(std::int64_t i) const {
    return load_bits(tensor.dtype, bytes.data() + static_cast<std::size_t>(i) * size_of(tensor.dtype));
  }
  double value(std::int64_t i) const {
    return is_float(tensor.dtype) ? float_value(tensor.dtype, bits(i))
                                  : static_cast<double>(integer_value(tensor.dtype, bits(i)));
  }
  std::string place(std::int64_t i) const {
    return "row " + std::to_string(i / columns) + ", column " + std::to_string(i % columns);
  }
};

bool all_finite(const Tensor& tensor, std::span<const std::byte> bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += size_of(tensor.dtype)) {
    if (!is_finite(tensor.dtype, load_bits(tensor.dtype, bytes.data() + at))) return false;
  }
  return true;
}

bool may_be_infinite(const Tensor& input, std::span<const std::byte> bytes) {
  return input.present && is_float(input.dtype) && !bytes.empty();
}

bool all_inputs_finite(const Call& call, std::span<const std::span<const std::byte>> inputs) {
  for (std::size_t t = 0; t < call.inputs.size(); ++t) {
    if (may_be_infinite(call.inputs[t], inputs[t]) && !all_finite(call.inputs[t], inputs[t])) return false;
  }
  return true;
}

// The axis of a tensor along which the operator's rows are independent; nothing where there is none.
template <typename Rule>
std::optional<std::size_t> row_axis(const Operator& op, const Rule& rule) {
  if (!op.rows) return std::nullopt;
  for (std::size_t d = 0; d < rule.shape.size(); ++d) {
    if (rule.shape[d].text() == op.rows->dim) return d;
  }
  return std::nullopt;
}

// Index along `axis` of element i of a tensor of that shape.
std::size_t index_along(const std::vector<std::int64_t>& shape, std::size_t axis, std::int64_t i) {
  for (std::size_t d = shape.size(); d-- > axis + 1;) i /= shape[d];
  return static_cast<std::size_t>(i % shape[axis]);
}

// [rows of the output's view] false where an input that the row may depend on is not finite: by the schema's `rows`
// its own row and all that rows share, else any.
std::vector<bool> finite_rows(const Call& call, std::span<const std::span<const std::byte>> inputs, std::size_t output,
                              std::int64_t rows, std::int64_t columns) {
  const Operator& op = *call.op;
  const std::vector<std::int64_t>& shape = call.outputs[output].shape;
  const std::optional<std::size_t> out_axis = row_axis(op, op.outputs[output]);
  std::vector<bool> finite(static_cast<std::size_t>(rows), true);
  for (std::size_t t = 0; t < call.inputs.size(); ++t) {
    const Tensor& input = call.inputs[t];
    if (!may_be_infinite(input, inputs[t]) || all_finite(input, inputs[t])) continue;
    const std::optional<std::size_t> in_axis = row_axis(op, op.inputs[t]);
    const bool apart = out_axis && in_axis && *out_axis + 1 < shape.size() && input.stride[*in_axis] != 0 &&
                       std::find(op.rows->inputs.begin(), op.rows->inputs.end(), input.name) != op.rows->inputs.end();
    if (!apart) return std::vector<bool>(finite.size(), false);
    const std::vector<std::int64_t> stored = stored_shape(input);
    std::vector<bool> finite_index(static_cast<std::size_t>(stored[*in_axis]), true);
    for (std::int64_t i = 0; i < stored_count(input); ++i) {
      const std::byte* element = inputs[t].data() + static_cast<std::size_t>(i) * size_of(input.dtype);
      if (!is_finite(input.dtype, load_bits(input.dtype, element)))
        finite_index[index_along(stored, *in_axis, i)] = false;
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::size_t index = index_along(shape, *out_axis, row * columns);
      if (index >= finite_index.size() || !finite_index[index]) finite[static_cast<std::size_t>(row)] = false;
    }
  }
  return finite;
}

std::optional<double> limit(const Call& call, const std::variant<Expr, double>& value) {
  if (const double* number = std::get_if<double>(&value)) return *number;
  const Result<std::int64_t> evaluated = call.evaluate(std::get<Expr>(value));
  return evaluated.ok() ? std::optional<double>(static_cast<double>(*evaluated)) : std::nullopt;
}

std::optional<std::int64_t> empty_slot(const Operator& op, const std::string& output) {
  for (const DecideRule& rule : op.decide) {
    if (rule.pick == output && rule.has_none) return rule.none;
  }
  return std::nullopt;
}

std::string broken_range(const Call& call, const AlwaysRule& rule, const View& view) {
  const std::optional<double> low = limit(call, rule.low), high = limit(call, rule.high);
  if (!low || !high) return "";
  const std::optional<std::int64_t> none = empty_slot(*call.op, view.tensor.name);
  for (std::int64_t i = 0; i < view.rows * view.columns; ++i) {
    const double value = view.value(i);
    if (!(value < *low || value > *high)) continue;
    if (none && value == static_cast<double>(*none)) continue;
    return decimal(view.tensor.dtype, view.bits(i)) + " in " + view.place(i) + ", outside " + short_decimal(*low) +
           ".." + short_decimal(*high);
  }
  return "";
}

std::string broken_distinct(const Call& call, const View& view) {
  const std::optional<std::int64_t> none = empty_slot(*call.op, view.tensor.name);
  for (std::int64_t row = 0; row < view.rows; ++row) {
    for (std::int64_t i = 0; i < view.columns; ++i) {
      const std::uint64_t bits = view.bits(row * view.columns + i);
      if (none && integer_value(view.tensor.dtype, bits) == *none) continue;
      for (std::int64_t j = 0; j < i; ++j) {
        if (view.bits(row * view.columns + j) != bits) continue;
        return decimal(view.tensor.dtype, bits) + " stands twice in row " + std::to_string(row) + ", columns " +
               std::to_string(j) + " and " + std::to_string(i);
      }
    }
  }
  return "";
}

std::string broken_finite(const View& view) {
  for (std::int64_t i = 0; i < view.rows * view.columns; ++i) {
    if (!is_finite(view.tensor.dtype, view.bits(i))) {
      return decimal(view.tensor.dtype, view.bits(i)) + " in " + view.place(i) + " although every input is finite";
    }
  }
  return "";
}

std::string broken_sums(const AlwaysRule& rule, const View& view, const std::vector<bool>& finite) {
  for (std::int64_t row = 0; row < view.rows; ++row) {
    if (!finite[static_cast<std::size_t>(row)] || view.columns == 0) continue;
    double sum = 0;
    for (std::int64_t i = 0; i < view.columns; ++i) sum += view.value(row * view.columns + i);
    if (std::abs(sum - rule.row_sum) <= rule.within) continue;
    return "row " + std::to_string(row) + " sums to " + short_decimal(sum) + ", not to " + short_decimal(rule.row_sum) +
           " within " + short_decimal(rule.within);
  }
  return "";
}

std::string broken_permutation(const View& view) {
  for (std::int64_t row = 0; row < view.rows; ++row) {
    std::vector<bool> seen(static_cast<std::size_t>(view.columns), false);
    for (std::int64_t i = 0; i < view.columns; ++i) {
      const std::int64_t value = integer_value(view.tensor.dtype, view.bits(row * view.columns + i));
      if (value < 0 || value >= view.columns || seen[static_cast<std::size_t>(value)]) {
        return std::to_string(value) + " in " + view.place(row * view.columns + i) + ": no permutation of 0.." +
               std::to_string(view.columns - 1);
      }
      seen[static_cast<std::size_t>(value)] = true;
    }
  }
  return "";
}

// "" when the rule holds, or does not apply.
std::string broken(const Call& call, std::span<const std::span<const std::byte>> inputs, const AlwaysRule& rule,
                   std::size_t output, const View& view) {
  switch (rule.kind) {
    case AlwaysKind::kRange:
      return broken_range(call, rule, view);
    case AlwaysKind::kDistinctInRow:
      return broken_distinct(call, view);
    case AlwaysKind::kFiniteIfInputsFinite:
      return all_inputs_finite(call, inputs) ? broken_finite(view) : "";
    case AlwaysKind::kRowSums:
      return broken_sums(rule, view, finite_rows(call, inputs, output, view.rows, view.columns));
    case AlwaysKind::kPermutation:
      return broken_permutation(view);
  }
  return "";
}

}  // namespace

std::vector<Evidence> judge_always(const Call& call, std::span<const std::span<const std::byte>> inputs,
                                   const Execution& execution, Side side) {
  std::vector<Evidence> seen;
  for (std::size_t o = 0; o < call.outputs.size(); ++o) {
    const Tensor& tensor = call.outputs[o];
    if (!tensor.present || execution.outputs[o].empty()) continue;
    const std::int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
    const View view{tensor, execution.outputs[o], element_count(tensor) / columns, columns};
    for (const AlwaysRule& rule : call.op->outputs[o].always) {
      if (rule.condition) {
        const Result<std::int64_t> holds = call.evaluate(*rule.condition);
        if (!holds.ok() || *holds == 0) continue;
      }
      const std::string what = broken(call, inputs, rule, o, view);
      if (what.empty()) continue;
      seen.push_back({FindingClass::kInvariant, "always", tensor.name, call.op->outputs[o].stage, side,
                      tensor.name + " holds " + what});
      break;
    }
  }
  return seen;
}

}  // namespace fusediff
