#include <algorithm>
#include <string>

#include "mutate/experiments.h"
#include "mutate/mutate.h"
#include "mutate/mutators.h"
#include "mutate/recipes.h"
#include "mutate/roles.h"
#include "mutate/scope.h"
#include "mutate/sizes.h"
#include "mutate/where.h"

namespace fusediff {
namespace {

void draw_dtypes(Case& c, const Operator& op, Rng& rng) {
  const auto draw = [&](const auto& rules) {
    for (const auto& rule : rules) {
      if (rule.dtype.choices.size() > 1) c.dtypes[rule.name] = rng.pick(rule.dtype.choices);
    }
  };
  draw(op.inputs);
  draw(op.given);
  draw(op.outputs);
}

void draw_sizes(Case& c, MutateContext& context) {
  const Operator& op = context.op;
  Rng& rng = context.rng;
  CaseScope scope(c, op);
  const bool all_typical = rng.one_in(4);
  for (std::size_t i = 0; i < op.dims.size(); ++i) {
    const DimRule& rule = op.dims[i];
    scope.dims()[i] = all_typical && !rule.typical.empty() ? rng.pick(rule.typical) : draw_dim(rule, rng);
  }
  for (std::size_t i = 0; i < op.attrs.size(); ++i) {
    if (op.attrs[i].derived) continue;
    if (!op.attrs[i].standard || rng.one_in(3)) scope.attrs()[i] = draw_attr(op.attrs[i], rng);
  }
  meet_where(scope, rng);
  shrink_dims(c, scope, draw_element_budget(rng), context.max_bytes, rng);
  scope.store(c);
}

void draw_inputs(Case& c, MutateContext& context) {
  const CaseScope scope(c, context.op);
  const auto draw = [&](const InputRule& rule) {
    if (!is_drawn(rule) || (rule.optional && !rule.condition && context.rng.one_in(2))) return;
    Tensor tensor;
    tensor.dtype = dtype_in(c, context.op, rule.dtype, rule.name);
    tensor.shape = scope.shape(rule.shape).value_or(std::vector<std::int64_t>{});
    tensor.stride = dense_strides(tensor.shape);
    c.inputs[rule.name].fill = draw_fill(rule, tensor, context.rng);
  };
  for (const InputRule& rule : context.op.inputs) draw(rule);
  for (const InputRule& rule : context.op.given) draw(rule);
}

}  // namespace

std::optional<Case> random_case(MutateContext& context) {
  constexpr int kTries = 8;
  for (int i = 0; i < kTries; ++i) {
    Case c;
    c.op = context.op.name;
    draw_dtypes(c, context.op, context.rng);
    draw_sizes(c, context);
    draw_inputs(c, context);
    if (!repair(c, context)) continue;
    // An ordinary case with one odd thing in it finds more than one where everything is odd.
    const std::uint64_t odd = context.rng.below(8);
    const bool changed = (odd == 0 && add_patch(c, context)) || (odd == 1 && set_elements(c, context)) ||
                         (odd == 2 && change_strides(c, context)) || (odd == 3 && change_place(c, context));
    if (changed && !repair(c, context)) continue;
    (void)draw_experiment(c, context);
    return c;
  }
  return std::nullopt;
}

}  // namespace fusediff
