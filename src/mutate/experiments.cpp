// Mutators of the experiment: another one, other parameters, its calls.
#include "mutate/experiments.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "mutate/mutators.h"

namespace fusediff {
namespace {

// [RelationKind] shares of those that an operator answers.
constexpr std::array<int, kRelationKindCount> kRelationWeights = {3, 3, 2, 4, 3, 2, 3, 1};

// A few threads show most of what many show, and more of them in the same time.
constexpr std::array<std::int64_t, 12> kThreadCounts = {2, 2, 2, 3, 4, 4, 4, 8, 8, 8, 16, 32};
constexpr std::array<std::int64_t, 8> kRoundCounts = {1, 2, 4, 4, 8, 8, 16, 32};
constexpr std::array<std::int64_t, 9> kRepeatCounts = {2, 3, 4, 8, 16, 32, 64, 128, 300};  // 300 show one in a hundred
constexpr std::int64_t kMostDrawnRepeats = 300;

std::uint64_t draw_seed(Rng& rng) { return rng.below(std::uint64_t{1} << 32); }

std::int64_t draw_threads(Rng& rng) { return rng.one_in(16) ? rng.between(2, kMostThreads) : rng.pick(kThreadCounts); }

std::int64_t draw_repeats(Rng& rng) {
  return rng.one_in(8) ? rng.between(2, kMostDrawnRepeats) : rng.pick(kRepeatCounts);
}

// The first row and the last, or any between; for a split the second part is not all.
std::int64_t draw_row(const Case& c, const Operator& op, RelationKind relation, Rng& rng) {
  const std::int64_t last = c.dims.at(op.rows->dim) - 1;
  const std::int64_t first = relation == RelationKind::kBatchSplit ? 1 : 0;
  if (last <= first) return std::max<std::int64_t>(last, 0);
  switch (rng.below(4)) {
    case 0:
      return first;
    case 1:
      return last;
    default:
      return rng.between(first, last);
  }
}

bool has_row(RelationKind relation) {
  return relation == RelationKind::kRowAlone || relation == RelationKind::kBatchSplit;
}

template <typename Kind, std::size_t kCount, typename Takes>
std::optional<Kind> draw_weighted(const std::array<int, kCount>& weights, Rng& rng, const Takes& takes) {
  std::array<int, kCount> open = weights;
  int total = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    if (open[i] > 0 && !takes(static_cast<Kind>(i))) open[i] = 0;
    total += std::max(open[i], 0);
  }
  if (total == 0) return std::nullopt;
  auto at = static_cast<int>(rng.below(static_cast<std::uint64_t>(total)));
  for (std::size_t i = 0; i < kCount; ++i) {
    at -= std::max(open[i], 0);
    if (at < 0) return static_cast<Kind>(i);
  }
  return std::nullopt;
}

// Something that is not as it would be by default, for `dense` to undo.
bool give_layout(Case& c, MutateContext& context) {
  constexpr int kTries = 4;
  for (int i = 0; i < kTries; ++i) {
    if (answers(context.op, c, RelationKind::kDense)) return true;
    if (!change_strides(c, context)) (void)change_place(c, context);
    if (!repair(c, context)) return false;
  }
  return answers(context.op, c, RelationKind::kDense);
}

// A relation of one row or of none moves nothing.
bool is_worth_drawing(const Operator& op, const Case& c, RelationKind relation) {
  if (relation == RelationKind::kDense) return true;  // a layout comes with it
  if (!answers(op, c, relation)) return false;
  const bool rows = has_row(relation) || relation == RelationKind::kRowsPermuted;
  return !rows || c.dims.at(op.rows->dim) >= 2;
}

void draw_relation(Case& c, MutateContext& context) {
  const auto relation = draw_weighted<RelationKind>(
      kRelationWeights, context.rng, [&](RelationKind kind) { return is_worth_drawing(context.op, c, kind); });
  c.experiment = {};
  if (!relation || (*relation == RelationKind::kDense && !give_layout(c, context))) return;
  Experiment& e = c.experiment;
  e.kind = ExperimentKind::kRelation;
  e.relation = *relation;
  if (has_row(e.relation)) e.row = draw_row(c, context.op, e.relation, context.rng);
  if (e.relation == RelationKind::kRowsPermuted) e.seed = draw_seed(context.rng);
}

void add_calls(Case& c, std::uint64_t count, MutateContext& context) {
  for (std::uint64_t i = 0; i < count; ++i) {
    if (std::optional<Case> call = draw_call(c, context)) c.experiment.calls.push_back(*std::move(call));
  }
}

void draw_parameters(Case& c, ExperimentKind kind, MutateContext& context) {
  Rng& rng = context.rng;
  if (kind == ExperimentKind::kRelation) return draw_relation(c, context);
  c.experiment = {};
  c.experiment.kind = kind;
  switch (kind) {
    case ExperimentKind::kRepeat:
      c.experiment.count = draw_repeats(rng);
      if (rng.one_in(2)) add_calls(c, 1 + rng.below(2), context);
      break;
    case ExperimentKind::kThreads:
      c.experiment.count = draw_threads(rng);
      c.experiment.rounds = rng.pick(kRoundCounts);
      c.experiment.seed = draw_seed(rng);
      if (!rng.one_in(3)) add_calls(c, 1 + rng.below(4), context);
      break;
    case ExperimentKind::kHistory:
      add_calls(c, 1 + rng.below(4), context);
      break;
    case ExperimentKind::kGradient:
      c.experiment.seed = draw_seed(rng);
      break;
    case ExperimentKind::kPair:
    case ExperimentKind::kRelation:
      break;
  }
}

}  // namespace

