#include "mutate/ranks.h"

#include <algorithm>
#include <utility>

#include "mutate/ordered.h"

namespace fusediff {

Ranks::Ranks(Ranking ranking, bool smallest) : ranking_(std::move(ranking)), smallest_(smallest) {
  if (ranking_.shape.empty()) return;
  columns_ = ranking_.shape.back();
  rows_ = 1;
  for (std::size_t i = 0; i + 1 < ranking_.shape.size(); ++i) rows_ *= ranking_.shape[i];
  const auto count = static_cast<std::size_t>(rows_ * columns_);
  const bool fused_fits = ranking_.fused.empty() || ranking_.fused.size() == count;
  valid_ = rows_ > 0 && columns_ > 0 && ranking_.slots > 0 && ranking_.unfused.size() == count && fused_fits &&
           ranking_.picks.size() == static_cast<std::size_t>(rows_ * ranking_.slots);
}

bool Ranks::finite(std::int64_t row, std::int64_t column) const {
  const std::size_t i = at(row, column);
  return is_finite(ranking_.dtype, ranking_.unfused[i]) &&
         (ranking_.fused.empty() || is_finite(ranking_.dtype, ranking_.fused[i]));
}

std::int64_t Ranks::key_of(const std::vector<std::uint64_t>& bits, std::int64_t row, std::int64_t column) const {
  const std::int64_t key = ordered_key(ranking_.dtype, bits[at(row, column)]);
  return smallest_ ? -key : key;
}

double Ranks::value_of_key(std::int64_t key) const {
  const std::int64_t plain = smallest_ ? -key : key;
  if (!is_float(ranking_.dtype)) return static_cast<double>(plain);
  return float_value(ranking_.dtype, bits_of_key(ranking_.dtype, plain));
}

double Ranks::value(std::int64_t row, std::int64_t column) const { return value_of_key(key(row, column)); }

std::int64_t Ranks::key_of_value(double value) const {
  const std::int64_t key = is_float(ranking_.dtype) ? ordered_key(ranking_.dtype, round_to_bits(ranking_.dtype, value))
                                                    : static_cast<std::int64_t>(value);
  return smallest_ ? -key : key;
}

std::vector<std::int64_t> Ranks::best_first(std::int64_t row) const {
  std::vector<std::int64_t> columns;
  for (std::int64_t column = 0; column < columns_; ++column) {
    if (finite(row, column)) columns.push_back(column);
  }
  std::stable_sort(columns.begin(), columns.end(),
                   [&](std::int64_t a, std::int64_t b) { return key(row, a) > key(row, b); });
  return columns;
}

bool Ranks::picked(std::int64_t row, std::int64_t column) const {
  const auto first = ranking_.picks.begin() + static_cast<std::ptrdiff_t>(row * ranking_.slots);
  return std::find(first, first + static_cast<std::ptrdiff_t>(ranking_.slots), column) !=
         first + static_cast<std::ptrdiff_t>(ranking_.slots);
}

std::int64_t Ranks::boundary_pick(std::int64_t row) const {
  std::int64_t worst = -1;
  for (std::int64_t slot = 0; slot < ranking_.slots; ++slot) {
    const std::int64_t column = ranking_.picks[static_cast<std::size_t>(row * ranking_.slots + slot)];
    if (column < 0 || column >= columns_ || !finite(row, column)) continue;
    if (worst < 0 || key(row, column) < key(row, worst) || (key(row, column) == key(row, worst) && column > worst)) {
      worst = column;
    }
  }
  return worst;
}

std::vector<std::int64_t> Ranks::outside(std::int64_t row) const {
  std::vector<std::int64_t> columns = in_play(row);
  std::erase_if(columns, [&](std::int64_t column) { return picked(row, column); });
  return columns;
}

std::vector<std::int64_t> Ranks::in_play(std::int64_t row) const {
  std::vector<std::int64_t> columns = best_first(row);
  const std::int64_t worst = boundary_pick(row);
  if (worst < 0) return columns;
  std::erase_if(columns,
                [&](std::int64_t column) { return !picked(row, column) && key(row, column) > key(row, worst); });
  return columns;
}

}  // namespace fusediff
