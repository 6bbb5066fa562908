// Mutators of near-equal ranks. An exact tie is made after the operator's arithmetic: what ranks is asked of the
// unfused side, and one input element is moved until two candidates rank equally or a few ULP apart.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "mutate/lever.h"
#include "mutate/mutators.h"
#include "mutate/ranks.h"
#include "mutate/recipes.h"
#include "mutate/scope.h"
#include "mutate/tie_search.h"

namespace fusediff {
namespace {

constexpr std::int64_t kMaxMiss = 4;  // ULP: what still counts as nearly tied

bool is_smallest(const Case& c, const Operator& op, const DecideRule& rule) {
  if (rule.order != Order::kByAttr) return rule.order == Order::kSmallest;
  const AttrRule* attr = op.attr(rule.order_attr);
  const auto at = c.attrs.find(rule.order_attr);
  const AttrValue* value = at != c.attrs.end() ? &at->second : nullptr;
  if (value == nullptr && attr != nullptr && attr->standard) value = &*attr->standard;
  return value != nullptr && value->index() == 0 && std::get<std::int64_t>(*value) == 0;
}

// Brings a bias in, or makes the one that is there plain: zero but for the overrides to come. A rank is then the score
// itself, so that a difference of 1 ULP in the score shows, and a 16-bit bias, being small, reaches ranks finely.
void prepare_bias(Case& c, MutateContext& context) {
  for (const InputRule& rule : context.op.inputs) {
    if (rule.role != Role::kBias || rule.condition) continue;
    const auto at = c.inputs.find(rule.name);
    const bool there = at != c.inputs.end();
    if (!there && (!rule.optional || context.rng.one_in(8))) continue;
    const bool coarse = size_of(dtype_in(c, context.op, rule.dtype, rule.name)) < 4;
    if (there && !context.rng.one_in(coarse ? 2 : 4)) continue;
    InputValue& value = c.inputs[rule.name];
    value = {};
    if (!there && !coarse) {
      value.fill.kind = FillKind::kUniform;
      value.fill.a = -0.1;
      value.fill.b = 0.1;
      value.fill.seed = context.rng.below(std::uint64_t{1} << 32);
    }
  }
}

// The outside candidate that one step of a lever that adds brings nearest to the aim, a random one of equals; its miss.
std::optional<std::pair<Aim, std::int64_t>> best_of_row(TieSearch& search, const Lever& lever, std::int64_t row,
                                                        std::int64_t gap) {
  const std::int64_t partner = search.ranks.boundary_pick(row);
  if (partner < 0) return std::nullopt;
  std::optional<std::pair<Aim, std::int64_t>> best;
  std::uint64_t equals = 0;
  for (const std::int64_t column : search.ranks.outside(row)) {
    if (!lever.usable(row, column)) continue;
    const Aim aim{row, column, partner, gap};
    const std::int64_t left = lever.kind() == Lever::Kind::kScore ? 0 : std::abs(guess(lever, search.ranks, aim).miss);
    if (best && left > best->second) continue;
    equals = !best || left < best->second ? 1 : equals + 1;
    if (equals == 1 || search.context.rng.one_in(equals)) best = {aim, left};
  }
  return best;
}

// A 16-bit lever reaches few ranks exactly: several rows are looked at, which costs no probe.
std::optional<Aim> choose_aim(TieSearch& search, const Lever& lever, std::int64_t gap) {
  constexpr int kRows = 16;
  std::optional<std::pair<Aim, std::int64_t>> best;
  for (int i = 0; i < kRows && (!best || best->second != 0); ++i) {
    const auto found = best_of_row(search, lever, search.context.rng.between(0, search.ranks.rows() - 1), gap);
    if (found && (!best || found->second < best->second)) best = found;
  }
  return best ? std::optional<Aim>(best->first) : std::nullopt;
}

// Walks to the last input of the plateau that rounds to this rank: a half-way point of the operator's rounding.
void walk_to_edge(TieSearch& search, Lever& lever, const Aim& aim) {
  const std::int64_t way = search.context.rng.one_in(2) ? 1 : -1;
  std::int64_t good = lever.key(aim.row, aim.column);
  std::optional<std::int64_t> bad;
  std::int64_t step = 1;
  constexpr int kSteps = 6;
  for (int i = 0; i < kSteps && (!bad || std::abs(*bad - good) > 1); ++i) {
    const std::int64_t next = bad ? good + (*bad - good) / 2 : good + way * step;
    step *= 4;
    lever.set(search.c, aim.row, aim.column, next);
    const std::optional<Ranks> seen = search.probes.look(search.c, false);
    if (seen && seen->finite(aim.row, aim.column) && seen->finite(aim.row, aim.partner) && miss(*seen, aim) == 0) {
      good = next;
      search.ranks = *seen;
    } else {
      bad = next;
    }
  }
  lever.set(search.c, aim.row, aim.column, good);
}

// Others to the same rank in one step each, unproved: a run of ties, wherever its members stand.
void lengthen(TieSearch& search, Lever& lever, const Aim& aim, std::vector<std::int64_t> outside) {
  std::erase(outside, aim.column);
  const std::uint64_t more = 2 + search.context.rng.below(6);
  for (std::uint64_t i = 0; i < more && !outside.empty(); ++i) {
    const std::size_t at = static_cast<std::size_t>(search.context.rng.below(outside.size()));
    const std::int64_t column = outside[at];
    outside.erase(outside.begin() + static_cast<std::ptrdiff_t>(at));
    if (!lever.usable(aim.row, column)) continue;
    if (lever.kind() == Lever::Kind::kScore) {
      lever.set(search.c, aim.row, column, lever.key(aim.row, aim.column) + search.context.rng.between(-2, 2));
      continue;
    }
    const Guess step = guess(lever, search.ranks, {aim.row, column, aim.partner, 0});
    if (step.miss == 0) lever.set(search.c, aim.row, column, step.key);
  }
}

bool tie_any(TieSearch& search) {
  Rng& rng = search.context.rng;
  if (search.levers.empty()) return false;
  // The first is the rank itself, or a bias; a score only now and then when there is either.
  Lever& lever = rng.one_in(4) ? rng.pick(search.levers) : search.levers.front();
  const std::int64_t gap = rng.one_in(2) ? 0 : rng.between(1, kMaxMiss) * (rng.one_in(2) ? 1 : -1);
  const std::optional<Aim> chosen = choose_aim(search, lever, gap);
  if (!chosen) return false;
  const Aim aim = *chosen;
  const auto [row, column, partner, wanted] = aim;
  if (lever.kind() == Lever::Kind::kScore && lever.usable(row, partner)) {
    const std::int64_t beside = rng.between(1, 4) * (rng.one_in(2) ? 1 : -1);
    lever.set(search.c, row, column, lever.key(row, partner) + beside);
    std::optional<Ranks> seen = search.probes.look(search.c, false);
    if (!seen || !seen->finite(row, column) || !seen->finite(row, partner)) return false;
    search.ranks = *std::move(seen);
  }
  const std::int64_t left = solve(search.c, lever, aim, search.ranks, search.probes, kSolveProbes);
  if (std::abs(left + wanted) > kMaxMiss) return false;
  if (left == 0 && wanted == 0 && rng.one_in(4)) walk_to_edge(search, lever, aim);
  // Equal scores rank equally only where nothing is added to them.
  const bool alike = lever.kind() != Lever::Kind::kScore || search.lever(Lever::Kind::kAdded) == nullptr;
  if (alike && rng.one_in(4)) lengthen(search, lever, aim, search.ranks.outside(row));
  return true;
}

}  // namespace

Lever* TieSearch::lever(Lever::Kind kind) {
  for (Lever& one : levers) {
    if (one.kind() == kind) return &one;
  }
  return nullptr;
}

bool make_tie(Case& c, MutateContext& context) {
  if (!context.probe || context.op.decide.empty()) return false;
  const auto index = static_cast<std::size_t>(context.rng.below(context.op.decide.size()));
  const DecideRule& rule = context.op.decide[index];
  const bool smallest = is_smallest(c, context.op, rule);
  const Case before = c;
  if (context.op.input(rule.by) == nullptr) prepare_bias(c, context);
  ProbeBudget probes(context, index, smallest, kMaxProbes);
  std::optional<Ranks> ranks = probes.look(c, true);
  if (!ranks || ranks->slots() >= ranks->columns()) {
    c = before;
    return false;
  }
  std::vector<Lever> levers = Lever::find(c, context, rule, *ranks);
  TieSearch search{c, context, *std::move(ranks), std::move(levers), probes};
  const bool prefer_difference = !context.rng.one_in(8);
  if (prefer_difference && tie_difference(search)) return true;
  if (tie_any(search)) return true;
  c = before;
  return false;
}

}  // namespace fusediff
