// Mutators of attributes. Derived ones follow the dims and never stand in a case.
#include <optional>
#include <vector>

#include "mutate/mutators.h"
#include "mutate/scope.h"
#include "mutate/sizes.h"

namespace fusediff {
namespace {

std::vector<std::size_t> free_attributes(const CaseScope& scope) {
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < scope.op().attrs.size(); ++i) {
    const AttrRule& rule = scope.op().attrs[i];
    if (!rule.derived && (!rule.condition || scope.holds(*rule.condition))) open.push_back(i);
  }
  return open;
}

std::optional<AttrValue> corner(const AttrRule& rule, Rng& rng) {
  switch (rule.kind) {
    case AttrKind::kInt:
      return AttrValue(rng.one_in(2) ? rule.int_low : rule.int_high);
    case AttrKind::kFloat:
      return AttrValue(rng.one_in(2) ? rule.float_low : rule.float_high);
    case AttrKind::kBool:
      return AttrValue(static_cast<std::int64_t>(rng.below(2)));
    case AttrKind::kChoice:
      if (rule.choices.empty()) return std::nullopt;
      return AttrValue(rng.one_in(2) ? rule.choices.front() : rule.choices.back());
  }
  return std::nullopt;
}

}  // namespace

bool change_attribute(Case& c, MutateContext& context) {
  CaseScope scope(c, context.op);
  const std::vector<std::size_t> open = free_attributes(scope);
  if (open.empty()) return false;
  const std::size_t at = context.rng.pick(open);
  constexpr int kTries = 8;  // a draw may hit what is already there: a bool does half of the time
  for (int i = 0; i < kTries; ++i) {
    std::optional<AttrValue> value = draw_attr(context.op.attrs[at], context.rng);
    if (value == scope.attrs()[at]) continue;
    const bool was_default = !scope.attrs()[at] && value == context.op.attrs[at].standard;
    if (was_default) continue;
    scope.attrs()[at] = std::move(value);
    scope.store(c);
    return true;
  }
  return false;
}

bool change_attributes_to_corners(Case& c, MutateContext& context) {
  CaseScope scope(c, context.op);
  const CaseScope before = scope;
  for (const std::size_t at : free_attributes(scope)) {
    if (auto value = corner(context.op.attrs[at], context.rng)) scope.attrs()[at] = std::move(value);
  }
  if (scope.attrs() == before.attrs()) return false;
  scope.store(c);
  return true;
}

}  // namespace fusediff
