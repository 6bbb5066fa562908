#include "engine/explicit_case.h"

#include <algorithm>
#include <map>

#include "engine/resized.h"
#include "model/values.h"

namespace fusediff {
namespace {

constexpr std::size_t kMaxSingleElements = 64;

const Tensor* find_tensor(const Call& call, const std::string& name) {
  for (const std::vector<Tensor>* tensors : {&call.inputs, &call.givens}) {
    for (const Tensor& tensor : *tensors) {
      if (tensor.name == name) return &tensor;
    }
  }
  return nullptr;
}

InputValue raw(std::vector<std::byte> bytes, DType dtype) {
  InputValue value;
  value.fill.kind = FillKind::kBits;
  value.fill.bits = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  value.fill.bits_dtype = dtype;
  return value;
}

Literal literal_of(DType dtype, std::uint64_t bits) {
  Literal literal;
  if (!is_float(dtype)) {
    literal.kind = Literal::Kind::kInteger;
    literal.integer = integer_value(dtype, bits);
  } else if (is_nan(dtype, bits)) {
    literal.kind = Literal::Kind::kBits;
    literal.bits = bits;
  } else {
    literal.real = float_value(dtype, bits);
  }
  return literal;
}

// Where each element of the smaller tensor stood in the larger one; false when it stands outside.
bool copy_kept(const Tensor& before, const Tensor& after, const InputRule& rule, const std::string& dim,
               std::int64_t first, std::int64_t count, const std::vector<std::byte>& from, std::vector<std::byte>& to) {
  const std::vector<std::int64_t> old_shape = stored_shape(before), new_shape = stored_shape(after);
  if (old_shape.size() != new_shape.size()) return false;
  const std::vector<std::int64_t> old_stride = dense_strides(old_shape);
  const std::size_t size = size_of(after.dtype);
  std::vector<std::int64_t> cut_from;  // [dimension] where indices move up
  for (std::size_t d = 0; d < new_shape.size(); ++d) {
    const bool cut = rule.shape[d].text() == dim && before.stride[d] != 0;
    cut_from.push_back(cut ? first : new_shape[d]);
  }
  to.resize(stored_bytes(after));
  std::vector<std::int64_t> at(new_shape.size(), 0);
  for (std::size_t i = 0; i < to.size(); i += size) {
    std::int64_t source = 0;
    for (std::size_t d = 0; d < at.size(); ++d) {
      const std::int64_t index = at[d] >= cut_from[d] ? at[d] + count : at[d];
      if (index >= old_shape[d]) return false;
      source += index * old_stride[d];
    }
    std::copy_n(from.data() + static_cast<std::size_t>(source) * size, size, to.data() + i);
    for (std::size_t d = at.size(); d-- > 0 && ++at[d] == new_shape[d];) at[d] = 0;
  }
  return true;
}

// The row that an experiment names stays the same one where it is kept.
void move_row(Case& c, const Operator& op, const std::string& dim, std::int64_t first, std::int64_t count) {
  std::int64_t& row = c.experiment.row;
  if (op.rows && op.rows->dim == dim && row >= first) row = std::max(first, row - count);
  keep_row_inside(c, op);
}

}  // namespace

std::optional<Case> written_out(const Case& c, const Operator& op, std::uint64_t max_bytes) {
  const Result<Call> call = bind(c, op, max_bytes);
  if (!call.ok()) return std::nullopt;
  std::int64_t elements = 0;
  for (const auto& [name, value] : c.inputs) {
    const Tensor* tensor = find_tensor(*call, name);
    if (tensor != nullptr && value.fill.kind != FillKind::kBits) elements += stored_count(*tensor);
  }
  if (elements > kMaxExplicitElements) return std::nullopt;
  Case out = c;
  for (auto& [name, value] : out.inputs) {
    const Tensor* tensor = find_tensor(*call, name);
    if (tensor == nullptr) return std::nullopt;
    Result<std::vector<std::byte>> bytes = draw_values(value, *op.source(name), *tensor, *call);
    if (!bytes.ok()) return std::nullopt;
    value = raw(*std::move(bytes), tensor->dtype);
  }
  return out;
}

std::optional<Case> without_slices(const Case& c, const Operator& op, const std::string& dim, std::int64_t first,
                                   std::int64_t count, const std::string& decreased, std::uint64_t max_bytes) {
  const Result<Call> before = bind(c, op, max_bytes);
  if (!before.ok()) return std::nullopt;
  Case smaller = c;
  smaller.dims[dim] -= count;
  if (!decreased.empty()) smaller.dims[decreased] -= count;
  const Result<Call> after = bind(smaller, op, max_bytes);
  if (!after.ok()) return std::nullopt;
  for (auto& [name, value] : smaller.inputs) {
    const Tensor* old_tensor = find_tensor(*before, name);
    const Tensor* new_tensor = find_tensor(*after, name);
    const std::shared_ptr<const std::vector<std::byte>> bits = value.fill.bits;
    if (old_tensor == nullptr || new_tensor == nullptr || bits == nullptr) return std::nullopt;
    std::vector<std::byte> bytes;
    if (!copy_kept(*old_tensor, *new_tensor, *op.source(name), dim, first, count, *bits, bytes)) return std::nullopt;
    value = raw(std::move(bytes), new_tensor->dtype);
  }
  move_row(smaller, op, dim, first, count);
  return smaller;
}

Case in_short(const Case& c, const Operator& op, std::uint64_t max_bytes) {
  const Result<Call> call = bind(c, op, max_bytes);
  if (!call.ok()) return c;
  Case out = c;
  for (auto& [name, value] : out.inputs) {
    const Tensor* tensor = find_tensor(*call, name);
    if (tensor == nullptr || value.fill.kind != FillKind::kBits || value.fill.bits == nullptr) continue;
    if (stored_count(*tensor) != element_count(*tensor)) continue;  // `set` names logical indices
    const std::vector<std::byte>& bytes = *value.fill.bits;
    const std::size_t size = size_of(tensor->dtype), n = bytes.size() / size;
    std::map<std::uint64_t, std::size_t> counts;
    for (std::size_t i = 0; i < n; ++i) ++counts[load_bits(tensor->dtype, bytes.data() + i * size)];
    if (counts.empty()) {
      value = InputValue{};
      value.fill.constant = literal_of(tensor->dtype, 0);
      continue;
    }
    // The more frequent value, then the smaller bits: zero where there is a choice.
    const auto usual = std::max_element(counts.begin(), counts.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
    if (n - usual->second > kMaxSingleElements) continue;
    InputValue shorter;
    shorter.fill.kind = FillKind::kConstant;
    shorter.fill.constant = literal_of(tensor->dtype, usual->first);
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t bits = load_bits(tensor->dtype, bytes.data() + i * size);
      if (bits != usual->first) shorter.set[static_cast<std::int64_t>(i)] = literal_of(tensor->dtype, bits);
    }
    const Result<std::vector<std::byte>> again = draw_values(shorter, *op.source(name), *tensor, *call);
    if (again.ok() && *again == bytes) value = std::move(shorter);
  }
  return out;
}

}  // namespace fusediff
