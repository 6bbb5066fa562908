// Dims and attributes of a call.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "model/call_bind.h"
#include "model/quote.h"

namespace fusediff {

namespace {

std::string number_text(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

std::string text_of(const AttrValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&value)) return number_text(*real);
  return quote(std::get<std::string>(value));
}

// "bad name" of a map entry that the operator does not know.
template <typename Map, typename Known>
Status no_strangers(const Map& map, std::string_view section, std::string_view kind, const Known& known) {
  for (const auto& [name, value] : map) {
    const auto same = [&name = name](const auto& rule) { return rule.name == name; };
    if (std::any_of(known.begin(), known.end(), same)) continue;
    return at_name(section, name, not_one_of(name, kind, names_in(known)));
  }
  return {};
}

// The stated value as the attribute's kind; an integer is a float too.
Status typed_value(const AttrRule& rule, const AttrValue& stated, AttrValue& value) {
  const auto* integer = std::get_if<std::int64_t>(&stated);
  const auto* real = std::get_if<double>(&stated);
  const auto* text = std::get_if<std::string>(&stated);
  value = stated;
  switch (rule.kind) {
    case AttrKind::kInt:
      if (integer != nullptr) return {};
      return at_name("attrs", rule.name, text_of(stated) + " is not an integer, which belongs here");
    case AttrKind::kBool:
      if (integer != nullptr && (*integer == 0 || *integer == 1)) return {};
      return at_name("attrs", rule.name, text_of(stated) + " stands where true or false belongs");
    case AttrKind::kFloat:
      if (integer != nullptr) value = static_cast<double>(*integer);
      if (integer != nullptr || (real != nullptr && std::isfinite(*real))) return {};
      return at_name("attrs", rule.name, text_of(stated) + " is not a finite number, which belongs here");
    case AttrKind::kChoice:
      break;
  }
  const std::string found = text == nullptr ? text_of(stated) : *text;
  if (text != nullptr && std::find(rule.choices.begin(), rule.choices.end(), found) != rule.choices.end()) return {};
  return at_name("attrs", rule.name, not_one_of(found, "one of the choices", rule.choices));
}

// A note when a number is neither in the tried range nor a value that the schema names.
void note_range(const AttrRule& rule, const AttrValue& value, Call& call) {
  if (rule.kind == AttrKind::kBool || rule.kind == AttrKind::kChoice || rule.derived) return;
  if (rule.standard == value || std::find(rule.also.begin(), rule.also.end(), value) != rule.also.end()) return;
  std::string range;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    if (*integer >= rule.int_low && *integer <= rule.int_high) return;
    range = std::to_string(rule.int_low) + " to " + std::to_string(rule.int_high);
  } else {
    const double real = std::get<double>(value);
    if (real >= rule.float_low && real <= rule.float_high) return;
    range = number_text(rule.float_low) + " to " + number_text(rule.float_high);
  }
  call.notes.push_back("attribute " + rule.name + " = " + text_of(value) + " lies outside the tried range " + range);
}

// Derived, stated or default; "if" comes later.
Status attr_value(const AttrRule& rule, const Case& c, const Call& call, AttrValue& value) {
  const auto stated = c.attrs.find(rule.name);
  if (rule.derived) {
    if (stated != c.attrs.end()) {
      const std::string from = quote(rule.derived->text());
      return at_name("attrs", rule.name, "is computed from " + from + " and does not stand in a case");
    }
    const Result<std::int64_t> computed = call.evaluate(*rule.derived);
    if (!computed.ok()) return at_name("attrs", rule.name, computed.error().what);
    value = *computed;
    return {};
  }
  if (stated != c.attrs.end()) return typed_value(rule, stated->second, value);
  if (!rule.standard) return user_error("/attrs: " + quote(rule.name) + " is missing and has no default");
  value = *rule.standard;
  return {};
}

Status apply_condition(const AttrRule& rule, Call& call, CallAttr& attr) {
  const Result<std::int64_t> holds = call.evaluate(*rule.condition);
  if (!holds.ok()) return at_name("attrs", rule.name, holds.error().what);
  if (*holds != 0 || !rule.standard) return {};
  if (rule.derived) attr.value = *rule.standard;
  if (attr.value == *rule.standard) return {};
  return at_name("attrs", rule.name,
                 text_of(attr.value) + " where " + quote(rule.condition->text()) + " does not hold (" +
                     values_of(call, *rule.condition) + "); its default belongs here, " + text_of(*rule.standard));
}

}  // namespace

std::string values_of(const Call& call, const Expr& expr) {
  std::string text;
  const ExprScope scope = call.scope();
  for (const std::string& name : expr.names()) {
    ExprValue value;
    if (!scope(name, value)) continue;
    if (!text.empty()) text += ", ";
    text += name + " = ";
    const auto* integer = std::get_if<std::int64_t>(&value);
    text += integer != nullptr ? std::to_string(*integer) : quote(std::get<std::string_view>(value));
  }
  return text;
}

Status bind_dims(const Case& c, Call& call) {
  call.dims.reserve(call.op->dims.size());
  for (const DimRule& rule : call.op->dims) {
    const auto stated = c.dims.find(rule.name);
    if (stated == c.dims.end()) {
      return user_error("/dims: " + quote(rule.name) + " is missing; legal: " + list_of(names_in(call.op->dims)));
    }
    const std::int64_t size = stated->second;
    if (size < 0)
      return at_name("dims", rule.name, std::to_string(size) + " is not a size; an integer from 0 belongs here");
    if (size < rule.low || size > rule.high) {
      call.notes.push_back("dim " + rule.name + " = " + std::to_string(size) + " lies outside the tried range " +
                           std::to_string(rule.low) + " to " + std::to_string(rule.high));
    }
    call.dims.push_back(size);
  }
  if (c.dims.size() == call.dims.size()) return {};
  return no_strangers(c.dims, "dims", "a dim of " + call.op->name, call.op->dims);
}

Status bind_attrs(const Case& c, Call& call) {
  const std::vector<AttrRule>& rules = call.op->attrs;
  if (!c.attrs.empty()) {
    Status known = no_strangers(c.attrs, "attrs", "an attribute of " + call.op->name, rules);
    if (!known.ok()) return known;
  }
  call.attrs.reserve(rules.size());
  for (const AttrRule& rule : rules) {
    AttrValue value;
    Status status = attr_value(rule, c, call, value);
    if (!status.ok()) return status;
    note_range(rule, value, call);
    call.attrs.push_back({rule.name, std::move(value)});
  }
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (!rules[i].condition) continue;
    Status status = apply_condition(rules[i], call, call.attrs[i]);
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace fusediff
