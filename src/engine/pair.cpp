#include "engine/pair.h"

#include <algorithm>

#include "base/bytes.h"
#include "engine/finding_of.h"
#include "engine/influence.h"
#include "engine/not_offered.h"
#include "oracle/fills.h"
#include "oracle/vacuous.h"

namespace fusediff {
namespace {

Verdict skip(std::string reason) { return {Verdict::Kind::kSkip, std::move(reason), {}}; }

bool lies_on_input(const Call& call) {
  return std::any_of(call.outputs.begin(), call.outputs.end(), [](const Tensor& output) { return output.on >= 0; });
}

}  // namespace

PairCheck::PairCheck(const Subject& subject)
    : case_(subject.c),
      prepared_(subject.prepared),
      call_(&subject.prepared.call),
      comparison_(subject.comparison),
      options_(subject.options),
      outside_(!subject.prepared.call.broken.empty()),
      runner_(subject.runner),
      executions_(subject.executions),
      inputs_(subject.prepared.views()),
      budget_(subject.options.seconds) {}

std::optional<Verdict> PairCheck::set_up() {
  for (const Side side : kSides) {
    const std::size_t s = index_of(side);
    const PathOf& path = comparison_.sides[s];
    if (std::optional<Verdict> missing = not_in_record(path, case_.op)) return missing;
    const Operator* op = path.target->schema.find(case_.op);
    const Bank bank = side == Side::kTarget ? Bank::kFirst : Bank::kSecond;
    // Outputs lie on inputs on the target side only; where none does, two sides of one record share the call.
    if (side == Side::kTarget || (op == call_->op && !lies_on_input(*call_))) {
      sides_[s] = std::make_unique<SideRun>(path, *call_, bank, options_.keep_context);
    } else {
      Result<Adapted> adapted = adapt(*call_, *op, outside_);
      if (!adapted.ok()) return skip(name_of_side(path) + ": " + adapted.error().what);
      sides_[s] = std::make_unique<SideRun>(path, *std::move(adapted), bank, options_.keep_context);
    }
    side_pointers_[s] = sides_[s].get();
    execution_pointers_[s] = &executions_[s];
  }
  compared_.assign(call_->outputs.size(), true);
  for (std::size_t o = 0; o < compared_.size(); ++o) compared_[o] = sides_[1]->gives(o) && call_->outputs[o].present;
  return std::nullopt;
}

void PairCheck::run_both() {
  for (const Side side : kSides) {
    const std::size_t s = index_of(side);
    sides_[s]->run(runner_, inputs_, {fills_[s], {}, false}, executions_[s]);
    budget_.count(executions_[s]);
  }
}

bool PairCheck::both_ok() const { return executions_[0].ending == Ending::kOk && executions_[1].ending == Ending::kOk; }

Scene PairCheck::scene() { return {runner_, *call_, inputs_, side_pointers_, execution_pointers_, fills_, budget_}; }

std::optional<Verdict> PairCheck::first_look() {
  if (std::optional<Verdict> early = set_up()) return early;
  run_both();
  for (const Side side : kSides) {
    std::optional<Verdict> closed = will_not_open(comparison_.sides[index_of(side)], executions_[index_of(side)]);
    // A library may not open any more after the other side's call has died in it: that one is the news.
    const bool died = side == Side::kAgainst && executions_[0].ending != Ending::kOk && executions_[0].signal != 0;
    if (closed && !died) return closed;
  }
  const bool same = same_bits();
  judge_sides(same, first_);
  if (both_ok() && !outside_ && !same) {
    judge_outputs(*call_, inputs_, executions_[0], executions_[1], compared_, nullptr, first_);
  }
  if (!first_.evidence.empty()) return std::nullopt;
  // A side that does not offer this call leaves nothing to compare. What was seen of either side alone stands.
  for (const Side side : kSides) {
    std::optional<Verdict> skipped = unsupported(comparison_.sides[index_of(side)], executions_[index_of(side)]);
    if (skipped) return skipped;
  }
  if (outside_) return Verdict{};
  // The sides' fills differ: equal bytes were written by both.
  for (const Side side : kSides) {
    if (same || !shows_fill(*call_, executions_[index_of(side)])) continue;
    if (fill_comes_back(scene(), side)) return std::nullopt;
  }
  const std::string vacuous = judge_vacuous(*call_, executions_[1]);
  if (!vacuous.empty()) return Verdict{Verdict::Kind::kVacuous, vacuous, {}};
  return Verdict{};
}

// Every output of both sides, byte by byte: what one side's own rules say of them holds for the other's too.
bool PairCheck::same_bits() const {
  if (!both_ok()) return false;
  for (std::size_t o = 0; o < call_->outputs.size(); ++o) {
    if (call_->outputs[o].present &&
        (!compared_[o] || !same_bytes(executions_[0].outputs[o], executions_[1].outputs[o])))
      return false;
  }
  return true;
}

void PairCheck::judge_sides(bool same, Judgement& judgement) const {
  for (const Side side : kSides) {
    const std::size_t s = index_of(side);
    const bool outputs_judged = same && side == Side::kAgainst && judgement.evidence.empty();
    const bool forbidden = outside_ && !sides_[s]->call().broken.empty();  // by this side's own record
    judge_memory_and_ending(sides_[s]->call(), executions_[s], side, forbidden, judgement);
    if (executions_[s].ending != Ending::kOk || outside_ || outputs_judged) continue;
    judge_own_outputs(*call_, inputs_, executions_[s], side, judgement);
  }
}

std::string PairCheck::suspicion() const {
  if (first_.evidence.empty()) return case_.op + " shows its fill";
  return suspicion_of(case_, *call_, comparison_, first_);
}

// A stage can be blamed only when it is looked at. The finding must stand with the fuller call too, else it keeps the
// case's own.
void PairCheck::ask_for_every_output() {
  if (outside_ || !both_ok()) return;
  fuller_ = fuller_call(case_, *call_);
  if (!fuller_) return;
  const Call* const narrow = call_;
  const Judgement first = first_;
  const std::array<Execution, 2> before = executions_;
  first_ = {};
  call_ = &*fuller_;
  if (!set_up()) {
    run_both();
    judge_sides(same_bits(), first_);
    if (both_ok()) judge_outputs(*call_, inputs_, executions_[0], executions_[1], compared_, nullptr, first_);
    const auto still = [&](const Evidence& evidence) {
      return std::any_of(first_.evidence.begin(), first_.evidence.end(),
                         [&](const Evidence& other) { return other.tensor == evidence.tensor; });
    };
    if (both_ok() && std::all_of(first.evidence.begin(), first.evidence.end(), still)) return;
  }
  notes_.push_back("shows only while " + case_.unwanted.front() +
                   (case_.unwanted.size() > 1 ? " and others are" : " is") + " not asked for");
  call_ = narrow;
  first_ = first;
  (void)set_up();
  executions_ = before;
}

Verdict PairCheck::explain() {
  ask_for_every_output();
  Judgement judgement;
  judge_sides(same_bits(), judgement);
  std::array<Rate, 2> rates;
  for (const Side side : kSides) {
    rerun_in_the_middle(scene(), side, judgement);
    if (executions_[index_of(side)].ending == Ending::kOk && !outside_)
      rerun_with_other_fills(scene(), side, judgement);
  }
  if (may_run_again(executions_[0].ending) && may_run_again(executions_[1].ending)) {
    rerun_alike(scene(), compared_, judgement, rates);
  }
  if (both_ok() && !outside_) {
    Truth truth;
    if (!first_.differences.empty()) truth = compute_truth(prepared_, comparison_, options_, runner_);
    judge_outputs(*call_, inputs_, executions_[0], executions_[1], compared_, truth.outputs.empty() ? nullptr : &truth,
                  judgement);
    if (!truth.path.empty()) notes_.push_back("truth: " + truth.path + " in f64");
  }
  rank_evidence(*call_, judgement);
  if (judgement.evidence.empty()) return Verdict{};  // what looked like a fill was a value
  Finding finding = finding_of(case_, *call_, comparison_, judgement);
  finding.rates = rates;
  if ((finding.cls == FindingClass::kDamage || finding.cls == FindingClass::kFlip) && both_ok()) {
    finding.influence =
        find_influence(scene(), judgement.differences.empty() ? 0 : judgement.differences.front().first);
  }
  for (const Tensor& output : call_->outputs) {
    if (output.present && output.on >= 0)
      notes_.push_back(output.name + " lies on " + call_->inputs[static_cast<std::size_t>(output.on)].name +
                       ": it has no fill, unwritten bytes of it cannot be seen");
  }
  finding.notes = notes_;
  finding.notes.insert(finding.notes.end(), call_->notes.begin(), call_->notes.end());
  add_hashes(*call_, inputs_, execution_pointers_, {gives(Side::kTarget), gives(Side::kAgainst)}, finding);
  add_words(execution_pointers_, finding);
  return {Verdict::Kind::kFinding, "", std::move(finding)};
}

std::vector<bool> PairCheck::gives(Side side) const {
  std::vector<bool> gives(call_->outputs.size());
  for (std::size_t o = 0; o < gives.size(); ++o) gives[o] = sides_[index_of(side)]->gives(o);
  return gives;
}

}  // namespace fusediff
