#include "schedule.h"

#include <gtest/gtest.h>

#include <numeric>

namespace fusediff {
namespace {

constexpr ByExperiment<bool> kAll = {true, true, true, true, true, true};

std::size_t at(ExperimentKind kind) { return static_cast<std::size_t>(kind); }

// Time that each kind gets over many checks, where a check of a kind costs and yields what the functions say.
template <typename Cost, typename Yield>
ByExperiment<double> simulated(const ByExperiment<bool>& possible, Cost cost, Yield yield) {
  Schedule schedule;
  ByExperiment<double> time{};
  for (int i = 0; i < 200'000; ++i) {
    const ExperimentKind kind = schedule.next(possible);
    schedule.spent(kind, cost(kind), yield(kind, i));
    time[at(kind)] += cost(kind);
  }
  const double all = std::accumulate(time.begin(), time.end(), 0.0);
  for (double& share : time) share /= all;
  return time;
}

double dear_threads(ExperimentKind kind) { return kind == ExperimentKind::kThreads ? 0.005 : 0.0001; }

TEST(Schedule, SharesSumToOne) {
  Schedule schedule;
  schedule.spent(ExperimentKind::kGradient, 0.3, 7);
  for (const ByExperiment<bool>& possible : {kAll, ByExperiment<bool>{true, false, true, false, false, false}}) {
    const ByExperiment<double> shares = schedule.wanted_shares(possible);
    EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 1, 1e-12);
    for (std::size_t k = 0; k < shares.size(); ++k) EXPECT_EQ(shares[k] > 0, possible[k]);
  }
}

TEST(Schedule, TimeNotChecksIsShared) {
  const auto nothing = [](ExperimentKind, int) { return std::size_t{0}; };
  const ByExperiment<double> time = simulated(kAll, dear_threads, nothing);
  for (const double share : time) EXPECT_GT(share, kLeastShare * 0.9);
  EXPECT_LT(time[at(ExperimentKind::kThreads)], 0.4);
}

TEST(Schedule, WhatYieldsGetsMore) {
  const auto relation_yields = [](ExperimentKind kind, int i) {
    return std::size_t{kind == ExperimentKind::kRelation && i % 3 == 0};
  };
  const ByExperiment<double> time = simulated(kAll, dear_threads, relation_yields);
  EXPECT_GT(time[at(ExperimentKind::kRelation)], 0.4);
  for (const double share : time) EXPECT_GT(share, kLeastShare * 0.9);
}

TEST(Schedule, OnlyWhatIsPossibleIsDone) {
  const auto nothing = [](ExperimentKind, int) { return std::size_t{0}; };
  const ByExperiment<double> time = simulated({true, false, true, false, false, false}, dear_threads, nothing);
  EXPECT_EQ(time[at(ExperimentKind::kRepeat)], 0);
  EXPECT_NEAR(time[at(ExperimentKind::kPair)] + time[at(ExperimentKind::kThreads)], 1, 1e-9);
}

}  // namespace
}  // namespace fusediff
