#include "engine/simpler_experiment.h"

#include <algorithm>
#include <utility>

#include "engine/resized.h"
#include "engine/shrink_call.h"

namespace fusediff {
namespace {

constexpr std::int64_t kMostRoundsForTwo = 256;

Case alone(const Case& c) {
  Case call = c;
  call.experiment = {};
  return call;
}

Case with_calls(const Case& c, std::vector<Case> calls) {
  Case candidate = c;
  candidate.experiment.calls = std::move(calls);
  return candidate;
}

std::vector<Case> without(const std::vector<Case>& calls, std::size_t first, std::size_t count) {
  std::vector<Case> left = calls;
  const auto begin = left.begin() + static_cast<std::ptrdiff_t>(first);
  left.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
  return left;
}

bool needs_a_call(const Case& c) { return c.experiment.kind == ExperimentKind::kHistory; }

void reseed(Case& c) {
  for (auto& [name, value] : c.inputs) {
    ++value.fill.seed;
    for (Patch& patch : value.patches) ++patch.fill.seed;
  }
}

}  // namespace

bool is_same_shape(const Case& a, const Case& b) { return a.op == b.op && a.dims == b.dims && a.dtypes == b.dtypes; }

std::vector<Case> with_plainer_kind(const Case& c) {
  const Experiment& e = c.experiment;
  std::vector<Case> plainer;
  if (e.kind == ExperimentKind::kPair) return plainer;
  plainer.push_back(alone(c));
  if (e.kind != ExperimentKind::kThreads && e.kind != ExperimentKind::kRepeat) return plainer;
  Case history = alone(c);
  history.experiment.kind = ExperimentKind::kHistory;
  history.experiment.calls = e.calls.empty() ? std::vector<Case>{alone(c)} : e.calls;
  plainer.push_back(std::move(history));
  if (e.kind == ExperimentKind::kRepeat) return plainer;
  Case repeat = alone(c);
  repeat.experiment.kind = ExperimentKind::kRepeat;
  repeat.experiment.count = std::min(e.count * e.rounds, kMostRepeats);
  repeat.experiment.calls = e.calls;
  plainer.push_back(std::move(repeat));
  return plainer;
}

std::vector<Case> with_fewer_calls(const Case& c) {
  const std::vector<Case>& calls = c.experiment.calls;
  const std::size_t n = calls.size();
  std::vector<Case> fewer;
  if (n == 0) return fewer;
  if (!needs_a_call(c)) fewer.push_back(with_calls(c, {}));
  if (n > 3) {
    fewer.push_back(with_calls(c, without(calls, n / 2, n - n / 2)));
    fewer.push_back(with_calls(c, without(calls, 0, n / 2)));
  }
  for (std::size_t i = 0; n > 1 && i < n; ++i) fewer.push_back(with_calls(c, without(calls, i, 1)));
  for (std::size_t i = 0; c.experiment.kind == ExperimentKind::kThreads && i < n; ++i) {
    Case promoted = calls[i];
    promoted.experiment = c.experiment;
    promoted.experiment.calls = without(calls, i, 1);
    fewer.push_back(std::move(promoted));
  }
  return fewer;
}

std::vector<Case> with_plainer_call(const Case& c, std::size_t at, const Operator& op, std::uint64_t max_bytes) {
  const Case& call = c.experiment.calls[at];
  std::vector<Case> plainer;
  if (is_same_shape(call, c)) return plainer;
  const auto add = [&](Case own) {
    plainer.push_back(c);
    plainer.back().experiment.calls[at] = std::move(own);
  };
  Case own = alone(c);
  reseed(own);
  add(own);
  if (call.op == c.op) return plainer;
  for (const DimRule& dim : op.dims) {
    const std::int64_t size = own.dims[dim.name];
    for (const std::int64_t other : {std::int64_t{1}, size + 1, size * 2}) {
      if (other != size) add(resized(own, op, {{dim.name, other}}, max_bytes));
    }
  }
  return plainer;
}

std::vector<Case> with_fewer_runs(const Case& c) {
  std::vector<Case> fewer;
  const auto add = [&](std::int64_t Experiment::*number, std::int64_t least) {
    for (const std::int64_t size : smaller_sizes(c.experiment.*number, least)) {
      fewer.push_back(c);
      fewer.back().experiment.*number = size;
    }
  };
  // Two threads that meet often say more than eight that meet now and then.
  const auto two_threads = [&](std::int64_t rounds) {
    fewer.push_back(c);
    fewer.back().experiment.count = 2;
    fewer.back().experiment.rounds = rounds;
  };
  const ExperimentKind kind = c.experiment.kind;
  if (kind == ExperimentKind::kThreads && c.experiment.count > 2) {
    for (std::int64_t rounds = c.experiment.rounds; rounds <= kMostRoundsForTwo; rounds *= 4) two_threads(rounds);
  }
  if (kind == ExperimentKind::kThreads || kind == ExperimentKind::kRepeat) add(&Experiment::count, 2);
  if (kind == ExperimentKind::kThreads) add(&Experiment::rounds, 1);
  return fewer;
}

std::vector<Case> with_plainer_parameters(const Case& c) {
  std::vector<Case> plainer;
  for (const std::int64_t row : smaller_sizes(c.experiment.row, 0)) {
    plainer.push_back(c);
    plainer.back().experiment.row = row;
  }
  if (c.experiment.seed != 0) {
    plainer.push_back(c);
    plainer.back().experiment.seed = 0;
  }
  return plainer;
}

std::vector<Case> follow(const std::vector<Case>& calls, const Case& before, const Case& after, const Operator& op,
                         std::uint64_t max_bytes) {
  std::vector<Case> followed = calls;
  for (Case& call : followed) {
    if (!is_same_shape(call, before)) continue;
    std::map<std::string, std::int64_t> sizes;
    for (const auto& [dim, size] : after.dims) {
      if (call.dims[dim] != size) sizes[dim] = size;
    }
    if (!sizes.empty()) call = resized(call, op, sizes, max_bytes);
    call.attrs = after.attrs;
    call.dtypes = after.dtypes;
    call.layout = after.layout;
    call.unwanted = after.unwanted;
    std::erase_if(call.inputs, [&](const auto& input) { return !after.inputs.contains(input.first); });
  }
  return followed;
}

}  // namespace fusediff
