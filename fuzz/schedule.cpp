#include "schedule.h"

#include <algorithm>

namespace fusediff {
namespace {

// What has been spent and found counts half after so much time.
constexpr double kHalfLifeSeconds = 20;
// Every kind begins as if it had found one thing in so long: a kind that was never tried is worth a try, and one lucky
// check is no rate.
constexpr double kPriorSeconds = 0.2;

std::size_t index_of(ExperimentKind kind) { return static_cast<std::size_t>(kind); }

double least_share(std::size_t kind) {
  return kind == index_of(ExperimentKind::kPair) ? kLeastShareOfPair : kLeastShare;
}

}  // namespace

void Schedule::spent(ExperimentKind kind, double seconds, std::size_t new_features) {
  const double fade = 1 / (1 + std::max(seconds, 0.0) / kHalfLifeSeconds);
  for (Account& account : accounts_) {
    account.seconds *= fade;
    account.features *= fade;
  }
  accounts_[index_of(kind)].seconds += std::max(seconds, 0.0);
  accounts_[index_of(kind)].features += static_cast<double>(new_features);
}

ByExperiment<double> Schedule::wanted_shares(const ByExperiment<bool>& possible) const {
  ByExperiment<double> shares{};
  double left = 1, yields = 0;
  const auto yield = [&](std::size_t k) {
    return (accounts_[k].features + 1) / (accounts_[k].seconds + kPriorSeconds);
  };
  for (std::size_t k = 0; k < shares.size(); ++k) {
    if (!possible[k]) continue;
    shares[k] = least_share(k);
    left -= shares[k];
    yields += yield(k);
  }
  for (std::size_t k = 0; k < shares.size(); ++k) {
    if (possible[k]) shares[k] += left * yield(k) / yields;
  }
  return shares;
}

ByExperiment<double> Schedule::surplus(const ByExperiment<bool>& possible) const {
  ByExperiment<double> surplus = wanted_shares(possible);
  double all = 0;
  for (std::size_t k = 0; k < surplus.size(); ++k) all += possible[k] ? accounts_[k].seconds : 0;
  for (std::size_t k = 0; k < surplus.size(); ++k) surplus[k] = (all > 0 ? accounts_[k].seconds / all : 0) - surplus[k];
  return surplus;
}

bool Schedule::is_ahead(ExperimentKind kind, const ByExperiment<bool>& possible) const {
  return surplus(possible)[index_of(kind)] > 0;
}

ExperimentKind Schedule::next(const ByExperiment<bool>& possible) const {
  const ByExperiment<double> ahead = surplus(possible);
  std::size_t farthest = index_of(ExperimentKind::kPair);
  for (std::size_t k = 0; k < ahead.size(); ++k) {
    if (possible[k] && ahead[k] < ahead[farthest]) farthest = k;
  }
  return static_cast<ExperimentKind>(farthest);
}

}  // namespace fusediff
