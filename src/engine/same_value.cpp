#include "engine/same_value.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "base/hash.h"
#include "base/rng.h"
#include "model/number_text.h"
#include "oracle/bits.h"

namespace fusediff {
namespace {

constexpr std::size_t kMostRuns = 4;  // of equal elements named in a sentence

bool stays(Role role) {
  return role == Role::kIndex || role == Role::kCounts || role == Role::kOffsets || role == Role::kMask ||
         role == Role::kSaved;
}

// Away from 0, from 1 and from the ends of every dtype; negative ones only where the role has them.
double ordinary(const InputRule& rule, Rng& rng) {
  const double magnitude = 0.5 + rng.unit();
  return rule.role != Role::kScale && rng.one_in(2) ? -magnitude : magnitude;
}

InputValue even(const InputRule& rule, const Tensor& tensor, const Bytes& drawn, EvenValue value) {
  Bytes bytes = drawn;
  const std::size_t size = size_of(tensor.dtype), columns = static_cast<std::size_t>(column_count(tensor));
  Rng rng(hash128(std::as_bytes(std::span(rule.name))).low);
  for (std::size_t row = 0; row + columns * size <= bytes.size(); row += columns * size) {
    std::uint64_t bits = load_bits(tensor.dtype, drawn.data() + row);
    if (value == EvenValue::kOrdinary) bits = round_to_bits(tensor.dtype, ordinary(rule, rng));
    if (rule.role == Role::kProbability) bits = round_to_bits(tensor.dtype, 1.0 / static_cast<double>(columns));
    for (std::size_t at = 0; at < columns * size; at += size) store_bits(tensor.dtype, bits, bytes.data() + row + at);
  }
  InputValue written;
  written.fill.kind = FillKind::kBits;
  written.fill.bits = std::make_shared<const Bytes>(std::move(bytes));
  return written;
}

// Has any of the tensors a row of two?
bool make_even(const std::vector<InputRule>& rules, const std::vector<Tensor>& tensors, const std::vector<Bytes>& bytes,
               EvenValue value, Case& c) {
  bool any = false;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const Tensor& tensor = tensors[i];
    if (!tensor.present || stays(rules[i].role) || !is_float(tensor.dtype) || tensor.shape.empty()) continue;
    if (bytes[i].empty()) continue;
    c.inputs[rules[i].name] = even(rules[i], tensor, bytes[i], value);
    any = any || tensor.shape.back() >= 2;
  }
  return any;
}

std::int64_t columns_of(const Tensor& tensor) { return tensor.shape.empty() ? 1 : tensor.shape.back(); }

template <typename Same>
std::vector<bool> flags(const Tensor& tensor, std::size_t elements, Same same) {
  const auto columns = static_cast<std::size_t>(columns_of(tensor));
  if (columns < 2) return {};
  std::vector<bool> rows(elements / columns, true);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t at = 1; at < columns && rows[row]; ++at) rows[row] = same(row * columns, row * columns + at);
  }
  return rows;
}

bool shares_a_name(const Expr& a, const Expr& b) {
  return std::any_of(a.names().begin(), a.names().end(),
                     [&](const std::string& name) { return b.names().contains(name); });
}

bool is_even(const Tensor& tensor, const Bytes& stored_elements) {
  const std::size_t size = size_of(tensor.dtype), columns = static_cast<std::size_t>(column_count(tensor));
  for (std::size_t row = 0; row + columns * size <= stored_elements.size(); row += columns * size) {
    for (std::size_t at = size; at < columns * size; at += size) {
      if (std::memcmp(stored_elements.data() + row, stored_elements.data() + row + at, size) != 0) return false;
    }
  }
  return true;
}

bool tells_apart(const Expr& positions, const InputRule& rule, const Tensor& tensor, const Bytes& bytes) {
  for (std::size_t d = 0; d < rule.shape.size(); ++d) {
    if (!shares_a_name(rule.shape[d], positions)) continue;
    const bool is_its_row = d + 1 == rule.shape.size() && rule.shape[d].text() == positions.text();
    if (!is_its_row || !is_even(tensor, bytes)) return true;
  }
  return false;
}

}  // namespace

