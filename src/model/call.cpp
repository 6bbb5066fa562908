#include "model/call.h"

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

}  // namespace fusediff
