// Ties in which a difference between the two sides decides.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "mutate/tie_search.h"

namespace fusediff {
namespace {

constexpr std::size_t kMaxShifted = 16;  // overrides that move a boundary onto a candidate

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
std::optional<std::int64_t> tie_at_gap(TieSearch& search, Lever& lever, const Spot& spot) {
  const std::vector<std::int64_t> order = search.ranks.in_play(spot.row);
  if (std::find(order.begin(), order.end(), spot.column) == order.end()) return std::nullopt;
  std::vector<std::int64_t> others, partners;
  for (const std::int64_t column : order) {
    if (column == spot.column) continue;
    others.push_back(column);
  }
  const auto slots = static_cast<std::size_t>(search.ranks.slots());
  if (others.size() < slots + 1) return std::nullopt;
  // Near the boundary first: the less a rank moves, the better the rounding of it is kept.
  for (std::size_t i = slots - 1; i < others.size() && partners.size() < 16; ++i) {
    if (flips_against(search.ranks, spot, others[i]) && lever.usable(spot.row, others[i]))
      partners.push_back(others[i]);
  }
  if (partners.empty() || !lever.usable(spot.row, spot.column)) return std::nullopt;
  const std::int64_t partner = partners[std::min<std::size_t>(partners.size() - 1, search.context.rng.below(3))];
  Aim aim{spot.row, spot.column, partner, 0};
  if (partner != others[slots - 1]) {
    // With the partner taken out, `slots - 1` stay above and the next one below.
    std::erase(others, partner);
    const std::int64_t low = search.ranks.key(spot.row, others[slots - 1]);
    const std::int64_t high = slots >= 2 ? search.ranks.key(spot.row, others[slots - 2]) : low + 4096;
    if (high - low < 2) return std::nullopt;
    const Aim lift{spot.row, partner, others[slots - 1], (high - low) / 2};
    lever.set(search.c, spot.row, partner, guess(lever, search.ranks, lift).key);
    const std::int64_t middle = low + (high - low) / 2;
    const Aim follow{spot.row, spot.column, others[slots - 1], middle - low};
    lever.set(search.c, spot.row, spot.column, guess(lever, search.ranks, follow).key);
    std::optional<Ranks> seen = search.probes.look(search.c, false);
    if (!seen || !seen->finite(spot.row, spot.column) || !seen->finite(spot.row, partner)) return std::nullopt;
    search.ranks = *std::move(seen);
  }
  if (solve(search.c, lever, aim, search.ranks, search.probes, kSolveProbes) != 0) return std::nullopt;
  return partner;
}

// Moves the boundary to a spot that is not picked: those between are lowered to copies of the row's worst; where they
// are many, the whole row is, but for the best. Gives the candidates that are below the spot then.
std::vector<std::int64_t> lower_to_spot(TieSearch& search, Lever& lever, const Spot& spot,
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
std::vector<std::int64_t> lift_to_spot(TieSearch& search, Lever& lever, const Spot& spot,
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
std::optional<std::int64_t> tie_at_spot(TieSearch& search, Lever& lever, const Spot& spot) {
  const std::vector<std::int64_t> order = search.ranks.in_play(spot.row);
  const auto slots = static_cast<std::size_t>(search.ranks.slots());
  const auto position = static_cast<std::size_t>(std::find(order.begin(), order.end(), spot.column) - order.begin());
  const bool usable =
      std::all_of(order.begin(), order.end(), [&](std::int64_t i) { return lever.usable(spot.row, i); });
  if (!usable || !lever.each_row() || order.size() < slots + 2 || position + 1 >= order.size()) return std::nullopt;
  std::vector<std::int64_t> below = position >= slots ? lower_to_spot(search, lever, spot, order, position)
                                                      : lift_to_spot(search, lever, spot, order, position);
  std::erase_if(below, [&](std::int64_t column) { return !flips_against(search.ranks, spot, column); });
  if (below.empty()) return std::nullopt;
  const Aim aim{spot.row, search.context.rng.pick(below), spot.column, 0};
  const std::int64_t beside = search.context.rng.one_in(2) ? 1 : -1;
  lever.set(search.c, spot.row, aim.column, lever.key(spot.row, spot.column) + beside);
  std::optional<Ranks> seen = search.probes.look(search.c, false);
  if (!seen || !seen->finite(spot.row, aim.column) || !seen->finite(spot.row, spot.column)) return std::nullopt;
  search.ranks = *std::move(seen);
  if (solve(search.c, lever, aim, search.ranks, search.probes, kSolveProbes) != 0) return std::nullopt;
  return aim.column;
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

// Is one of the two picked and the other not, and does the difference still stand? Rounding may have swallowed it, or
// one of the two not be in play.
bool decides(TieSearch& search, const Spot& spot, std::int64_t partner) {
  const std::optional<Ranks> now = search.probes.look(search.c, true);
  return now && now->both_sides() && now->finite(spot.row, spot.column) &&
         now->picked(spot.row, spot.column) != now->picked(spot.row, partner) &&
         now->key(spot.row, spot.column) != now->fused_key(spot.row, spot.column);
}

}  // namespace

bool tie_difference(TieSearch& search) {
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
    Lever* added = search.lever(Lever::Kind::kAdded);
    Lever* score = search.lever(Lever::Kind::kScore);
    const std::optional<std::int64_t> partner = added != nullptr   ? tie_at_gap(search, *added, spot)
                                                : score != nullptr ? tie_at_spot(search, *score, spot)
                                                                   : std::nullopt;
    if (partner && decides(search, spot, *partner)) return true;
    search.c = start;
    search.ranks = seen;
    search.levers = levers;
  }
  return false;
}

}  // namespace fusediff
