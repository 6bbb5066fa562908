#include "engine/minimize.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>

#include "base/hash.h"
#include "engine/minimize_notes.h"
#include "engine/shrink_call.h"
#include "engine/simpler_experiment.h"
#include "model/case_json.h"

namespace fusediff {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kPartForShrinking = 0.9;  // of the time; the rest is for what the result teaches

Clock::time_point after(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// In so many of so many checks.
struct Often {
  int needed = 1;
  int tries = 1;
};

// A race that is small must show about as often as it did, or nobody can look at it: among hundreds of candidates, ones
// that show less often would be lucky again and again. Of tries that are made for 99 percent, three show or more as a
// rule.
Often often_enough(const Case& c, const MinimizeOptions& options) {
  if (c.experiment.kind != ExperimentKind::kThreads) return {options.needed, options.tries};
  if (options.tries == 1) return {std::max(options.needed, 4), 5};
  return {std::max(options.needed, 3), std::max(options.tries, 5)};
}

// Coarse to fine until nothing changes. Every candidate must keep the signature; none is taken on trust.
class Minimizer {
 public:
  Minimizer(const Predicate& predicate, const MinimizeOptions& options, const Case& original, Finding finding)
      : predicate_(predicate),
        options_(options),
        wanted_(signature_of(finding)),
        end_(after(kPartForShrinking * options.seconds)),
        end_of_notes_(after(options.seconds)) {
    limits_.max_bytes = predicate.max_bytes;
    limits_.time_left = [this] { return time_left(); };
    limits_.progress = [this](const std::string& step) {
      if (options_.progress) options_.progress(step, checks_);
    };
    best_ = original;
    finding_ = std::move(finding);
  }

  Minimized run() {
    const Case original = best_;
    const Finding finding = finding_;
    shrink();
    // Known findings come back unexplained, which is fast; the last word has a check that explains anew. Where it
    // disagrees, every candidate is explained.
    if (!confirm()) {
      best_ = original;
      finding_ = finding;
      accepted();
      anew_ = true;
      rejected_.clear();
      shrink();
    }
    Minimized result;
    result.finished = time_left();
    end_ = end_of_notes_;
    if (time_left()) result.notes = notes(original);
    result.smallest = best_;
    result.finding = finding_;
    result.checks = checks_;
    return result;
  }

 private:
  // One that is explained is enough: how often it shows was asked before.
  bool confirm() {
    for (int i = 0; i < often_enough(best_, options_).tries && !is_stuck(); ++i) {
      ++checks_;
      Result<CheckResult> result = predicate_.check(best_, /*anew=*/true);
      if (!result.ok()) return false;
      if (!result->verdict.finding || signature_of(*result->verdict.finding) != wanted_) continue;
      finding_ = *std::move(result->verdict.finding);
      return true;
    }
    return false;
  }

  void shrink() {
    bool changed = true;
    while (changed && time_left()) {
      changed = shrink_experiment();
      changed |= shrink_case();
      changed |= shrink_calls();
    }
  }

  void accepted() const {
    if (options_.accepted) options_.accepted(best_);
  }

  bool time_left() const { return Clock::now() < end_; }

  // A run that was cut off may hold locks that every later run waits for. A run that touched a guard page or died of a
  // signal has left nothing worse than a leak, as a rule; the bundle is replayed in a fresh process before anyone
  // believes it.
  bool is_stuck() const { return finding_.cls == FindingClass::kHang && predicate_.tainted(); }

  // Nothing where it shows less often than it must.
  std::optional<Finding> finding_of(const Case& c) {
    const auto [needed, tries] = often_enough(c, options_);
    int kept = 0;
    std::optional<Finding> last;
    for (int i = 0; kept < needed && kept + tries - i >= needed; ++i) {
      if (is_stuck() || !time_left()) return std::nullopt;
      ++checks_;
      const Result<CheckResult> result = predicate_.check(c, anew_);
      if (!result.ok()) return std::nullopt;  // not legal: never will be
      if (!result->verdict.finding || signature_of(*result->verdict.finding) != wanted_) continue;
      ++kept;
      last = result->verdict.finding;
    }
    return kept >= needed ? last : std::nullopt;
  }

  // Takes the candidate when it still shows the same signature. None is asked about twice: a race that hardly ever
  // shows would be lucky in the end.
  bool keeps(const Case& candidate) {
    if (candidate == best_) return true;
    if (!time_left()) return false;
    std::string name = hash128(write_case(candidate)).hex();
    if (rejected_.contains(name)) return false;
    std::optional<Finding> finding = finding_of(candidate);
    if (!finding) {
      if (time_left()) rejected_.insert(std::move(name));
      return false;
    }
    best_ = candidate;
    finding_ = std::move(*finding);
    accepted();
    return true;
  }

  template <typename Propose>
  bool step(const char* name, const Propose& propose) {
    limits_.progress(name);
    bool any = false;
    for (bool again = true; again && time_left();) {
      const std::vector<Case> candidates = propose();
      again = std::any_of(candidates.begin(), candidates.end(), [&](const Case& c) { return keeps(c); });
      any |= again;
    }
    return any;
  }

  bool shrink_experiment() {
    if (best_.experiment.kind == ExperimentKind::kPair) return false;
    bool changed = step("calls", [&] { return with_fewer_calls(best_); });
    // A finding of the experiment's own oracle has another signature in any other.
    if (finding_.oracle != name_of(best_.experiment.kind))
      changed |= step("experiment", [&] { return with_plainer_kind(best_); });
    for (std::size_t i = 0; i < best_.experiment.calls.size(); ++i) {
      const Operator* op = predicate_.find(best_.op);
      changed |= step("plainer calls", [&] { return with_plainer_call(best_, i, *op, limits_.max_bytes); });
    }
    changed |= step("runs", [&] { return with_fewer_runs(best_); });
    changed |= step("row and seed", [&] { return with_plainer_parameters(best_); });
    return changed;
  }

  // The calls of its shape follow it where that is what it takes.
  bool keeps_case(const Case& candidate) {
    Case whole = candidate;
    const std::vector<Case>& calls = best_.experiment.calls;
    whole.experiment.calls = follow(calls, best_, candidate, *predicate_.find(best_.op), limits_.max_bytes);
    if (keeps(whole)) return true;
    if (whole.experiment.calls == calls) return false;
    whole.experiment.calls = calls;
    return keeps(whole);
  }

  bool shrink_case() {
    Case c = best_;
    c.experiment.calls.clear();
    CallShrinker shrinker(*predicate_.find(c.op), limits_,
                          [this](const Case& candidate) { return keeps_case(candidate); });
    const bool changed = shrinker.shrink(c);
    c.experiment.calls = best_.experiment.calls;
    best_ = std::move(c);  // another spelling at most: the finding stands
    return changed;
  }

  bool shrink_calls() {
    Case alike = best_;
    alike.experiment.calls =
        follow(best_.experiment.calls, best_, best_, *predicate_.find(best_.op), limits_.max_bytes);
    bool changed = !(alike == best_) && keeps(alike);
    for (std::size_t i = 0; i < best_.experiment.calls.size(); ++i) {
      Case call = best_.experiment.calls[i];
      const Operator* op = predicate_.find(call.op);
      if (op == nullptr) continue;
      CallShrinker shrinker(*op, limits_, [&](const Case& candidate) {
        Case whole = best_;
        whole.experiment.calls[i] = candidate;
        return keeps(whole);
      });
      changed |= is_same_shape(call, best_) ? shrinker.shrink_values_of(call) : shrinker.shrink(call);
      best_.experiment.calls[i] = std::move(call);
    }
    return changed;
  }

  // A finding where any of the tries is one. To say that a case passes takes more than to go on without it.
  std::optional<Verdict> verdict_of(const Case& c) {
    std::optional<Verdict> verdict;
    const int tries = often_enough(c, options_).tries;
    for (int i = 0; i < (tries > 1 ? 2 * tries : 1) && !(verdict && verdict->finding); ++i) {
      if (!time_left() || is_stuck()) return std::nullopt;
      ++checks_;
      const Result<CheckResult> result = predicate_.check(c, false);
      if (!result.ok()) return std::nullopt;
      verdict = result->verdict;
    }
    return verdict;
  }

  std::vector<std::string> notes(const Case& original) {
    const Asked asked{[this](const Case& c) -> std::optional<Verdict> { return verdict_of(c); },
                      *predicate_.find(best_.op), limits_.max_bytes, wanted_};
    std::vector<std::string> notes = neighbours(original, best_, asked);
    for (std::string& note : experiment_needs(original, best_, asked)) notes.push_back(std::move(note));
    return notes;
  }

  const Predicate& predicate_;
  const MinimizeOptions& options_;
  ShrinkLimits limits_;
  std::string wanted_;
  Clock::time_point end_;
  Clock::time_point end_of_notes_;
  Case best_;
  Finding finding_;
  std::set<std::string> rejected_;  // hashes of candidates
  int checks_ = 0;
  bool anew_ = false;
};

}  // namespace

Result<Minimized> minimize(Engine& engine, const Case& original, const MinimizeOptions& options) {
  const Predicate predicate{[&](const Case& c, bool anew) { return engine.check(c, anew); },
                            [&](std::string_view op) { return engine.find(op); }, [&] { return engine.tainted(); },
                            engine.max_bytes()};
  return minimize(predicate, original, options);
}

Result<Minimized> minimize(const Predicate& predicate, const Case& original, const MinimizeOptions& options) {
  int checks = 0;
  std::optional<Finding> finding;
  while (!finding) {
    const Result<CheckResult> first = predicate.check(original, /*anew=*/true);
    if (!first.ok()) return first.error();
    finding = first->verdict.finding;
    if (++checks < options.tries || finding) continue;
    return user_error("nothing to minimise: the case gives " + std::string(name_of(first->verdict.kind)) +
                      ", not a finding");
  }
  Minimizer minimizer(predicate, options, original, *std::move(finding));
  Minimized result = minimizer.run();
  result.checks += checks;
  return result;
}

}  // namespace fusediff
