// Calls beside a case: mates of threads, calls between, calls before.
#include <array>
#include <limits>
#include <utility>

#include "mutate/experiments.h"
#include "mutate/mutators.h"

namespace fusediff {
namespace {

const Probe kNoProbe;

constexpr std::array<int, kExperimentKindCount> kPairOnly = {1, 0, 0, 0, 0, 0};

Case alone(const Case& c) {
  Case call = c;
  call.experiment = {};
  return call;
}

// Other values in the same tensors: what is shared by shape shows only where the values differ.
Case with_other_values(const Case& c, MutateContext& context) {
  Case call = alone(c);
  for (auto& [name, value] : call.inputs) {
    value.fill.seed = context.rng.below(std::uint64_t{1} << 32);
    for (Patch& patch : value.patches) patch.fill.seed = context.rng.below(std::uint64_t{1} << 32);
  }
  if (call == alone(c)) (void)change_fill(call, context);  // nothing was drawn from a seed
  return call;
}

Case with_other_sizes(const Case& c, MutateContext& context) {
  constexpr std::array kChanges = {change_one_dim, change_one_dim, change_two_dims, change_to_typical_dims,
                                   change_dim_to_zero};
  constexpr int kTries = 4;
  Case call = alone(c);
  for (int i = 0; i < kTries && call.dims == c.dims; ++i) (void)context.rng.pick(kChanges)(call, context);
  if (context.rng.one_in(4)) (void)change_dtype(call, context);
  return call;
}

std::optional<Case> of_any_operator(MutateContext& context, std::uint64_t room) {
  if (context.operators.empty()) return std::nullopt;
  const Operator& op = *context.rng.pick(context.operators);
  MutateContext other = for_call(context, op, room);
  return random_case(other);
}

}  // namespace

const Operator* operator_of(const MutateContext& context, std::string_view name) {
  if (context.op.name == name) return &context.op;
  for (const Operator* op : context.operators) {
    if (op->name == name) return op;
  }
  return nullptr;
}

MutateContext for_call(const MutateContext& context, const Operator& op, std::uint64_t max_bytes) {
  return {op, context.rng, max_bytes, kNoProbe, context.operators, kPairOnly};
}

bool takes_calls(ExperimentKind kind) {
  return kind == ExperimentKind::kRepeat || kind == ExperimentKind::kThreads || kind == ExperimentKind::kHistory;
}

std::size_t most_drawn_calls(ExperimentKind kind) {
  if (!takes_calls(kind)) return 0;
  return kind == ExperimentKind::kThreads ? 8 : 4;
}

std::optional<Case> draw_call(const Case& c, MutateContext& context) {
  const std::uint64_t taken = bytes_of_all(c, context);
  if (taken >= context.max_bytes) return std::nullopt;
  const std::uint64_t room = context.max_bytes - taken;
  MutateContext own = for_call(context, context.op, room);
  std::optional<Case> call;
  switch (context.rng.below(8)) {
    case 0:
    case 1:
      call = alone(c);
      break;
    case 2:
    case 3:
      call = with_other_values(c, own);
      break;
    case 4:
    case 5:
      call = with_other_sizes(c, own);
      break;
    case 6:
      return random_case(own);
    default:
      call = of_any_operator(context, room);
      return call ? call : random_case(own);
  }
  if (!repair(*call, own)) return std::nullopt;
  return call;
}

}  // namespace fusediff
