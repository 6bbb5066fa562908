#include "model/schema.h"

#include <algorithm>

#include "base/hash.h"

namespace fusediff {

namespace {

template <typename List>
auto* named(List& list, std::string_view name) {
  const auto at = std::find_if(list.begin(), list.end(), [name](const auto& item) { return item.name == name; });
  return at == list.end() ? nullptr : &*at;
}

bool contains(const std::vector<std::string>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

bool Operator::has_path(std::string_view path) const { return contains(paths, path); }

bool Operator::is_deterministic(std::string_view path) const { return contains(deterministic_paths, path); }

const DimRule* Operator::dim(std::string_view wanted) const { return named(dims, wanted); }

const AttrRule* Operator::attr(std::string_view wanted) const { return named(attrs, wanted); }

const InputRule* Operator::input(std::string_view wanted) const { return named(inputs, wanted); }

const InputRule* Operator::source(std::string_view wanted) const {
  const InputRule* found = named(inputs, wanted);
  return found != nullptr ? found : named(given, wanted);
}

const OutputRule* Operator::output(std::string_view wanted) const { return named(outputs, wanted); }

namespace {

template <typename Change>
void change_inputs(std::vector<InputRule>& rules, const Change& change) {
  for (InputRule& rule : rules) {
    for (Expr& size : rule.shape) change(size);
    if (rule.range) {
      change(rule.range->first);
      change(rule.range->second);
    }
    if (rule.sum) change(*rule.sum);
    if (rule.condition) change(*rule.condition);
  }
}

template <typename Change>
void change_outputs(std::vector<OutputRule>& rules, const Change& change) {
  for (OutputRule& rule : rules) {
    for (Expr& size : rule.shape) change(size);
    if (rule.condition) change(*rule.condition);
    if (rule.bound) {
      change(rule.bound->ulp);
      for (auto& [dtype, ulp] : rule.bound->by_dtype) change(ulp);
    }
    for (AlwaysRule& always : rule.always) {
      if (auto* low = std::get_if<Expr>(&always.low)) change(*low);
      if (auto* high = std::get_if<Expr>(&always.high)) change(*high);
      if (always.condition) change(*always.condition);
    }
  }
}

}  // namespace

void resolve_names(Operator& op) {
  std::vector<std::string> names;
  std::string joined;
  for (const DimRule& dim : op.dims) names.push_back(dim.name);
  for (const AttrRule& attr : op.attrs) names.push_back(attr.name);
  for (const std::string& name : names) joined += name + '\n';
  op.slots_key = hash128(joined).low | 1;
  const auto change = [&](Expr& expr) { expr = expr.resolved(names, op.slots_key); };
  for (AttrRule& attr : op.attrs) {
    if (attr.derived) change(*attr.derived);
    if (attr.condition) change(*attr.condition);
  }
  for (Expr& expr : op.where) change(expr);
  change_inputs(op.inputs, change);
  change_inputs(op.given, change);
  change_outputs(op.outputs, change);
  for (DecideRule& rule : op.decide) change(rule.count);
}

const Operator* Schema::find(std::string_view name) const { return named(operators, name); }

}  // namespace fusediff
