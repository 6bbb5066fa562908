#include <algorithm>
#include <unordered_map>
#include <utility>

#include "model/role_recipes.h"

namespace fusediff {

namespace {

constexpr std::uint64_t kWholeTensor = ~std::uint64_t{0};  // the counter of choices made once a tensor

// The first numbers of a permutation of 0..n-1, by exchanges (Fisher and Yates): number j is what stands at j after
// exchanging j with j + one of n - j by h(counter + j). Only what was exchanged is kept.
class Shuffle {
 public:
  explicit Shuffle(std::uint64_t n) : n_(n) {
    if (n <= kDense) {
      dense_.resize(n);
      for (std::uint64_t i = 0; i < n; ++i) dense_[i] = i;
    }
  }

  void start() {
    for (; !exchanged_.empty(); exchanged_.pop_back())
      std::swap(at(exchanged_.back().first), at(exchanged_.back().second));
    sparse_.clear();
    next_ = 0;
  }
  // REQUIRES: called at most n times since start().
  std::uint64_t next(std::uint64_t hash) {
    const std::uint64_t other = next_ + CounterHash::scale(hash, n_ - next_);
    std::swap(at(next_), at(other));
    if (!dense_.empty()) exchanged_.emplace_back(next_, other);
    return at(next_++);
  }

 private:
  static constexpr std::uint64_t kDense = 1 << 16;
  std::uint64_t& at(std::uint64_t place) {
    if (!dense_.empty()) return dense_[place];
    return sparse_.try_emplace(place, place).first->second;
  }
  std::uint64_t n_;
  std::uint64_t next_ = 0;
  std::vector<std::uint64_t> dense_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> exchanged_;
  std::unordered_map<std::uint64_t, std::uint64_t> sparse_;
};

// Which numbers 0..n-1 of the range a recipe uses: start + stride * (0..n-1).
struct Choice {
  std::uint64_t n = 1;
  std::uint64_t start = 0;
  std::uint64_t stride = 1;
};

// unused, of w = h(2^64 - 1), n values and `needed` of them wanted: when bit 1 of w is set and needed <= n / 2, every
// second value, the first being bit 2 of w; else m = max(needed, (n + 1) / 2) values in a row, the first one of
// n - m + 1 by h(2^64 - 2).
Choice choose_used(const CounterHash& hash, std::uint64_t n, std::uint64_t needed) {
  const std::uint64_t once = hash.at(kWholeTensor);
  if ((once & 2) != 0 && n >= 2 && needed <= n / 2) return {n / 2, (once >> 2) & 1, 2};
  const std::uint64_t used = std::max(needed, (n + 1) / 2);
  return {used, hash.below(kWholeTensor - 1, n - used + 1), 1};
}

// Element i of the block: uniform and unused: one of the choice's n by h(i), or when rows are distinct, number j of the
// shuffle of the choice, element j of its row. skewed: row 0 of uniform in each row when distinct, else everywhere one
// of n by h(2^64 - 1).
void draw_rows(const Fill& fill, const Choice& choice, bool distinct, const Block& block,
               std::vector<std::int64_t>& values) {
  const CounterHash hash(fill.seed);
  const auto columns = static_cast<std::uint64_t>(block.columns);
  if (!distinct) {
    for (std::uint64_t i = 0; i < values.size(); ++i) {
      const bool same = fill.kind == FillKind::kSkewed;
      values[i] = static_cast<std::int64_t>(hash.below(same ? kWholeTensor : i, choice.n));
    }
    return;
  }
  Shuffle shuffle(choice.n);
  for (std::uint64_t row = 0; row < static_cast<std::uint64_t>(block.rows); ++row) {
    shuffle.start();
    const std::uint64_t counter = fill.kind == FillKind::kSkewed ? 0 : row * columns;
    for (std::uint64_t j = 0; j < columns; ++j) {
      values[row * columns + j] = static_cast<std::int64_t>(shuffle.next(hash.at(counter + j)));
    }
  }
}

// permutation: the block in row-major order is one shuffle of all n values after the other, each with the counters of
// its own elements; where rows are distinct and n is no multiple of the row, each row starts a new one.
void draw_permutation(const Fill& fill, std::uint64_t n, bool distinct, const Block& block,
                      std::vector<std::int64_t>& values) {
  const CounterHash hash(fill.seed);
  const auto columns = static_cast<std::uint64_t>(block.columns);
  const bool by_row = distinct && values.size() > n && n % columns != 0;
  const std::uint64_t length = by_row ? columns : n;
  Shuffle shuffle(n);
  for (std::uint64_t i = 0; i < values.size(); ++i) {
    if (i % length == 0) shuffle.start();
    values[i] = static_cast<std::int64_t>(shuffle.next(hash.at(i)));
  }
}

// For an odd h(2^64 - 1), one element in 16, by bits 60 to 63 of h(2^63 + i), becomes a sentinel: one of them by
// h(2^62 + i).
void put_sentinels(const Fill& fill, const RoleLimits& limits, std::vector<std::int64_t>& values) {
  const CounterHash hash(fill.seed);
  if (limits.also.empty() || fill.kind == FillKind::kPermutation || (hash.at(kWholeTensor) & 1) == 0) return;
  for (std::uint64_t i = 0; i < values.size(); ++i) {
    if ((hash.at((std::uint64_t{1} << 63) + i) >> 60) != 0) continue;
    values[i] = limits.also[hash.below((std::uint64_t{1} << 62) + i, limits.also.size())];
  }
}

void sort_rows(const Block& block, std::vector<std::int64_t>& values) {
  for (std::int64_t row = 0; row < block.rows; ++row) {
    const auto begin = values.begin() + row * block.columns;
    std::sort(begin, begin + block.columns);
  }
}

}  // namespace

Result<std::vector<std::int64_t>> draw_index(const Fill& fill, const RoleLimits& limits, const Block& block) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(block.count()));
  if (values.empty()) return values;
  const std::string range = std::to_string(limits.low) + ".." + std::to_string(limits.high);
  if (limits.low > limits.high) return user_error("the range " + range + " holds no value");
  const std::uint64_t n = static_cast<std::uint64_t>(limits.high) - static_cast<std::uint64_t>(limits.low) + 1;
  const auto columns = static_cast<std::uint64_t>(block.columns);
  if (limits.distinct && columns > n) {
    return user_error("no " + std::to_string(columns) + " distinct values in a row from the range " + range);
  }
  if (fill.kind == FillKind::kPermutation) {
    draw_permutation(fill, n, limits.distinct, block, values);
    for (std::int64_t& value : values) value += limits.low;
  } else {
    Choice choice{n, 0, 1};
    if (fill.kind == FillKind::kUnused) {
      choice = choose_used(CounterHash(fill.seed), n, limits.distinct ? columns : 1);
    }
    draw_rows(fill, choice, limits.distinct, block, values);
    for (std::int64_t& value : values) {
      value = limits.low + static_cast<std::int64_t>(choice.start + choice.stride * static_cast<std::uint64_t>(value));
    }
  }
  put_sentinels(fill, limits, values);
  if (limits.sorted) sort_rows(block, values);
  return values;
}

}  // namespace fusediff
