// Mutators of the recipe that an input is drawn by.
#include <vector>

#include "mutate/mutators.h"
#include "mutate/recipes.h"

namespace fusediff {

bool change_fill(Case& c, MutateContext& context) {
  const Result<Call> call = bind(c, context.op, context.max_bytes);
  if (!call.ok()) return false;
  const std::vector<Source> sources = drawn_sources(*call);
  if (sources.empty()) return false;
  const Source& source = context.rng.pick(sources);
  InputValue& value = c.inputs[source.rule->name];
  const Fill fill = draw_fill(*source.rule, *source.tensor, context.rng);
  if (fill == value.fill) return false;
  value.fill = fill;
  return true;
}

bool change_seed(Case& c, MutateContext& context) {
  std::vector<Fill*> seeded;
  const auto add = [&](Fill& fill) {
    if (fill.kind != FillKind::kConstant && fill.kind != FillKind::kBits && fill.kind != FillKind::kRamp) {
      seeded.push_back(&fill);
    }
  };
  for (auto& [name, value] : c.inputs) {
    add(value.fill);
    for (Patch& patch : value.patches) add(patch.fill);
  }
  if (seeded.empty()) return false;
  Fill& fill = *context.rng.pick(seeded);
  const std::uint64_t old = fill.seed;
  fill.seed = context.rng.below(std::uint64_t{1} << 32);
  return fill.seed != old;
}

}  // namespace fusediff
