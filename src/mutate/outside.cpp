// Leaves what `where` allows, for runs that ask whether a target refuses what it must. Everything else stays legal.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "model/values.h"
#include "mutate/mutate.h"
#include "mutate/sizes.h"

namespace fusediff {
namespace {

constexpr int kTries = 16;

// Draws one dim or attribute that the rule speaks of anew.
bool change_name(Case& c, const std::string& name, MutateContext& context) {
  if (const DimRule* dim = context.op.dim(name)) {
    c.dims[name] = draw_dim(*dim, context.rng);
    return true;
  }
  const AttrRule* attr = context.op.attr(name);
  if (attr == nullptr || attr->derived) return false;
  std::optional<AttrValue> value = draw_attr(*attr, context.rng);
  if (!value) return false;
  c.attrs[name] = *std::move(value);
  return true;
}

// What a changed size may have put out of place.
void drop_places(Case& c) {
  c.layout.clear();
  for (auto& [name, value] : c.inputs) {
    value.set.clear();
    value.patches.clear();
  }
}

bool is_outside(const Case& c, const MutateContext& context) {
  const Result<Call> call = bind(c, context.op, context.max_bytes, /*outside=*/true);
  if (!call.ok() || call->broken.empty()) return false;
  for (const auto& [name, value] : c.inputs) {
    const auto by_name = [&name = name](const Tensor& tensor) { return tensor.name == name; };
    const auto input = std::find_if(call->inputs.begin(), call->inputs.end(), by_name);
    const auto given = std::find_if(call->givens.begin(), call->givens.end(), by_name);
    const Tensor* tensor = input != call->inputs.end() ? &*input : given != call->givens.end() ? &*given : nullptr;
    if (tensor == nullptr || !draw_values(value, *context.op.source(name), *tensor, *call).ok()) return false;
  }
  return true;
}

}  // namespace

bool break_where(Case& c, MutateContext& context) {
  if (context.op.where.empty()) return false;
  for (int i = 0; i < kTries; ++i) {
    Case candidate = c;
    const std::set<std::string>& names = context.rng.pick(context.op.where).names();
    if (names.empty()) continue;
    const std::vector<std::string> list(names.begin(), names.end());
    if (!change_name(candidate, context.rng.pick(list), context)) continue;
    drop_places(candidate);
    candidate.experiment = {};
    if (!is_outside(candidate, context)) continue;
    c = std::move(candidate);
    return true;
  }
  return false;
}

}  // namespace fusediff
