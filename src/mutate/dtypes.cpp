// Mutator of dtypes.
#include <string>
#include <utility>
#include <vector>

#include "mutate/mutators.h"
#include "mutate/scope.h"

namespace fusediff {

bool change_dtype(Case& c, MutateContext& context) {
  std::vector<std::pair<const std::string*, const DTypeRule*>> open;
  const auto add = [&](const auto& rules) {
    for (const auto& rule : rules) {
      if (rule.dtype.choices.size() > 1) open.emplace_back(&rule.name, &rule.dtype);
    }
  };
  add(context.op.inputs);
  add(context.op.given);
  add(context.op.outputs);
  if (open.empty()) return false;
  const auto& [name, rule] = context.rng.pick(open);
  std::vector<DType> others = rule->choices;
  std::erase(others, dtype_in(c, context.op, *rule, *name));
  if (others.empty()) return false;
  c.dtypes[*name] = context.rng.pick(others);
  return true;
}

}  // namespace fusediff
