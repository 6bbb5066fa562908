#include "engine/repeat.h"

namespace fusediff {
namespace {

// The case `count` times, the other members in turn between two of them.
Turns again_and_again(std::size_t count, std::size_t members) {
  Turns turns(1);
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0 && members > 1) turns[0].push_back(1 + (i - 1) % (members - 1));
    turns[0].push_back(0);
  }
  return turns;
}

}  // namespace

Turns RepeatCheck::turns() const {
  return again_and_again(static_cast<std::size_t>(subject().c.experiment.count), company().members().size());
}

std::string RepeatCheck::circumstance() const {
  const bool others = company().members().size() > 1;
  return others ? "on a context that has served it and other calls" : "on a context that has served it before";
}

void RepeatCheck::explain_cause(Finding& finding) {
  CauseRun seen_run = seen();
  const std::string count = std::to_string(subject().c.experiment.count);
  seen_run.what = count + " times on one context" + (company().members().size() > 1 ? ", other calls between" : "");
  finding.causes.push_back(seen_run);
  const auto runs = static_cast<std::size_t>(subject().c.experiment.count);
  const CauseRun alone =
      try_cause(count + " times on one context, nothing between", again_and_again(runs, 1), false, 0);
  const CauseRun twice = try_cause("twice on one context", {{0, 0}}, false, 0);
  const CauseRun once = try_cause("once on a fresh context", {{0}}, false, 0);
  finding.causes.push_back(alone);
  finding.causes.push_back(twice);
  finding.causes.push_back(once);
  if (alone.differing == 0) {
    finding.conclusion = "needs another call between: repeated by itself on one context it is clean";
  } else if (twice.differing > 0) {
    finding.conclusion = "the second call on a context already differs from the first; on fresh contexts it is clean";
  } else {
    finding.conclusion = "needs more than two calls on one context; on fresh contexts it is clean";
  }
  if (once.differing > 0)
    finding.conclusion = "a first call on a fresh context shows it as well: it is not the context";
}

}  // namespace fusediff
