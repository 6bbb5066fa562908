#include "mutate/scope.h"

#include <algorithm>
#include <string>
#include <utility>

#include "model/call.h"

namespace fusediff {
namespace {

constexpr int kMaxDepth = 16;  // of attributes that follow attributes; a circle ends here

}  // namespace

CaseScope::CaseScope(const Case& c, const Operator& op) : op_(&op) {
  dims_.reserve(op.dims.size());
  for (const DimRule& rule : op.dims) {
    const auto at = c.dims.find(rule.name);
    dims_.push_back(at == c.dims.end() ? rule.low : at->second);
  }
  attrs_.reserve(op.attrs.size());
  for (const AttrRule& rule : op.attrs) {
    const auto at = c.attrs.find(rule.name);
    attrs_.push_back(at == c.attrs.end() ? std::nullopt : std::optional<AttrValue>(at->second));
  }
}

void CaseScope::store(Case& c) const {
  for (std::size_t i = 0; i < dims_.size(); ++i) c.dims[op_->dims[i].name] = dims_[i];
  for (std::size_t i = 0; i < attrs_.size(); ++i) {
    if (attrs_[i]) {
      c.attrs[op_->attrs[i].name] = *attrs_[i];
    } else {
      c.attrs.erase(op_->attrs[i].name);
    }
  }
}

bool CaseScope::find_attr(std::size_t at, ExprValue& value, int depth) const {
  const AttrRule& rule = op_->attrs[at];
  if (rule.derived) {
    const std::optional<std::int64_t> derived = evaluate(*rule.derived, depth + 1);
    if (derived) value = *derived;
    return derived.has_value();
  }
  const bool standard = !attrs_[at] || (rule.condition && evaluate(*rule.condition, depth + 1).value_or(0) == 0);
  if (standard && !rule.standard) return false;
  const AttrValue& held = standard ? *rule.standard : *attrs_[at];
  if (const auto* integer = std::get_if<std::int64_t>(&held)) {
    value = *integer;
  } else if (const auto* text = std::get_if<std::string>(&held)) {
    value = std::string_view(*text);
  } else {
    return false;
  }
  return true;
}

bool CaseScope::find(std::string_view name, ExprValue& value, int depth) const {
  for (std::size_t i = 0; i < dims_.size(); ++i) {
    if (op_->dims[i].name == name) {
      value = dims_[i];
      return true;
    }
  }
  for (std::size_t i = 0; i < attrs_.size(); ++i) {
    if (op_->attrs[i].name == name) return find_attr(i, value, depth);
  }
  return false;
}

bool CaseScope::read_slot(const void* context, std::uint32_t slot, ExprValue& value) {
  const Reader& reader = *static_cast<const Reader*>(context);
  const CaseScope& scope = *reader.scope;
  if (slot < scope.dims_.size()) {
    value = scope.dims_[slot];
    return true;
  }
  const std::size_t attr = slot - scope.dims_.size();
  return attr < scope.attrs_.size() && scope.find_attr(attr, value, reader.depth);
}

std::optional<std::int64_t> CaseScope::evaluate(const Expr& expr, int depth) const {
  if (depth > kMaxDepth) return std::nullopt;
  const Reader reader{this, depth};
  const bool resolved = expr.slots_key() != 0 && expr.slots_key() == op_->slots_key;
  const Result<std::int64_t> value =
      resolved ? expr.evaluate(read_slot, &reader)
               : expr.evaluate([this, depth](std::string_view name, ExprValue& out) { return find(name, out, depth); });
  return value.ok() ? std::optional<std::int64_t>(*value) : std::nullopt;
}

std::optional<std::int64_t> CaseScope::evaluate(const Expr& expr) const { return evaluate(expr, 0); }

bool CaseScope::holds(const Expr& expr) const { return evaluate(expr, 0).value_or(0) != 0; }

std::optional<std::vector<std::int64_t>> CaseScope::shape(const std::vector<Expr>& sizes) const {
  std::vector<std::int64_t> shape;
  shape.reserve(sizes.size());
  std::int64_t product = 1;
  bool empty = false;
  for (const Expr& size : sizes) {
    const std::optional<std::int64_t> value = evaluate(size, 0);
    if (!value || *value < 0 || *value > kMaxElements) return std::nullopt;
    empty = empty || *value == 0;
    product = std::min(product * std::max<std::int64_t>(*value, 1), kMaxElements + 1);
    shape.push_back(*value);
  }
  if (!empty && product > kMaxElements) return std::nullopt;
  return shape;
}

DType dtype_in(const Case& c, const Operator& op, const DTypeRule& rule, std::string_view name) {
  const DTypeRule* at = &rule;
  std::string_view holder = name;
  for (int depth = 0; depth < kMaxDepth && !at->same_as.empty(); ++depth) {
    holder = at->same_as;
    if (const InputRule* input = op.source(holder)) {
      at = &input->dtype;
    } else if (const OutputRule* output = op.output(holder)) {
      at = &output->dtype;
    } else {
      break;
    }
  }
  if (at->choices.empty()) return DType::kF32;
  const auto chosen = c.dtypes.find(std::string(holder));
  return chosen == c.dtypes.end() || at->choices.size() == 1 ? at->choices.front() : chosen->second;
}

std::optional<Volume> volume_of(const Case& c, const CaseScope& scope) {
  const Operator& op = scope.op();
  Volume volume;
  const auto add = [&](const std::vector<Expr>& sizes, const DTypeRule& rule, const std::string& name) {
    const auto shape = scope.shape(sizes);
    if (!shape) return false;
    std::uint64_t elements = 1;
    for (const std::int64_t size : *shape) elements *= static_cast<std::uint64_t>(size);
    volume.elements += elements;
    volume.bytes += elements * size_of(dtype_in(c, op, rule, name));
    return true;
  };
  for (const InputRule& rule : op.inputs) {
    if (rule.optional && c.inputs.find(rule.name) == c.inputs.end()) continue;
    if (!add(rule.shape, rule.dtype, rule.name)) return std::nullopt;
  }
  for (const InputRule& rule : op.given) {
    if (!add(rule.shape, rule.dtype, rule.name)) return std::nullopt;
  }
  for (const OutputRule& rule : op.outputs) {
    if (!add(rule.shape, rule.dtype, rule.name)) return std::nullopt;
  }
  return volume;
}

}  // namespace fusediff
