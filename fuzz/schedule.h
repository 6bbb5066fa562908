// Which experiment a worker does next. Experiments cost very different amounts: what is shared out is time, by yield
// (new feedback a second), and no kind is left without. Knows nothing of cases.
#pragma once

#include <array>
#include <cstddef>

#include "model/experiment.h"

namespace fusediff {

template <typename T>
using ByExperiment = std::array<T, kExperimentKindCount>;  // [ExperimentKind]

// Of all time, that a kind gets whatever it yields. Pair, which finds most, a larger one.
inline constexpr double kLeastShare = 0.04;
inline constexpr double kLeastShareOfPair = 0.25;

class Schedule {
 public:
  // A check of this kind took so long and set so many counters that no earlier one had set.
  void spent(ExperimentKind kind, double seconds, std::size_t new_features);

  // The shares of time that the kinds should have; those that are not possible 0, together 1.
  ByExperiment<double> wanted_shares(const ByExperiment<bool>& possible) const;
  // Has it had more than its share of the time?
  bool is_ahead(ExperimentKind kind, const ByExperiment<bool>& possible) const;
  // The possible kind that is farthest behind its share. REQUIRES: pair is possible.
  ExperimentKind next(const ByExperiment<bool>& possible) const;

 private:
  struct Account {
    double seconds = 0;  // both fade: what was found long ago says little of now
    double features = 0;
  };
  // Shares of the time spent, less the wanted ones.
  ByExperiment<double> surplus(const ByExperiment<bool>& possible) const;

  ByExperiment<Account> accounts_;
};

}  // namespace fusediff
