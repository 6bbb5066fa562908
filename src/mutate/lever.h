// An input element that moves the rank of one candidate, and the search for the value that brings the rank where it is
// wanted. Each look at the operator is a probe, and dear: they are counted.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mutate/mutate.h"
#include "mutate/ranks.h"

namespace fusediff {

// Probes of one decide rule, at most so many.
class ProbeBudget {
 public:
  ProbeBudget(MutateContext& context, std::size_t rule, bool smallest, int limit)
      : context_(context), rule_(rule), smallest_(smallest), left_(limit) {}
  // Nothing when the run failed, answered nonsense, or nothing is left.
  std::optional<Ranks> look(const Case& c, bool both_sides);
  int left() const { return left_; }

 private:
  MutateContext& context_;
  std::size_t rule_;
  bool smallest_;
  int left_;
};

// An input with an element for each candidate, or for each candidate of each row.
class Lever {
 public:
  enum class Kind {
    kRank,   // the input that is ranked by
    kAdded,  // role bias: the rank moves by about as much
    kScore   // role score: the rank follows, in one direction
  };

  // The levers of a decide rule, of shapes that fit the ranking, whose values can be told and set; kRank and kAdded
  // first.
  static std::vector<Lever> find(const Case& c, MutateContext& context, const DecideRule& rule, const Ranks& ranks);

  Kind kind() const { return kind_; }
  DType dtype() const { return tensor_.dtype; }
  // The key of the element that stands there now, in the order of values. REQUIRES: usable(row, column).
  std::int64_t key(std::int64_t row, std::int64_t column) const;
  double value(std::int64_t row, std::int64_t column) const;
  bool usable(std::int64_t row, std::int64_t column) const;  // finite
  std::int64_t key_of_value(double value) const;
  double value_of_key(std::int64_t key) const;
  // Writes an override, here and into the case.
  void set(Case& c, std::int64_t row, std::int64_t column, std::int64_t key);
  // Lays one value over a whole row, overrides in it included. REQUIRES: each_row().
  void flatten(Case& c, std::int64_t row, std::int64_t key);
  bool each_row() const { return each_row_; }

 private:
  std::size_t at(std::int64_t row, std::int64_t column) const;

  Kind kind_ = Kind::kAdded;
  std::string name_;
  Tensor tensor_;
  std::vector<std::byte> bytes_;
  bool each_row_ = false;
  std::int64_t columns_ = 0;
};

// Where a rank shall be: at another candidate's, so many ULP better.
struct Aim {
  std::int64_t row = 0;
  std::int64_t column = 0;   // the candidate that moves
  std::int64_t partner = 0;  // the one that stays
  std::int64_t gap = 0;      // key(column) - key(partner) that is wanted
};

// The gap left to the aim, in ULP with its sign. REQUIRES: both finite.
std::int64_t miss(const Ranks& ranks, const Aim& aim);

// The key that a lever that adds would need, judged from one ranking, and the miss that this leaves. No probe.
struct Guess {
  std::int64_t key = 0;
  std::int64_t miss = 0;
};
Guess guess(const Lever& lever, const Ranks& ranks, const Aim& aim);

// Secant steps, kept inside a bracket of ordered bit patterns; the case holds the best that was found. `ranks` is of
// the case as it is and is replaced by that of the case as it will be. Returns the miss that is left.
std::int64_t solve(Case& c, Lever& lever, const Aim& aim, Ranks& ranks, ProbeBudget& probes, int limit);

}  // namespace fusediff
