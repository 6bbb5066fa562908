#include "model/call.h"

#include "model/call_bind.h"
#include "model/quote.h"

namespace fusediff {

namespace {

// A float has no place in an integer expression: to it the name is unknown.
bool expr_value(const AttrValue& attr, ExprValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&attr)) {
    value = *number;
    return true;
  }
  const auto* text = std::get_if<std::string>(&attr);
  if (text == nullptr) return false;
  value = std::string_view(*text);
  return true;
}

bool read_slot(const void* context, std::uint32_t slot, ExprValue& value) {
  const Call& call = *static_cast<const Call*>(context);
  if (slot < call.dims.size()) {
    value = call.dims[slot];
    return true;
  }
  const std::size_t attr = slot - call.dims.size();
  return attr < call.attrs.size() && expr_value(call.attrs[attr].value, value);
}

bool read_name(const Call& call, std::string_view name, ExprValue& value) {
  if (call.op == nullptr) return false;
  for (std::size_t i = 0; i < call.dims.size() && i < call.op->dims.size(); ++i) {
    if (call.op->dims[i].name != name) continue;
    value = call.dims[i];
    return true;
  }
  for (const CallAttr& attr : call.attrs) {
    if (attr.name == name) return expr_value(attr.value, value);
  }
  return false;
}

}  // namespace

Result<std::int64_t> Call::evaluate(const Expr& expr) const {
  const bool known = op != nullptr && expr.slots_key() != 0 && expr.slots_key() == op->slots_key;
  if (known && dims.size() == op->dims.size()) return expr.evaluate(read_slot, this);
  return expr.evaluate(scope());
}

ExprScope Call::scope() const {
  return [this](std::string_view name, ExprValue& value) { return read_name(*this, name, value); };
}

namespace {

Status check_where(bool outside, Call& call) {
  for (const Expr& rule : call.op->where) {
    const Result<std::int64_t> holds = call.evaluate(rule);
    if (holds.ok() && *holds != 0) continue;
    if (outside) {
      if (call.broken.empty()) call.broken = rule.text();
      continue;
    }
    if (!holds.ok()) return user_error("/dims: where " + holds.error().what + " (" + values_of(call, rule) + ")");
    return user_error("/dims: legal is " + quote(rule.text()) + ", which does not hold (" + values_of(call, rule) +
                      ")");
  }
  return {};
}

// Bytes from the first to behind the last element, and what stands in front; false when that overflows.
bool bytes_of(const Tensor& tensor, std::uint64_t& bytes) {
  std::uint64_t elements = static_cast<std::uint64_t>(tensor.offset) + 1;
  for (std::size_t dim = 0; dim < tensor.shape.size(); ++dim) {
    std::uint64_t span = 0;
    if (tensor.shape[dim] == 0) {
      bytes = 0;
      return true;
    }
    const auto steps = static_cast<std::uint64_t>(tensor.shape[dim] - 1);
    if (__builtin_mul_overflow(steps, static_cast<std::uint64_t>(tensor.stride[dim]), &span)) return false;
    if (__builtin_add_overflow(elements, span, &elements)) return false;
  }
  return !__builtin_mul_overflow(elements, size_of(tensor.dtype), &bytes);
}

Status check_memory(const Call& call, std::uint64_t max_bytes) {
  std::uint64_t total = 0;
  for (const auto* list : {&call.inputs, &call.givens, &call.outputs}) {
    for (const Tensor& tensor : *list) {
      if (!tensor.present) continue;
      std::uint64_t bytes = 0;
      const bool overflow = !bytes_of(tensor, bytes) || __builtin_add_overflow(total, bytes, &total);
      if (!overflow && total <= max_bytes) continue;
      return user_error("/dims: the tensors up to " + quote(tensor.name) + " need " +
                        (overflow ? "more than 2^64" : std::to_string(total)) + " bytes; at most " +
                        std::to_string(max_bytes) + ", the memory cap");
    }
  }
  return {};
}

}  // namespace

Result<Call> bind(const Case& c, const Operator& op, std::uint64_t max_bytes, bool outside) {
  if (c.op != op.name) return user_error("/op: " + quote(c.op) + " is bound to the operator " + quote(op.name));
  Call call;
  call.op = &op;
  Status status = bind_dims(c, call);
  if (status.ok()) status = bind_attrs(c, call);
  if (status.ok()) status = check_where(outside, call);
  if (status.ok()) status = bind_tensors(c, call);
  if (status.ok()) status = bind_layout(c, call);
  if (status.ok()) status = check_memory(call, max_bytes);
  if (!status.ok()) return status.error();
  return call;
}

}  // namespace fusediff
