#include "engine/minimize_notes.h"

#include <algorithm>

#include "engine/resized.h"
#include "engine/simpler_experiment.h"

namespace fusediff {
namespace {

std::string number_of(std::size_t n, const std::string& thing) {
  return n == 1 ? "one " + thing : std::to_string(n) + " " + thing + "s";
}

bool passes(const Asked& asked, const Case& c) {
  const std::optional<Verdict> verdict = asked.check(c);
  return verdict && (verdict->kind == Verdict::Kind::kPass || verdict->kind == Verdict::Kind::kVacuous);
}

// The same at another size, and the calls of its shape with it.
Case at_size(const Case& c, const Asked& asked, const std::string& dim, std::int64_t size) {
  Case other = resized(c, asked.op, {{dim, size}}, asked.max_bytes);
  other.experiment.calls = follow(c.experiment.calls, c, other, asked.op, asked.max_bytes);
  return other;
}

bool has_another_operator(const Case& c) {
  return std::any_of(c.experiment.calls.begin(), c.experiment.calls.end(),
                     [&](const Case& call) { return call.op != c.op; });
}

bool all_of_its_shape(const Case& c) {
  return std::all_of(c.experiment.calls.begin(), c.experiment.calls.end(),
                     [&](const Case& call) { return is_same_shape(call, c); });
}

// With one less of it, where one less is left to try.
bool passes_with_one_less(const Case& c, std::int64_t Experiment::*number, const Asked& asked) {
  Case fewer = c;
  --(fewer.experiment.*number);
  return passes(asked, fewer);
}

std::vector<std::string> threads_need(const Case& c, const Asked& asked) {
  std::vector<std::string> notes;
  const Experiment& e = c.experiment;
  if (e.count == 2) {
    Case repeat = c;
    repeat.experiment = {};
    repeat.experiment.kind = ExperimentKind::kRepeat;
    repeat.experiment.count = std::clamp<std::int64_t>(e.count * e.rounds, 2, kMostRepeats);
    repeat.experiment.calls = e.calls;
    if (passes(asked, repeat)) notes.push_back("needs at least 2 threads: one after another the same calls pass");
  } else if (passes_with_one_less(c, &Experiment::count, asked)) {
    notes.push_back("needs at least " + std::to_string(e.count) + " threads");
  }
  if (e.rounds > 1 && passes_with_one_less(c, &Experiment::rounds, asked))
    notes.push_back("needs at least " + std::to_string(e.rounds) + " calls of each thread");
  return notes;
}

std::vector<std::string> calls_need(const Case& original, const Case& c, const Asked& asked) {
  std::vector<std::string> notes;
  const std::vector<Case>& calls = c.experiment.calls;
  const std::string thing = c.experiment.kind == ExperimentKind::kThreads   ? "mate"
                            : c.experiment.kind == ExperimentKind::kHistory ? "earlier call"
                                                                            : "call between";
  if (calls.empty()) {
    if (!original.experiment.calls.empty()) notes.push_back("needs no " + thing);
    return notes;
  }
  Case without = c;
  without.experiment.calls.pop_back();
  if (c.experiment.kind == ExperimentKind::kHistory && calls.size() == 1) without.experiment = {};
  if (passes(asked, without)) notes.push_back("needs at least " + number_of(calls.size(), thing));
  const std::string one = calls.size() == 1 ? "the " + thing : "the " + thing + "s";
  if (has_another_operator(c)) {
    notes.push_back(one + " of another operator: the case's own operator at a few other sizes does not do");
  } else if (has_another_operator(original)) {
    notes.push_back(one + " need not be of another operator");
  }
  if (all_of_its_shape(c)) notes.push_back(one + " may have the shape of the case");
  return notes;
}

}  // namespace

std::vector<std::string> neighbours(const Case& smallest, const Asked& asked) {
  std::vector<std::string> notes;
  for (const DimRule& dim : asked.op.dims) {
    const auto at = smallest.dims.find(dim.name);
    const std::int64_t size = at == smallest.dims.end() ? 0 : at->second;
    for (const std::int64_t other : {size - 1, size + 1}) {
      if (other < 0 || !passes(asked, at_size(smallest, asked, dim.name, other))) continue;
      notes.push_back("passes with " + dim.name + " = " + std::to_string(other) + ", fails with " + dim.name + " = " +
                      std::to_string(size));
    }
  }
  return notes;
}

std::vector<std::string> experiment_needs(const Case& original, const Case& smallest, const Asked& asked) {
  const ExperimentKind kind = smallest.experiment.kind;
  std::vector<std::string> notes;
  if (kind != original.experiment.kind)
    notes.push_back("the experiment does not matter: " + std::string(name_of(kind)) + " shows what " +
                    std::string(name_of(original.experiment.kind)) + " showed");
  if (kind == ExperimentKind::kThreads) notes = threads_need(smallest, asked);
  if (kind == ExperimentKind::kRepeat && smallest.experiment.count > 2 &&
      passes_with_one_less(smallest, &Experiment::count, asked))
    notes.push_back("needs at least " + std::to_string(smallest.experiment.count) + " runs");
  const bool with_calls =
      kind == ExperimentKind::kThreads || kind == ExperimentKind::kRepeat || kind == ExperimentKind::kHistory;
  if (!with_calls) return notes;
  for (std::string& note : calls_need(original, smallest, asked)) notes.push_back(std::move(note));
  return notes;
}

}  // namespace fusediff
