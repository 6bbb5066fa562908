#include "engine/shared_context.h"

#include <algorithm>
#include <cmath>

#include "engine/finding_of.h"
#include "oracle/agreement.h"
#include "oracle/vacuous.h"

namespace fusediff {
namespace {

constexpr int kReruns = 16;  // of a call alone, on fresh contexts, at least
constexpr int kMostReruns = 300;
constexpr int kCrewsForRate = 8;  // of the seen plan
constexpr int kFewestCrews = 3;   // of a plan that may split the cause
constexpr int kMostCrews = 24;
constexpr double kDoubt = 0.01;  // of a plan that does not show it, were its rate the seen one
constexpr std::size_t kMostStuck = 16;

Verdict skip(std::string why) { return {Verdict::Kind::kSkip, std::move(why), {}}; }

bool ended_by_fault(const Execution& e) {
  return e.ending == Ending::kGuardHit || e.ending == Ending::kSignal || e.ending == Ending::kHang ||
         e.ending == Ending::kExit || e.ending == Ending::kException || e.ending == Ending::kMemory || e.ending == Ending::kBadStatus;
}

bool is_notable(const Companion& member, const Execution& execution) {
  if (execution.ending != member.alone.ending) return true;
  if (execution.ending != Ending::kOk) return false;
  if (!execution.overruns.empty() && member.alone.overruns.empty()) return true;
  if (!execution.changed_inputs.empty() && member.alone.changed_inputs.empty()) return true;
  return differs_from_itself(member.call(), member.alone, execution, member.is_deterministic()).has_value();
}

// Elements of the differing outputs that still hold what the memory held before the call.
void note_fill(const Call& call, const Execution& execution, const Judgement& judgement,
               std::vector<std::string>& notes) {
  for (const Difference& d : judgement.differences) {
    for (std::size_t o = 0; o < call.outputs.size(); ++o) {
      if (call.outputs[o].name != d.output || call.outputs[o].on >= 0) continue;
      const std::vector<std::byte>& bytes = execution.outputs[o];
      const auto size = static_cast<std::ptrdiff_t>(size_of(d.dtype));
      std::ptrdiff_t kept = 0;
      for (auto at = bytes.begin(); at != bytes.end(); at += size)
        kept += std::count(at, at + size, execution.fills.output) == size ? 1 : 0;
      if (kept == 0) continue;
      notes.push_back(d.output + ": " + std::to_string(kept) + " of " + std::to_string(d.elements) +
                      " elements hold what the memory held before the call; alone the call writes them: this is an "
                      "unwritten result, not another call's");
    }
  }
}

std::string ending_text(const Execution& e) {
  const char* status = e.ending == Ending::kRejected ? "REJECTED"
                       : e.ending == Ending::kFailed ? "FAILED"
                                                     : "UNSUPPORTED";
  return std::string(status) + (e.message.empty() ? "" : " (" + e.message + ")");
}

}  // namespace

SharedContextCheck::SharedContextCheck(const Subject& subject)
    : subject_(subject), company_(subject_), budget_(subject.options.seconds) {}

std::optional<Verdict> SharedContextCheck::set_up() {
  if (!subject_.prepared.call.broken.empty()) return skip("only legal calls share a context here");
  if (std::optional<Verdict> verdict = company_.gather()) return verdict;
  company_.run_alone(budget_);
  return judge_alone();
}

// What the case does by itself is pair's question; what cannot be passed over is answered here too.
std::optional<Verdict> SharedContextCheck::judge_alone() {
  const Companion& member = company_.members().front();
  const Execution& alone = member.alone;
  const std::string who = name_of_side(subject_.comparison.sides[0]);
  const std::string said = alone.message.empty() ? "" : ": " + alone.message;
  const bool status = !ended_by_fault(alone) && alone.ending != Ending::kOk;
  if (alone.phase == Phase::kOpen && status)
    return Verdict{Verdict::Kind::kHarnessError, who + " will not open" + said, {}};
  if (alone.ending == Ending::kUnsupported) return skip(who + ": unsupported" + said);
  judge_memory_and_ending(member.call(), alone, Side::kTarget, false, alone_);
  return std::nullopt;
}

CrewOutcome SharedContextCheck::run(const Turns& turns, bool context_each, bool suspended, std::uint64_t seed) {
  const std::vector<RunRequest> requests = company_.requests();
  CrewPlan plan;
  plan.target = &company_.target();
  plan.requests = requests;
  plan.turns = turns;
  plan.nanoseconds = company_.nanoseconds();
  plan.context_each = context_each;
  plan.suspend = suspended;
  plan.seed = seed;
  const bool one = only_the_case();
  CrewOutcome outcome = subject_.runner.run_together(plan, [this, one](std::size_t m, const Execution& execution) {
    return (!one || m == 0 || ended_by_fault(execution)) && is_notable(company_.members()[m], execution);
  });
  budget_.runs += outcome.runs;
  budget_.nanoseconds += outcome.nanoseconds;
  return outcome;
}

bool SharedContextCheck::suspicious(const CrewOutcome& outcome) const {
  return !outcome.stuck.empty() || outcome.context ||
         std::any_of(outcome.requests.begin(), outcome.requests.end(), [](const auto& r) { return r.notable > 0; });
}

// Faults before bits, the case before others.
std::size_t SharedContextCheck::accused_of(const CrewOutcome& outcome) const {
  for (std::size_t m = 0; m < outcome.requests.size(); ++m) {
    if (outcome.requests[m].first && ended_by_fault(*outcome.requests[m].first)) return m;
  }
  for (std::size_t m = 0; m < outcome.requests.size(); ++m) {
    if (outcome.requests[m].first) return m;
  }
  return 0;
}

std::optional<Verdict> SharedContextCheck::first_look() {
  if (std::optional<Verdict> verdict = set_up()) return verdict;
  if (!alone_.evidence.empty()) return std::nullopt;
  const Turns plan = turns();
  if (plan.empty()) return skip("the memory cap leaves no room for two of these calls at once");
  outcome_ = run(plan, context_each(), true, subject_.c.experiment.seed);
  if (outcome_.context && outcome_.context->phase == Phase::kOpen && !ended_by_fault(*outcome_.context)) {
    return Verdict{
        Verdict::Kind::kHarnessError, company_.target().name + " will not open: " + outcome_.context->message, {}};
  }
  if (suspicious(outcome_)) {
    accused_ = accused_of(outcome_);
    return std::nullopt;
  }
  const Companion& member = company_.members().front();
  const std::string vacuous = judge_vacuous(member.call(), member.alone);
  if (!vacuous.empty()) return Verdict{Verdict::Kind::kVacuous, vacuous, {}};
  return Verdict{};
}

Judgement SharedContextCheck::judged(const CrewOutcome& outcome, std::size_t m) const {
  Judgement judgement;
  const Companion& member = company_.members()[m];
  const std::string oracle(name_of(subject_.c.experiment.kind));
  if (!outcome.stuck.empty()) {
    std::string what = "no call came back for too long; ";
    for (std::size_t i = 0; i < std::min(outcome.stuck.size(), kMostStuck); ++i)
      what += (i == 0 ? "" : ", ") + outcome.stuck[i];
    judgement.evidence.push_back({FindingClass::kHang, oracle, "", std::nullopt, Side::kTarget, what});
  }
  if (outcome.context) judge_memory_and_ending(member.call(), *outcome.context, Side::kTarget, false, judgement);
  if (!outcome.requests[m].first) return judgement;
  const Execution& first = *outcome.requests[m].first;
  if (first.ending != Ending::kOk && !ended_by_fault(first)) {
    judgement.evidence.push_back({FindingClass::kContamination, oracle, "", std::nullopt, Side::kTarget,
                                  "ends in " + ending_text(first) + "; alone it succeeds"});
    return judgement;
  }
  judge_memory_and_ending(member.call(), first, Side::kTarget, false, judgement);
  if (first.ending != Ending::kOk) return judgement;
  Judgement bits;
  judge_outputs(member.call(), member.inputs, first, member.alone,
                std::vector<bool>(member.call().outputs.size(), true), nullptr, bits);
  judgement.differences = std::move(bits.differences);
  judgement.flips = std::move(bits.flips);
  for (Difference& d : judgement.differences) {
    d.cls = FindingClass::kContamination;
    d.judged_by = "the path against itself alone";
    judgement.evidence.push_back({FindingClass::kContamination, oracle, d.output, d.stage, Side::kTarget,
                                  d.output + " differs in " + std::to_string(d.differing) + " of " +
                                      std::to_string(d.elements) + " elements from what the call gives alone"});
  }
  return judgement;
}

Case SharedContextCheck::named() const {
  Case c = *company_.members()[accused_].c;
  c.experiment = subject_.c.experiment;
  return c;
}

std::string SharedContextCheck::suspicion() const {
  const bool is_alone = !alone_.evidence.empty();
  Judgement judgement = is_alone ? alone_ : judged(outcome_, accused_);
  if (judgement.evidence.empty()) return subject_.c.op + " differs beyond what is compared";
  const Companion& member = company_.members()[is_alone ? 0 : accused_];
  rank_evidence(member.call(), judgement);
  return signature_of(finding_of(named(), member.call(), with_itself(subject_.comparison, Side::kTarget), judgement));
}

void SharedContextCheck::rerun_seen() {
  const Turns plan = turns();
  const auto add = [&](const CrewOutcome& outcome) {
    const auto& of = outcome.requests[accused_];
    ++crews_;
    crews_differing_ += of.notable > 0 ? 1 : 0;
    seen_.calls += of.calls;
    seen_.differing += of.notable;
    seen_.digests = std::max<std::int64_t>(seen_.digests, static_cast<std::int64_t>(of.digests.size()));
  };
  add(outcome_);
  for (int i = 1; i < kCrewsForRate && budget_.left() && !subject_.runner.tainted(); ++i)
    add(run(plan, context_each(), true, subject_.c.experiment.seed + static_cast<std::uint64_t>(i)));
}

CauseRun SharedContextCheck::try_cause(std::string what, const Turns& turns, bool context_each, std::size_t member) {
  CauseRun cause{std::move(what), 0, 0, 0};
  const double rate = std::clamp(static_cast<double>(crews_differing_) / std::max(crews_, 1), 0.01, 0.99);
  const int crews =
      std::clamp(static_cast<int>(std::ceil(std::log(kDoubt) / std::log(1 - rate))), kFewestCrews, kMostCrews);
  for (int i = 0; i < crews && cause.differing == 0 && budget_.left() && !subject_.runner.tainted(); ++i) {
    const CrewOutcome outcome =
        run(turns, context_each, true, subject_.c.experiment.seed + static_cast<std::uint64_t>(i));
    if (member >= outcome.requests.size()) break;
    cause.calls += outcome.requests[member].calls;
    cause.differing += outcome.requests[member].notable;
    cause.digests =
        std::max<std::int64_t>(cause.digests, static_cast<std::int64_t>(outcome.requests[member].digests.size()));
  }
  return cause;
}

// A status that comes back only where calls are suspended, and of one thread too, is not the target's fault: it gives
// its tensors to the system, which does not wait.
bool SharedContextCheck::goes_away_unsuspended() {
  const auto& first = outcome_.requests[accused_].first;
  if (!first || first->ending == Ending::kOk || ended_by_fault(*first)) return false;
  for (int i = 0; i < kFewestCrews && budget_.left(); ++i) {
    const CrewOutcome outcome =
        run(turns(), context_each(), false, subject_.c.experiment.seed + static_cast<std::uint64_t>(i));
    if (outcome.requests[accused_].notable > 0) return false;
  }
  return true;
}

// The accused call again and again alone, on fresh contexts: as often as it takes to see what differs as often as it
// did in the experiment. Every other run is by a crew of one, which suspends threads that the target itself has
// started. Adds nondeterminism.
bool SharedContextCheck::agrees_with_itself(Judgement& judgement) {
  const Companion& member = company_.members()[accused_];
  RunRequest request = company_.requests()[accused_];
  const CrewOutcome::OfRequest& seen = outcome_.requests[accused_];
  const double rate_seen = std::clamp(
      static_cast<double>(seen.notable) / static_cast<double>(std::max<std::int64_t>(seen.calls, 1)), 0.001, 0.99);
  const int reruns =
      std::clamp(static_cast<int>(std::ceil(std::log(kDoubt) / std::log(1 - rate_seen))), kReruns, kMostReruns);
  Rate& rate = rates_[1];
  std::optional<std::size_t> differing;
  for (int i = 0; i < reruns && budget_.left() && !subject_.runner.tainted(); ++i) {
    std::optional<std::size_t> output;
    request.pinned = i % 4 == 1;
    if (i % 2 == 0) {
      const CrewOutcome alone = run({{accused_}}, false, true, static_cast<std::uint64_t>(i));
      if (const auto& first = alone.requests[accused_].first)
        output = differs_from_itself(member.call(), member.alone, *first, member.is_deterministic());
    } else {
      Execution again;
      subject_.runner.run(request, again);
      budget_.count(again);
      output = differs_from_itself(member.call(), member.alone, again, member.is_deterministic());
    }
    ++rate.runs;
    rate.differing += output ? 1 : 0;
    rate.pinned_runs += request.pinned ? 1 : 0;
    rate.pinned_differing += request.pinned && output ? 1 : 0;
    if (output && !differing) differing = output;
  }
  if (!differing) return true;
  judgement.evidence.push_back(nondeterminism(member.call(), *differing, Side::kTarget, member.path, rate));
  return false;
}

Verdict SharedContextCheck::explain() {
  const Comparison itself = with_itself(subject_.comparison, Side::kTarget);
  if (!alone_.evidence.empty()) {
    rank_evidence(company_.members().front().call(), alone_);
    return {Verdict::Kind::kFinding, "", finding_of(subject_.c, company_.members().front().call(), itself, alone_)};
  }
  if (goes_away_unsuspended()) {
    return {Verdict::Kind::kVacuous, "the target gives its tensors to the system: its calls cannot be suspended", {}};
  }
  const Companion& member = company_.members()[accused_];
  Judgement judgement = judged(outcome_, accused_);
  const bool whole = !subject_.runner.tainted();
  const bool agrees = !whole || !outcome_.requests[accused_].first || agrees_with_itself(judgement);
  rank_evidence(member.call(), judgement);
  if (judgement.evidence.empty()) return Verdict{};
  Finding finding = finding_of(named(), member.call(), itself, judgement);
  finding.rates = rates_;
  finding.columns = {circumstance(), "alone"};
  if (accused_ != 0)
    finding.notes.push_back("the call that differs is not the case's own but one of the calls beside it: " +
                            member.c->op);
  if (outcome_.requests[accused_].first && outcome_.requests[accused_].first->ending == Ending::kOk)
    note_fill(member.call(), *outcome_.requests[accused_].first, judgement, finding.notes);
  if (whole && agrees && finding.cls == FindingClass::kContamination) {
    rerun_seen();
    finding.rates[0] = {crews_, crews_differing_, 0, 0};
    explain_cause(finding);
  }
  if (const auto& first = outcome_.requests[accused_].first) {
    add_hashes(member.call(), member.inputs, {&*first, &member.alone}, {}, finding);
    add_words({&*first, &member.alone}, finding);
    if (accused_ == 0) subject_.executions = {*first, member.alone};
  }
  return {Verdict::Kind::kFinding, "", std::move(finding)};
}

}  // namespace fusediff
