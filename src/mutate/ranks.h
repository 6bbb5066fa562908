// The ranking of one probe as a decision sees it: which candidate of a row is better, by how many ULP, and where the
// boundary between picked and not picked runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mutate/mutate.h"

namespace fusediff {

class Ranks {
 public:
  // smallest: the smaller rank is the better one.
  Ranks(Ranking ranking, bool smallest);

  // False: the probe returned arrays that do not fit its shape.
  bool valid() const { return valid_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  std::int64_t slots() const { return ranking_.slots; }
  DType dtype() const { return ranking_.dtype; }
  bool both_sides() const { return !ranking_.fused.empty(); }

  bool finite(std::int64_t row, std::int64_t column) const;  // on each side there is
  // Larger is better, whatever the order. REQUIRES: finite(row, column).
  std::int64_t key(std::int64_t row, std::int64_t column) const { return key_of(ranking_.unfused, row, column); }
  // REQUIRES: both_sides().
  std::int64_t fused_key(std::int64_t row, std::int64_t column) const { return key_of(ranking_.fused, row, column); }
  // The rank itself, on the unfused side, and the one that a key stands for.
  double value(std::int64_t row, std::int64_t column) const;
  double value_of_key(std::int64_t key) const;
  // The key of the rank nearest to a value.
  std::int64_t key_of_value(double value) const;
  bool smallest() const { return smallest_; }

  // The columns of a row with finite ranks, best first, lower index first among equals.
  std::vector<std::int64_t> best_first(std::int64_t row) const;
  // The worst of the row's picks by rank, or -1; and those in play that are not picked, best first.
  std::int64_t boundary_pick(std::int64_t row) const;
  std::vector<std::int64_t> outside(std::int64_t row) const;
  // best_first() without those that are not picked although they rank better than a pick: something that the ranking
  // does not show, a group say, has put them out.
  std::vector<std::int64_t> in_play(std::int64_t row) const;
  bool picked(std::int64_t row, std::int64_t column) const;

 private:
  std::size_t at(std::int64_t row, std::int64_t column) const {
    return static_cast<std::size_t>(row * columns_ + column);
  }
  std::int64_t key_of(const std::vector<std::uint64_t>& bits, std::int64_t row, std::int64_t column) const;

  Ranking ranking_;
  bool smallest_;
  bool valid_ = false;
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
};

}  // namespace fusediff
