// Two cases of one operator make a third: sizes, attributes, inputs and layouts of either.
#include <array>
#include <string>

#include "mutate/captured.h"
#include "mutate/experiments.h"
#include "mutate/mutate.h"

namespace fusediff {
namespace {

// Each key of the other's map with an even chance.
template <typename Map>
void lend(Map& to, const Map& from, Rng& rng) {
  for (const auto& [name, value] : from) {
    if (rng.one_in(2)) to[name] = value;
  }
}

void lend_inputs(Case& c, const Case& other, Rng& rng) {
  for (const auto& [name, value] : other.inputs) {
    const auto at = c.inputs.find(name);
    if (at == c.inputs.end()) {
      if (rng.one_in(4)) c.inputs[name] = value;
      continue;
    }
    switch (rng.below(5)) {
      case 0:
        at->second = value;
        break;
      case 1:
        at->second.fill = value.fill;
        break;
      case 2:
        at->second.patches = value.patches;
        break;
      case 3:
        at->second.set = value.set;
        break;
      default:
        break;
    }
  }
}

void lend_as_call(Case& c, const Case& other) {
  c.experiment.calls.push_back(other);
  c.experiment.calls.back().experiment = {};
}

// The whole of the other's, where it may be drawn at all; or the other itself as a call beside this one.
void lend_experiment(Case& c, const Case& other, MutateContext& context) {
  Experiment& e = c.experiment;
  if (e.calls.size() < most_drawn_calls(e.kind) && context.rng.one_in(2)) return lend_as_call(c, other);
  const bool drawn = context.experiment_weights[static_cast<std::size_t>(other.experiment.kind)] > 0;
  if (drawn && context.rng.one_in(4)) e = other.experiment;
}

}  // namespace

bool crossover(Case& c, const Case& other, MutateContext& context) {
  Rng& rng = context.rng;
  if (other.op != c.op) {
    const bool fits = operator_of(context, other.op) != nullptr && c.op == context.op.name;
    if (fits && c.experiment.calls.size() < most_drawn_calls(c.experiment.kind)) lend_as_call(c, other);
    if (other.op == context.op.name) c = other;
    return repair(c, context);
  }
  const Case before = c;
  constexpr int kTries = 4;  // a draw may lend nothing that differs
  for (int i = 0; i < kTries && c == before; ++i) {
    // Sizes belong together more often than not: a pair of them may be what matters.
    if (rng.one_in(4)) c.dims = other.dims;
    if (rng.one_in(4)) lend(c.dims, other.dims, rng);
    if (rng.one_in(2)) lend(c.attrs, other.attrs, rng);
    if (rng.one_in(4)) c.dtypes = other.dtypes;
    if (rng.one_in(2)) lend_inputs(c, other, rng);
    if (rng.one_in(3)) lend(c.layout, other.layout, rng);
    if (rng.one_in(8)) c.unwanted = other.unwanted;
    lend_experiment(c, other, context);
  }
  refit_bits(c, std::array{&before, &other}, context);
  return repair(c, context) && !(c == before);
}

}  // namespace fusediff
