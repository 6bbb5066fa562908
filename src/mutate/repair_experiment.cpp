// The part of repair() that looks at the experiment of a case that is legal otherwise.
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "mutate/experiments.h"

namespace fusediff {
namespace {

// Bytes of tensors that all runs of one experiment touch together, about: some ten milliseconds. A run costs something
// however small it is.
constexpr std::uint64_t kMostWork = std::uint64_t{32} << 20;
constexpr std::uint64_t kWorkOfARun = 4096;

constexpr std::uint64_t kNotLegal = std::numeric_limits<std::uint64_t>::max();

std::uint64_t sum(std::uint64_t a, std::uint64_t b) { return a > kNotLegal - b ? kNotLegal : a + b; }

bool has_own_layout(const Case& c) {
  return std::any_of(c.layout.begin(), c.layout.end(), [](const auto& item) {
    const LayoutChoice& layout = item.second;
    return layout.stride || layout.offset != 0 || layout.place != Place::kEnd;
  });
}

bool is_float_tensor(const Case& c, const InputRule& rule) {
  const auto chosen = c.dtypes.find(rule.name);
  if (chosen != c.dtypes.end()) return is_float(chosen->second);
  return rule.dtype.choices.empty() || is_float(rule.dtype.choices.front());  // "=x": x stands for itself
}

// Each repaired with its own operator, or dropped. Where threads share a context, each must bear that.
void repair_calls(Case& c, MutateContext& context) {
  std::vector<Case>& calls = c.experiment.calls;
  if (calls.size() > kMostCalls) calls.resize(kMostCalls);
  std::uint64_t taken = bytes_of_call(c, context.op);
  std::vector<Case> kept;
  for (Case& call : calls) {
    const Operator* op = operator_of(context, call.op);
    if (op == nullptr || taken >= context.max_bytes) continue;
    if (c.experiment.kind == ExperimentKind::kThreads && context.op.shared_context && !op->shared_context) continue;
    call.experiment = {};
    MutateContext own = for_call(context, *op, context.max_bytes - taken);
    if (!repair(call, own)) continue;
    taken = sum(taken, bytes_of_call(call, *op));
    kept.push_back(std::move(call));
  }
  calls = std::move(kept);
}

// Fewer rounds first: a race needs threads more than it needs time.
void bound_cost(Case& c, const MutateContext& context) {
  Experiment& e = c.experiment;
  const std::uint64_t bytes = bytes_of_all(c, context);
  if (e.kind == ExperimentKind::kRepeat) {
    e.count = std::clamp<std::int64_t>(e.count, 2, kMostRepeats);
    const std::uint64_t most = kMostWork / sum(bytes, kWorkOfARun);
    e.count = std::clamp<std::int64_t>(static_cast<std::int64_t>(most), 2, e.count);
  }
  if (e.kind == ExperimentKind::kThreads) {
    e.count = std::clamp<std::int64_t>(e.count, 2, kMostThreads);
    e.rounds = std::clamp<std::int64_t>(e.rounds, 1, kMostRounds);
    const std::uint64_t a_run = bytes / (e.calls.size() + 1);
    const auto most = static_cast<std::int64_t>(kMostWork / sum(a_run, kWorkOfARun));
    e.rounds = std::clamp<std::int64_t>(most / e.count, 1, e.rounds);
    e.count = std::clamp<std::int64_t>(most / e.rounds, 2, e.count);
  }
}

// What its kind does not use is as in an Experiment that was just made.
Experiment only_used(const Experiment& e) {
  Experiment used;
  used.kind = e.kind;
  switch (e.kind) {
    case ExperimentKind::kPair:
      break;
    case ExperimentKind::kRepeat:
      used.count = e.count;
      used.calls = e.calls;
      break;
    case ExperimentKind::kThreads:
      used = e;
      used.relation = {};
      used.row = 0;
      break;
    case ExperimentKind::kRelation:
      used.relation = e.relation;
      if (e.relation == RelationKind::kRowAlone || e.relation == RelationKind::kBatchSplit) used.row = e.row;
      if (e.relation == RelationKind::kRowsPermuted) used.seed = e.seed;
      break;
    case ExperimentKind::kGradient:
      used.seed = e.seed;
      break;
    case ExperimentKind::kHistory:
      used.calls = e.calls;
      break;
  }
  return used;
}

}  // namespace

bool answers(const Operator& op, const Case& c, RelationKind relation) {
  switch (relation) {
    case RelationKind::kRowAlone:
    case RelationKind::kRowsPermuted:
    case RelationKind::kBatchSplit:
      return op.rows.has_value();
    case RelationKind::kDense:
      return has_own_layout(c);
    case RelationKind::kInplace:
      return std::any_of(op.inplace.begin(), op.inplace.end(), [](const InplaceRule& rule) { return !rule.always; });
    case RelationKind::kSameValue:
      return std::any_of(op.inputs.begin(), op.inputs.end(),
                         [&](const InputRule& rule) { return !rule.shape.empty() && is_float_tensor(c, rule); });
    case RelationKind::kMoved:
    case RelationKind::kOneCpu:
      break;
  }
  return true;
}

bool answers(const Operator& op, ExperimentKind kind) {
  return kind != ExperimentKind::kGradient || op.gradient.has_value();
}

std::uint64_t bytes_of_call(const Case& c, const Operator& op) {
  const Result<Call> call = bind(c, op, kNotLegal);
  if (!call.ok()) return kNotLegal;
  std::uint64_t bytes = 0;
  for (const auto* list : {&call->inputs, &call->givens, &call->outputs}) {
    for (const Tensor& tensor : *list) {
      if (!tensor.present) continue;
      const std::int64_t held = extent(tensor);
      if (held > 0) bytes = sum(bytes, static_cast<std::uint64_t>(held + tensor.offset) * size_of(tensor.dtype));
    }
  }
  return bytes;
}

std::uint64_t bytes_of_all(const Case& c, const MutateContext& context) {
  std::uint64_t bytes = bytes_of_call(c, context.op);
  for (const Case& call : c.experiment.calls) {
    const Operator* op = operator_of(context, call.op);
    bytes = op == nullptr ? kNotLegal : sum(bytes, bytes_of_call(call, *op));
  }
  return bytes;
}

void repair_experiment(Case& c, MutateContext& context) {
  Experiment& e = c.experiment;
  if (e.kind == ExperimentKind::kPair) {
    e = {};
    return;
  }
  const bool answered =
      answers(context.op, e.kind) && (e.kind != ExperimentKind::kRelation || answers(context.op, c, e.relation));
  if (!answered) {
    e = {};
    return;
  }
  e = only_used(e);
  repair_calls(c, context);
  if (e.kind == ExperimentKind::kHistory && e.calls.empty()) {
    e = {};
    return;
  }
  bound_cost(c, context);
  if (e.kind == ExperimentKind::kRelation && context.op.rows) {
    const std::int64_t rows = c.dims.at(context.op.rows->dim);
    e.row = std::clamp<std::int64_t>(e.row, 0, std::max<std::int64_t>(rows - 1, 0));
  }
}

}  // namespace fusediff