std::vector<bool> alike_positions(const Prepared& prepared) {
  const Operator& op = *prepared.call.op;
  std::vector<bool> alike;
  for (std::size_t o = 0; o < op.outputs.size(); ++o) {
    const std::vector<Expr>& shape = op.outputs[o].shape;
    bool all = !shape.empty() && !shape.back().names().empty() && prepared.call.outputs[o].present &&
               columns_of(prepared.call.outputs[o]) >= 2;
    for (std::size_t i = 0; all && i < op.inputs.size(); ++i) {
      const Tensor& input = prepared.call.inputs[i];
      all = !input.present || !tells_apart(shape.back(), op.inputs[i], input, prepared.inputs[i]);
    }
    alike.push_back(all);
  }
  return alike;
}

std::optional<Case> with_even_rows(const Case& c, const Prepared& prepared, EvenValue value) {
  Case changed = c;
  const Operator& op = *prepared.call.op;
  const bool inputs = make_even(op.inputs, prepared.call.inputs, prepared.inputs, value, changed);
  const bool givens = make_even(op.given, prepared.call.givens, prepared.givens, value, changed);
  if (!inputs && !givens) return std::nullopt;
  return changed;
}

RowFlags even_rows(const Call& call, const std::vector<Bytes>& outputs) {
  RowFlags rows(call.outputs.size());
  for (std::size_t o = 0; o < rows.size(); ++o) {
    const Tensor& tensor = call.outputs[o];
    const std::size_t size = size_of(tensor.dtype);
    const Bytes& bytes = outputs[o];
    if (!tensor.present || bytes.empty()) continue;
    rows[o] = flags(tensor, bytes.size() / size, [&](std::size_t first, std::size_t at) {
      const std::byte *a = bytes.data() + first * size, *b = bytes.data() + at * size;
      if (std::memcmp(a, b, size) == 0) return true;
      return compare_elements(tensor.dtype, load_bits(tensor.dtype, a), load_bits(tensor.dtype, b), 0) ==
             ElementDifference::kNanBits;
    });
  }
  return rows;
}

RowFlags even_rows(const Call& call, const Truth& truth) {
  RowFlags rows(call.outputs.size());
  for (std::size_t o = 0; o < rows.size(); ++o) {
    if (!call.outputs[o].present) continue;
    const std::vector<double>& value = truth.outputs[o].value;
    rows[o] = flags(call.outputs[o], value.size(), [&](std::size_t first, std::size_t at) {
      return std::bit_cast<std::uint64_t>(value[first]) == std::bit_cast<std::uint64_t>(value[at]);
    });
  }
  return rows;
}

std::vector<Bytes> levelled(const Call& call, std::vector<Bytes> outputs, const RowFlags& rows) {
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const std::size_t size = size_of(call.outputs[o].dtype);
    const std::size_t row_bytes = static_cast<std::size_t>(columns_of(call.outputs[o])) * size;
    for (std::size_t row = 0; row < rows[o].size(); ++row) {
      if (!rows[o][row] || (row + 1) * row_bytes > outputs[o].size()) continue;
      std::byte* const first = outputs[o].data() + row * row_bytes;
      for (std::size_t at = size; at < row_bytes; at += size) std::memcpy(first + at, first, size);
    }
  }
  return outputs;
}

std::string runs_of_row(const Tensor& tensor, const Bytes& bytes, std::int64_t index) {
  const std::int64_t columns = columns_of(tensor), row = index / columns;
  const auto at = [&](std::int64_t column) {
    return load_bits(tensor.dtype,
                     bytes.data() + static_cast<std::size_t>(row * columns + column) * size_of(tensor.dtype));
  };
  std::string text = "in row " + std::to_string(row) + ",";
  std::size_t runs = 0;
  for (std::int64_t first = 0; first < columns; ++runs) {
    std::int64_t end = first + 1;
    while (end < columns && at(end) == at(first)) ++end;
    if (runs == kMostRuns) return text + ", and so on";
    text += (runs > 0 ? ", " : end - first > 1 ? " positions " : " position ") + std::to_string(first);
    if (end - first > 1) text += ".." + std::to_string(end - 1);
    text += (runs == 0 ? (end - first > 1 ? " give " : " gives ") : ": ") + decimal(tensor.dtype, at(first));
    first = end;
  }
  return text;
}

}  // namespace fusediff
