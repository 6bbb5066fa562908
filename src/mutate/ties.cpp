// Mutators of near-equal ranks. An exact tie is made after the operator's arithmetic: what ranks is asked of the
// unfused side, and one input element is moved until two candidates rank equally or a few ULP apart.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "mutate/lever.h"
#include "mutate/mutators.h"
#include "mutate/ranks.h"
#include "mutate/recipes.h"
#include "mutate/scope.h"

namespace fusediff {
namespace {

constexpr int kMaxProbes = 24;           // of one tie, at most: each costs a run of the paths
constexpr int kSolveProbes = 10;         // of one search for an exact rank
constexpr std::int64_t kMaxMiss = 4;     // ULP: what still counts as nearly tied
constexpr std::size_t kMaxShifted = 16;  // overrides that move a boundary onto a candidate

struct Search {
  Case& c;
  MutateContext& context;
  const DecideRule& rule;
  Ranks ranks;  // of c as it is, both sides where they can be had
  std::vector<Lever> levers;
  ProbeBudget probes;
};

Lever* lever_of(Search& search, Lever::Kind kind) {
  for (Lever& lever : search.levers) {
    if (lever.kind() == kind) return &lever;
  }
  return nullptr;
}

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

// --- A candidate that the two sides rank differently, brought to the boundary.

struct Spot {
  std::int64_t row = 0;
  std::int64_t column = 0;
};

std::vector<Spot> differing(const Ranks& ranks) {
  std::vector<Spot> spots;
  if (!ranks.both_sides()) return spots;
  for (std::int64_t row = 0; row < ranks.rows(); ++row) {
    for (std::int64_t column = 0; column < ranks.columns(); ++column) {
      if (ranks.finite(row, column) && ranks.key(row, column) != ranks.fused_key(row, column)) {
        spots.push_back({row, column});
      }
    }
  }
  return spots;
}

// Against which partner does the difference flip the pick? Worse on the fused side: the lower index of equals, so that
// the unfused side picks it and the fused one does not; better there: the higher index.
bool flips_against(const Ranks& ranks, const Spot& spot, std::int64_t partner) {
  const bool worse = ranks.fused_key(spot.row, spot.column) < ranks.key(spot.row, spot.column);
  return worse ? spot.column < partner : spot.column > partner;
}

// Puts `partner` between the last candidate that stays picked and the first that does not, and the spot onto it, both
// with a lever that adds. One probe for the two, then the search for the exact tie.
bool tie_at_gap(Search& search, Lever& lever, const Spot& spot) {
  const std::vector<std::int64_t> order = search.ranks.best_first(spot.row);
  std::vector<std::int64_t> others, partners;
  for (const std::int64_t column : order) {
    if (column == spot.column) continue;
    others.push_back(column);
  }
  const auto slots = static_cast<std::size_t>(search.ranks.slots());
  if (others.size() < slots + 1) return false;
  // Near the boundary first: the less a rank moves, the better the rounding of it is kept.
  for (std::size_t i = slots - 1; i < others.size() && partners.size() < 16; ++i) {
    if (flips_against(search.ranks, spot, others[i]) && lever.usable(spot.row, others[i]))
      partners.push_back(others[i]);
  }
  if (partners.empty() || !lever.usable(spot.row, spot.column)) return false;
  const std::int64_t partner = partners[std::min<std::size_t>(partners.size() - 1, search.context.rng.below(3))];
  Aim aim{spot.row, spot.column, partner, 0};
  if (partner != others[slots - 1]) {
    // With the partner taken out, `slots - 1` stay above and the next one below.
    std::erase(others, partner);
    const std::int64_t low = search.ranks.key(spot.row, others[slots - 1]);
    const std::int64_t high = slots >= 2 ? search.ranks.key(spot.row, others[slots - 2]) : low + 4096;
    if (high - low < 2) return false;
    const Aim lift{spot.row, partner, others[slots - 1], (high - low) / 2};
    lever.set(search.c, spot.row, partner, guess(lever, search.ranks, lift).key);
    const std::int64_t middle = low + (high - low) / 2;
    const Aim follow{spot.row, spot.column, others[slots - 1], middle - low};
    lever.set(search.c, spot.row, spot.column, guess(lever, search.ranks, follow).key);
    std::optional<Ranks> seen = search.probes.look(search.c, false);
    if (!seen || !seen->finite(spot.row, spot.column) || !seen->finite(spot.row, partner)) return false;
    search.ranks = *std::move(seen);
  }
  return solve(search.c, lever, aim, search.ranks, search.probes, kSolveProbes) == 0;
}

// Moves the boundary to a spot that is not picked: those between are lowered to copies of the row's worst; where they
// are many, the whole row is, but for the best. Gives the candidates that are below the spot then.
std::vector<std::int64_t> lower_to_spot(Search& search, Lever& lever, const Spot& spot,
                                        const std::vector<std::int64_t>& order, std::size_t position) {
  const auto slots = static_cast<std::size_t>(search.ranks.slots());
  const std::int64_t worst = lever.key(spot.row, order.back());
  std::vector<std::int64_t> below(order.begin() + static_cast<std::ptrdiff_t>(slots) - 1, order.end());
  std::erase(below, spot.column);
  if (position - (slots - 1) <= kMaxShifted) {
    for (std::size_t i = slots - 1; i < position; ++i) lever.set(search.c, spot.row, order[i], worst);
    return below;
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> kept = {{spot.column, lever.key(spot.row, spot.column)}};
  for (std::size_t i = 0; i + 1 < slots; ++i) kept.emplace_back(order[i], lever.key(spot.row, order[i]));
  lever.flatten(search.c, spot.row, worst);
  for (const auto& [column, key] : kept) lever.set(search.c, spot.row, column, key);
  return below;
}

// Moves the boundary to a spot that is picked: others are lifted to copies of the row's best.
std::vector<std::int64_t> lift_to_spot(Search& search, Lever& lever, const Spot& spot,
                                       const std::vector<std::int64_t>& order, std::size_t position) {
  const auto slots = static_cast<std::size_t>(search.ranks.slots());
  const std::size_t lacking = slots - 1 - position;
  std::vector<std::int64_t> below;
  // Nothing stands above the best that could be copied.
  if (lacking > kMaxShifted || slots + lacking >= order.size() || (position == 0 && lacking > 0)) return below;
  const std::int64_t best = lever.key(spot.row, order.front());
  for (std::size_t i = slots; i < slots + lacking; ++i) lever.set(search.c, spot.row, order[i], best);
  for (std::size_t i = position + 1; i < order.size(); ++i) {
    if (i < slots || i >= slots + lacking) below.push_back(order[i]);
  }
  return below;
}

// Leaves the spot as it is and moves the boundary to it. Then another candidate is brought to it, from the inputs
// beside the spot's own.
bool tie_at_spot(Search& search, Lever& lever, const Spot& spot) {
  const std::vector<std::int64_t> order = search.ranks.best_first(spot.row);
  const auto slots = static_cast<std::size_t>(search.ranks.slots());
  const auto position = static_cast<std::size_t>(std::find(order.begin(), order.end(), spot.column) - order.begin());
  const bool usable =
      std::all_of(order.begin(), order.end(), [&](std::int64_t i) { return lever.usable(spot.row, i); });
  if (!usable || !lever.each_row() || order.size() < slots + 2 || position + 1 >= order.size()) return false;
  std::vector<std::int64_t> below = position >= slots ? lower_to_spot(search, lever, spot, order, position)
                                                      : lift_to_spot(search, lever, spot, order, position);
  std::erase_if(below, [&](std::int64_t column) { return !flips_against(search.ranks, spot, column); });
  if (below.empty()) return false;
  const Aim aim{spot.row, search.context.rng.pick(below), spot.column, 0};
  const std::int64_t beside = search.context.rng.one_in(2) ? 1 : -1;
  lever.set(search.c, spot.row, aim.column, lever.key(spot.row, spot.column) + beside);
  std::optional<Ranks> seen = search.probes.look(search.c, false);
  if (!seen || !seen->finite(spot.row, aim.column) || !seen->finite(spot.row, spot.column)) return false;
  search.ranks = *std::move(seen);
  return solve(search.c, lever, aim, search.ranks, search.probes, kSolveProbes) == 0;
}

// Those nearest to the boundary of their row first: the less a rank has to move, the fewer overrides, and the smaller
// the chance that another exponent swallows a difference of 1 ULP.
void sort_by_reach(const Ranks& ranks, std::vector<Spot>& spots) {
  std::map<std::int64_t, std::int64_t> boundary;
  std::erase_if(spots, [&](const Spot& spot) {
    const auto [at, added] = boundary.try_emplace(spot.row, 0);
    if (added) at->second = ranks.boundary_pick(spot.row);
    return at->second < 0;
  });
  const auto reach = [&](const Spot& spot) {
    return std::abs(ranks.key(spot.row, spot.column) - ranks.key(spot.row, boundary[spot.row]));
  };
  std::stable_sort(spots.begin(), spots.end(), [&](const Spot& a, const Spot& b) { return reach(a) < reach(b); });
}

// True when the case now ties at the boundary on one side and not on the other.
bool tie_difference(Search& search) {
  std::vector<Spot> spots = differing(search.ranks);
  if (spots.empty()) return false;
  sort_by_reach(search.ranks, spots);
  // Not always the same one, where there are many.
  const std::size_t skip = static_cast<std::size_t>(search.context.rng.below(1 + spots.size() / 8));
  spots.erase(spots.begin(), spots.begin() + static_cast<std::ptrdiff_t>(skip));
  const Case start = search.c;
  const Ranks seen = search.ranks;
  const std::vector<Lever> levers = search.levers;
  constexpr int kReserve = 8;  // probes for a tie of any two, if nothing comes of this
  for (const Spot& spot : spots) {
    if (search.probes.left() <= kReserve) break;
    Lever* added = lever_of(search, Lever::Kind::kAdded);
    Lever* score = lever_of(search, Lever::Kind::kScore);
    const bool tied =
        added != nullptr ? tie_at_gap(search, *added, spot) : score != nullptr && tie_at_spot(search, *score, spot);
    if (tied) {
      const std::optional<Ranks> now = search.probes.look(search.c, true);
      if (now && now->both_sides() && now->finite(spot.row, spot.column) &&
          now->key(spot.row, spot.column) != now->fused_key(spot.row, spot.column)) {
        return true;
      }
    }
    search.c = start;
    search.ranks = seen;
    search.levers = levers;
  }
  return false;
}

// --- Any two candidates.

// The outside candidate that one step of a lever that adds brings nearest to the aim, a random one of equals; its miss.
std::optional<std::pair<Aim, std::int64_t>> best_of_row(Search& search, const Lever& lever, std::int64_t row,
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
std::optional<Aim> choose_aim(Search& search, const Lever& lever, std::int64_t gap) {
  constexpr int kRows = 16;
  std::optional<std::pair<Aim, std::int64_t>> best;
  for (int i = 0; i < kRows && (!best || best->second != 0); ++i) {
    const auto found = best_of_row(search, lever, search.context.rng.between(0, search.ranks.rows() - 1), gap);
    if (found && (!best || found->second < best->second)) best = found;
  }
  return best ? std::optional<Aim>(best->first) : std::nullopt;
}

// Walks to the last input of the plateau that rounds to this rank: a half-way point of the operator's rounding.
void walk_to_edge(Search& search, Lever& lever, const Aim& aim) {
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
void lengthen(Search& search, Lever& lever, const Aim& aim, std::vector<std::int64_t> outside) {
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

bool tie_any(Search& search) {
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
  const bool alike = lever.kind() != Lever::Kind::kScore || lever_of(search, Lever::Kind::kAdded) == nullptr;
  if (alike && rng.one_in(4)) lengthen(search, lever, aim, search.ranks.outside(row));
  return true;
}

}  // namespace

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
  Search search{c, context, rule, *std::move(ranks), std::move(levers), probes};
  const bool prefer_difference = !context.rng.one_in(8);
  if (prefer_difference && tie_difference(search)) return true;
  if (tie_any(search)) return true;
  c = before;
  return false;
}

}  // namespace fusediff
