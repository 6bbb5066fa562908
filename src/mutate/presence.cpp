// Mutators of what is there: optional inputs, optional outputs.
#include <algorithm>
#include <string>
#include <vector>

#include "mutate/mutators.h"
#include "mutate/recipes.h"
#include "mutate/roles.h"
#include "mutate/scope.h"

namespace fusediff {

bool change_presence(Case& c, MutateContext& context) {
  std::vector<const InputRule*> open;
  for (const InputRule& rule : context.op.inputs) {
    // With an "if" it is not for us to choose.
    if (rule.optional && !rule.condition && is_drawn(rule)) open.push_back(&rule);
  }
  if (open.empty()) return false;
  const InputRule& rule = *context.rng.pick(open);
  if (c.inputs.erase(rule.name) != 0) return true;
  const DType dtype = dtype_in(c, context.op, rule.dtype, rule.name);
  const CaseScope scope(c, context.op);
  Tensor tensor;
  tensor.name = rule.name;
  tensor.dtype = dtype;
  tensor.shape = scope.shape(rule.shape).value_or(std::vector<std::int64_t>{});
  tensor.stride = dense_strides(tensor.shape);
  c.inputs[rule.name].fill = draw_fill(rule, tensor, context.rng);
  return true;
}

bool change_unwanted(Case& c, MutateContext& context) {
  std::vector<const std::string*> open;
  for (const OutputRule& rule : context.op.outputs) {
    if (rule.optional) open.push_back(&rule.name);
  }
  if (open.empty()) return false;
  const std::string& name = *context.rng.pick(open);
  const auto at = std::find(c.unwanted.begin(), c.unwanted.end(), name);
  if (at != c.unwanted.end()) {
    c.unwanted.erase(at);
  } else {
    c.unwanted.push_back(name);
  }
  return true;
}

}  // namespace fusediff
