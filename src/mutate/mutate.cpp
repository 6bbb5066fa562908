#include "mutate/mutate.h"

#include <array>

#include "mutate/captured.h"
#include "mutate/mutators.h"

namespace fusediff {
namespace {

constexpr std::array kMutators = {
    Mutator{"one_dim", 6, change_one_dim},
    Mutator{"two_dims", 4, change_two_dims},
    Mutator{"typical_dims", 2, change_to_typical_dims},
    Mutator{"zero_dim", 1, change_dim_to_zero},
    Mutator{"dtype", 2, change_dtype},
    Mutator{"attribute", 5, change_attribute},
    Mutator{"attribute_corners", 1, change_attributes_to_corners},
    Mutator{"place", 2, change_place},
    Mutator{"strides", 3, change_strides},
    Mutator{"drop_layout", 1, drop_layout},
    Mutator{"inplace", 1, change_inplace},
    Mutator{"fill", 5, change_fill},
    Mutator{"seed", 3, change_seed},
    Mutator{"patch", 4, add_patch},
    Mutator{"drop_patch", 2, drop_patch},
    Mutator{"elements", 4, set_elements},
    Mutator{"drop_elements", 2, drop_elements},
    Mutator{"presence", 1, change_presence},
    Mutator{"unwanted", 1, change_unwanted},
    Mutator{"saturate", 1, saturate_scores},
    Mutator{"zeros", 1, mix_zeros},
    Mutator{"experiment", 6, change_experiment},
    Mutator{"experiment_parameters", 3, change_experiment_parameters},
    Mutator{"add_call", 3, add_call},
    Mutator{"drop_call", 1, drop_call},
    Mutator{"change_call", 3, change_call},
    Mutator{"tie", 0, make_tie},  // mutate() draws it apart: it runs the case some ten times
};

constexpr std::uint64_t kTieShare = 8;  // one mutation in so many is a tie, where the operator decides
constexpr int kDraws = 16;              // of a mutator that finds something to change

int total_weight() {
  int total = 0;
  for (const Mutator& mutator : kMutators) total += mutator.weight;
  return total;
}

const Mutator& draw_mutator(Rng& rng) {
  auto at = static_cast<int>(rng.below(static_cast<std::uint64_t>(total_weight())));
  for (const Mutator& mutator : kMutators) {
    at -= mutator.weight;
    if (at < 0) return mutator;
  }
  return kMutators.front();
}

// One to three, half of the time one.
int draw_stack(Rng& rng) {
  const std::uint64_t draw = rng.below(4);
  return draw < 2 ? 1 : static_cast<int>(draw);
}

bool apply_one(Case& c, MutateContext& context) {
  for (int i = 0; i < kDraws; ++i) {
    if (draw_mutator(context.rng).apply(c, context)) return true;
  }
  return false;
}

}  // namespace

std::span<const Mutator> mutators() { return kMutators; }

bool mutate(Case& c, MutateContext& context) {
  const Case before = c;
  const bool tie = context.probe && !context.op.decide.empty() && context.rng.one_in(kTieShare);
  // A tie comes last: whatever changed after it would undo it.
  const int steps = tie ? static_cast<int>(context.rng.below(2)) : draw_stack(context.rng);
  for (int i = 0; i < steps; ++i) {
    const Case held = c;
    if (!apply_one(c, context)) return false;
    refit_bits(c, std::array{&held}, context);
    if (!repair(c, context)) return false;
  }
  if (tie) {
    if (!repair(c, context)) return false;
    if (make_tie(c, context) && !repair(c, context)) return false;
  }
  return !(c == before);
}

}  // namespace fusediff
