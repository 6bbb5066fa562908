#include <algorithm>
#include <numeric>
#include <span>

#include "model/role_recipes.h"

namespace fusediff {

namespace {

__extension__ typedef __int128 Wide;

constexpr std::int64_t kItemsPerGroup = 16;   // of offsets without a sum
constexpr std::int64_t kMostFreeCount = 127;  // above low, of counts without a sum

// What one row asks for: groups of 0..room items, `total` in all. counter: that of the row's first element.
struct Division {
  FillKind kind;
  CounterHash hash;
  std::uint64_t counter;
  std::int64_t total;
  std::int64_t room;
};

// Cut points of 0..total, one of total + 1 by h(counter + j) for j = 1 .. groups - 1, in order: the gaps between them.
// Long and empty groups come by themselves.
void cut(const Division& division, std::span<const std::size_t> groups, std::span<std::int64_t> counts) {
  std::vector<std::int64_t> points;
  for (std::size_t j = 1; j < groups.size(); ++j) {
    const std::uint64_t point =
        division.hash.below(division.counter + j, static_cast<std::uint64_t>(division.total) + 1);
    points.push_back(static_cast<std::int64_t>(point));
  }
  std::sort(points.begin(), points.end());
  points.push_back(division.total);
  std::int64_t before = 0;
  for (std::size_t j = 0; j < groups.size(); ++j) {
    counts[groups[j]] = points[j] - before;
    before = points[j];
  }
}

// All of them, in the order of preference of the recipe. uniform: as they stand. skewed: from one of n by h(counter)
// on, around the end. unused: those with an even h(counter + j) first. permutation: shuffled, exchanging j with j + one
// of n - j by h(counter + j).
std::vector<std::size_t> order_of(const Division& division, std::size_t n) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto counter_at = [&](std::size_t j) { return division.counter + j; };
  if (division.kind == FillKind::kSkewed) {
    const std::uint64_t first = division.hash.below(division.counter, n);
    std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(first), order.end());
  } else if (division.kind == FillKind::kUnused) {
    std::stable_partition(order.begin(), order.end(),
                          [&](std::size_t j) { return (division.hash.at(counter_at(j)) & 1) == 0; });
  } else if (division.kind == FillKind::kPermutation) {
    for (std::size_t j = 0; j < n; ++j) std::swap(order[j], order[j + division.hash.below(counter_at(j), n - j)]);
  }
  return order;
}

// uniform: cut among all. skewed: all in the first of the order. unused: cut among those that come first (at least
// one). permutation: as even as possible, one more in the first of the order. What is too much for a group goes to the
// next in the order that has room. REQUIRES: 0 <= total <= room * counts.size(), counts not empty.
void divide(const Division& division, std::span<std::int64_t> counts) {
  const std::size_t n = counts.size();
  const std::vector<std::size_t> order = order_of(division, n);
  std::fill(counts.begin(), counts.end(), 0);
  if (division.kind == FillKind::kSkewed) {
    counts[order[0]] = division.total;
  } else if (division.kind == FillKind::kPermutation) {
    const auto groups = static_cast<std::int64_t>(n);
    for (std::size_t j = 0; j < n; ++j) {
      counts[order[j]] = division.total / groups + (static_cast<std::int64_t>(j) < division.total % groups ? 1 : 0);
    }
  } else {
    std::size_t used = n;
    if (division.kind == FillKind::kUnused) {
      const auto even = [&](std::size_t j) { return (division.hash.at(division.counter + j) & 1) == 0; };
      used = std::max<std::size_t>(1, static_cast<std::size_t>(std::count_if(order.begin(), order.end(), even)));
    }
    cut(division, std::span(order).first(used), counts);
  }
  std::int64_t excess = 0;
  for (std::int64_t& count : counts) {
    excess += std::max<std::int64_t>(0, count - division.room);
    count = std::min(count, division.room);
  }
  for (const std::size_t j : order) {
    const std::int64_t more = std::min(excess, division.room - counts[j]);
    counts[j] += more;
    excess -= more;
  }
}

// Counts without a sum; high is at most low + 127. uniform: low + one of the range by h(i). skewed: high in one column
// of each row, low in the others. unused: uniform where h(i) is even, else low. permutation: low, low + 1, ... around,
// in a shuffled order.
std::int64_t free_count(const Division& division, const RoleLimits& limits, const std::vector<std::size_t>& order,
                        std::size_t j) {
  const std::int64_t high = std::min(limits.high, limits.low + kMostFreeCount);
  const auto range = static_cast<std::uint64_t>(high - limits.low) + 1;
  const std::uint64_t hash = division.hash.at(division.counter + j);
  const auto drawn = limits.low + static_cast<std::int64_t>(CounterHash::scale(hash, range));
  if (division.kind == FillKind::kSkewed) return j == order[0] ? high : limits.low;
  if (division.kind == FillKind::kUnused) return (hash & 1) == 0 ? drawn : limits.low;
  if (division.kind == FillKind::kPermutation) return limits.low + static_cast<std::int64_t>(order[j] % range);
  return drawn;
}

std::string of_groups(std::int64_t groups, std::int64_t low, std::int64_t high) {
  return std::to_string(groups) + " counts of " + std::to_string(low) + ".." + std::to_string(high);
}

}  // namespace

Result<std::vector<std::int64_t>> draw_counts(const Fill& fill, const RoleLimits& limits, const Block& block) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(block.count()));
  const std::int64_t n = block.columns;
  if (block.rows == 0) return values;
  if (limits.low > limits.high) return user_error("no " + of_groups(n, limits.low, limits.high));
  const std::int64_t sum = limits.sum.value_or(0);
  if (limits.sum && (Wide{n} * limits.low > sum || Wide{n} * limits.high < sum)) {
    return user_error("no " + of_groups(n, limits.low, limits.high) + " sum to " + std::to_string(sum));
  }
  for (std::int64_t row = 0; row < block.rows && n > 0; ++row) {
    const std::int64_t first = row * n;
    Division division{fill.kind, CounterHash(fill.seed), static_cast<std::uint64_t>(first), 0,
                      limits.high - limits.low};
    const std::span counts = std::span(values).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(n));
    if (limits.sum) {
      division.total = sum - n * limits.low;
      divide(division, counts);
      for (std::int64_t& count : counts) count += limits.low;
      continue;
    }
    const std::vector<std::size_t> order = order_of(division, counts.size());
    for (std::size_t j = 0; j < counts.size(); ++j) counts[j] = free_count(division, limits, order, j);
  }
  return values;
}

Result<std::vector<std::int64_t>> draw_offsets(const Fill& fill, const RoleLimits& limits, const Block& block) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(block.count()));
  if (values.empty()) return values;
  const std::int64_t groups = block.columns - 1;
  const std::int64_t sum = limits.sum.value_or(std::min(limits.high, kItemsPerGroup * groups));
  if (sum < 0 || sum > limits.high || (groups == 0 && sum != 0)) {
    return user_error("no offsets of " + std::to_string(groups) + " groups, at most " + std::to_string(limits.high) +
                      ", end at " + std::to_string(sum));
  }
  for (std::int64_t row = 0; row < block.rows && groups > 0; ++row) {
    const std::int64_t first = row * block.columns;
    const Division division{fill.kind, CounterHash(fill.seed), static_cast<std::uint64_t>(first), sum, sum};
    const std::span ends =
        std::span(values).subspan(static_cast<std::size_t>(first) + 1, static_cast<std::size_t>(groups));
    divide(division, ends);
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
  }
  return values;
}

}  // namespace fusediff