bool draw_experiment(Case& c, MutateContext& context) {
  const auto kind = draw_weighted<ExperimentKind>(context.experiment_weights, context.rng,
                                                  [&](ExperimentKind each) { return answers(context.op, each); });
  if (!kind || (*kind == ExperimentKind::kPair && c.experiment.kind == ExperimentKind::kPair)) return false;
  const Experiment before = c.experiment;
  draw_parameters(c, *kind, context);
  repair_experiment(c, context);
  return !(c.experiment == before);
}

bool change_experiment(Case& c, MutateContext& context) {
  const Case before = c;
  if (draw_experiment(c, context)) return true;
  c = before;
  return false;
}

bool change_experiment_parameters(Case& c, MutateContext& context) {
  Rng& rng = context.rng;
  Experiment& e = c.experiment;
  const Experiment before = e;
  switch (e.kind) {
    case ExperimentKind::kRepeat:
      e.count = draw_repeats(rng);
      break;
    case ExperimentKind::kThreads:
      switch (rng.below(3)) {
        case 0:
          e.count = draw_threads(rng);
          break;
        case 1:
          e.rounds = rng.pick(kRoundCounts);
          break;
        default:
          e.seed = draw_seed(rng);
      }
      break;
    case ExperimentKind::kRelation:
      if (has_row(e.relation) && context.op.rows) e.row = draw_row(c, context.op, e.relation, rng);
      if (e.relation == RelationKind::kRowsPermuted) e.seed = draw_seed(rng);
      break;
    case ExperimentKind::kGradient:
      e.seed = draw_seed(rng);
      break;
    case ExperimentKind::kPair:
    case ExperimentKind::kHistory:
      return false;
  }
  return !(e == before);
}

bool add_call(Case& c, MutateContext& context) {
  const Experiment& e = c.experiment;
  if (!takes_calls(e.kind) || e.calls.size() >= most_drawn_calls(e.kind)) return false;
  std::optional<Case> call = draw_call(c, context);
  if (!call) return false;
  const auto at = static_cast<std::ptrdiff_t>(context.rng.below(e.calls.size() + 1));
  c.experiment.calls.insert(c.experiment.calls.begin() + at, *std::move(call));
  return true;
}

bool drop_call(Case& c, MutateContext& context) {
  std::vector<Case>& calls = c.experiment.calls;
  const bool needs_one = c.experiment.kind == ExperimentKind::kHistory;
  if (calls.size() <= (needs_one ? 1u : 0u)) return false;
  calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(context.rng.below(calls.size())));
  return true;
}

bool change_call(Case& c, MutateContext& context) {
  if (c.experiment.calls.empty()) return false;
  Case& call = context.rng.pick(c.experiment.calls);
  const Operator* op = operator_of(context, call.op);
  if (op == nullptr) return false;
  const std::uint64_t others = bytes_of_all(c, context) - bytes_of_call(call, *op);
  if (others >= context.max_bytes) return false;
  Case changed = call;
  MutateContext alone = for_call(context, *op, context.max_bytes - others);
  if (!mutate(changed, alone)) return false;
  call = std::move(changed);
  return true;
}

}  // namespace fusediff
