#include <algorithm>
#include <numeric>

#include "model/role_recipes.h"

namespace fusediff {

namespace {

// A run that begins at element i of the block, of h = h(i): 1 + (h mod 2^(h >> 61)) columns long, cut at the end of the
// row, kept when bit 32 of h is set: from single elements to 128 in a row.
void draw_runs(const CounterHash& hash, std::int64_t row, std::int64_t columns, std::int64_t* kept) {
  std::int64_t column = 0;
  while (column < columns) {
    const std::uint64_t h = hash.at(static_cast<std::uint64_t>(row * columns + column));
    const std::uint64_t length = 1 + (h & ((std::uint64_t{1} << (h >> 61)) - 1));
    const std::int64_t end = std::min(columns, column + static_cast<std::int64_t>(length));
    std::fill(kept + column, kept + end, static_cast<std::int64_t>((h >> 32) & 1));
    column = end;
  }
}

// Half of the row, rounded up, kept: the first columns of a shuffle that exchanges j with j + one of n - j by
// h(element j of the row).
void draw_shuffled(const CounterHash& hash, std::int64_t row, std::int64_t columns, std::int64_t* kept) {
  const auto n = static_cast<std::uint64_t>(columns);
  std::vector<std::uint64_t> order(n);
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  for (std::uint64_t j = 0; j < n; ++j) {
    std::swap(order[j], order[j + hash.below(static_cast<std::uint64_t>(row) * n + j, n - j)]);
  }
  for (std::uint64_t j = 0; j < n; ++j) kept[order[j]] = j < (n + 1) / 2 ? 1 : 0;
}

}  // namespace

// uniform: runs. skewed: one column, the same in every row, one of n by h(2^64 - 1). unused: by the top two bits of
// h(2^63 + row): 0 the whole row masked, 1 the whole row kept, else runs. permutation: half of each row, scattered.
std::vector<std::int64_t> draw_mask(const Fill& fill, const Block& block) {
  std::vector<std::int64_t> kept(static_cast<std::size_t>(block.count()), 0);
  if (kept.empty()) return kept;
  const CounterHash hash(fill.seed);
  const auto columns = static_cast<std::uint64_t>(block.columns);
  for (std::int64_t row = 0; row < block.rows; ++row) {
    std::int64_t* const begin = kept.data() + row * block.columns;
    if (fill.kind == FillKind::kSkewed) {
      begin[hash.below(~std::uint64_t{0}, columns)] = 1;
    } else if (fill.kind == FillKind::kPermutation) {
      draw_shuffled(hash, row, block.columns, begin);
    } else {
      const std::uint64_t choice = hash.at((std::uint64_t{1} << 63) + static_cast<std::uint64_t>(row)) >> 62;
      if (fill.kind == FillKind::kUnused && choice < 2) {
        std::fill(begin, begin + block.columns, static_cast<std::int64_t>(choice));
      } else {
        draw_runs(hash, row, block.columns, begin);
      }
    }
  }
  return kept;
}

}  // namespace fusediff
