// What a relation that does not hold is: damage or rounding of a way, chance, or something that a call did alone.
#include <algorithm>
#include <cmath>

#include "engine/adapt.h"
#include "engine/call_scene.h"
#include "engine/finding_of.h"
#include "engine/not_offered.h"
#include "engine/relation.h"

namespace fusediff {
namespace {

std::vector<std::span<const std::byte>> views(const Inputs& inputs) { return {inputs->begin(), inputs->end()}; }

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// Of two runs, element by element, what is nearer to the truth.
Bytes nearer(DType dtype, const Bytes& a, const Bytes& b, const std::vector<double>& truth) {
  Bytes best = a;
  const std::size_t size = size_of(dtype);
  const auto error = [&](const Bytes& bytes, std::size_t i) {
    return std::abs(float_value(dtype, load_bits(dtype, bytes.data() + i * size)) - truth[i]);
  };
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (error(b, i) < error(a, i)) std::copy_n(b.data() + i * size, size, best.data() + i * size);
  }
  return best;
}

}  // namespace

std::string RelationCheck::suspicion() const {
  const Question& question = asking_.question;
  if (first_.evidence.empty()) return subject_.c.op + " shows its fill in " + name_;
  return suspicion_of(subject_.c, question.judged, with_itself(subject_.comparison, Side::kTarget), first_);
}

void RelationCheck::judge_calls(std::size_t which, Judgement& judgement) {
  const Way& way = which == kOdd ? asking_.question.odd[odd_] : asking_.question.plain;
  for (std::size_t i = 0; i < seen_[which].calls.size(); ++i) {
    const PathCall& call = way.calls[i];
    const Execution& execution = seen_[which].calls[i];
    judge_memory_and_ending(call.call, execution, kSides[which], /*outside=*/false, judgement);
    if (execution.ending == Ending::kOk)
      judge_own_outputs(call.call, views(call.inputs), execution, kSides[which], judgement);
  }
}

void RelationCheck::rerun_calls(std::size_t which, Judgement& judgement) {
  const Way& way = which == kOdd ? asking_.question.odd[odd_] : asking_.question.plain;
  for (std::size_t i = 0; i < seen_[which].calls.size(); ++i) {
    const PathCall& call = way.calls[i];
    const Execution& execution = seen_[which].calls[i];
    const CallScene scene(subject_.runner, path_, call.call, views(call.inputs), execution,
                          which == kOdd ? Bank::kFirst : Bank::kSecond, budget_);
    rerun_in_the_middle(scene.scene(), kSides[which], judgement);
    if (execution.ending == Ending::kOk) rerun_with_other_fills(scene.scene(), kSides[which], judgement);
  }
}

bool RelationCheck::rerun_ways(Judgement& judgement, std::array<Rate, 2>& rates) {
  const bool deterministic = subject_.prepared.call.op->is_deterministic(path_.path);
  const Way& odd = asking_.question.odd[odd_];
  const auto run = [&](Side side, bool pinned) {
    if (side == kSides[kOdd]) return run_way(odd, kOdd, pinned).together;
    return run_plain(asking_.even ? run_way(odd, kOdd, pinned) : Seen{}, pinned).together;
  };
  Again again{asking_.question.judged,
              {&seen_[kOdd].together, &seen_[kPlain].together},
              {deterministic, deterministic},
              {path_.path, path_.path},
              run,
              budget_};
  again.pin_half = subject_.c.experiment.relation != RelationKind::kOneCpu;
  return rerun_alike(again, asking_.question.compared, judgement, rates);
}

// What the against side gives for the judged call: what both ways are measured by where there is no bound.
std::vector<Bytes> RelationCheck::other_path(const Prepared& prepared) {
  const PathOf& against = subject_.comparison.sides[1];
  if (not_in_record(against, subject_.c.op)) return {};
  Result<Adapted> adapted = adapt(prepared.call, *against.target->schema.find(subject_.c.op), /*outside=*/false);
  if (!adapted.ok()) return {};
  const std::vector<int> from = adapted->output_from;
  const SideRun side(against, *std::move(adapted), Bank::kSecond, /*keep_context=*/false);
  Execution execution;
  side.run(subject_.runner, prepared.views(), {kSecondFills, {}, false}, execution);
  budget_.count(execution);
  if (execution.ending != Ending::kOk) return {};
  if (std::find(from.begin(), from.end(), -1) != from.end()) return {};
  const Compose& compose = asking_.question.plain.compose;
  return compose ? compose(std::array{execution.outputs}) : execution.outputs;
}

Truth RelationCheck::truth() {
  Truth truth = compute_truth(*asking_.prepared, subject_.comparison, subject_.options, subject_.runner);
  if (asking_.question.truth_of) truth = asking_.question.truth_of(std::move(truth));
  const std::vector<Bytes> other = other_path(*asking_.prepared);
  for (std::size_t o = 0; o < truth.outputs.size(); ++o) {
    const Tensor& tensor = asking_.question.judged.outputs[o];
    OutputTruth& of = truth.outputs[o];
    const Bytes &odd = seen_[kOdd].together.outputs[o], &plain = seen_[kPlain].together.outputs[o];
    if (of.value.empty() || !is_float(tensor.dtype) || odd.empty()) continue;
    of.reference = other.empty() ? nearer(tensor.dtype, odd, plain, of.value) : other[o];
  }
  return truth;
}

// How the outputs of the two ways differ, said as a broken relation.
Judgement RelationCheck::difference(const Truth* truth) const {
  const Question& question = asking_.question;
  Judgement judgement;
  judge_outputs(question.judged, views(question.inputs), seen_[kOdd].together, seen_[kPlain].together,
                question.compared, truth, judgement);
  for (Evidence& evidence : judgement.evidence) {
    evidence.oracle = name_of(ExperimentKind::kRelation);
    evidence.relation = name_;
    evidence.what = question.odd[odd_].claim + ": " + evidence.what;
    for (const Difference& d : judgement.differences) {
      if (!asking_.even || d.output != evidence.tensor) continue;
      for (std::size_t o = 0; o < question.judged.outputs.size(); ++o) {
        const Tensor& tensor = question.judged.outputs[o];
        if (tensor.name == d.output)
          evidence.what += "; " + runs_of_row(tensor, seen_[kOdd].together.outputs[o], d.first);
      }
    }
  }
  return judgement;
}

// A stage can be blamed only when it is looked at. The finding must stand with every output asked for, else it keeps
// the case's own.
void RelationCheck::ask_for_every_output() {
  if (subject_.c.unwanted.empty() || !seen_[kOdd].ok() || !seen_[kPlain].ok()) return;
  const Judgement first = first_;
  const std::size_t odd = odd_;
  const std::array<Seen, 2> seen = seen_;
  const Asking asking = asking_;
  Case fuller = subject_.c;
  fuller.unwanted.clear();
  std::variant<Prepared, Unprepared> made = prepare(fuller, *subject_.prepared.call.op, subject_.comparison,
                                                    subject_.options, subject_.runner, subject_.draws);
  if (Prepared* prepared = std::get_if<Prepared>(&made)) {
    std::variant<Asking, Verdict> asked = ask_of(fuller, std::make_shared<const Prepared>(std::move(*prepared)));
    if (Asking* more = std::get_if<Asking>(&asked)) {
      asking_ = std::move(*more);
      first_ = {};
      const bool shows = !look() && seen_[kOdd].ok() && seen_[kPlain].ok();
      const auto still = [&](const Evidence& evidence) {
        return std::any_of(first_.evidence.begin(), first_.evidence.end(),
                           [&](const Evidence& other) { return other.tensor == evidence.tensor; });
      };
      if (shows && std::all_of(first.evidence.begin(), first.evidence.end(), still)) return;
    }
  }
  notes_.push_back("shows only while " + subject_.c.unwanted.front() +
                   (subject_.c.unwanted.size() > 1 ? " and others are" : " is") + " not asked for");
  asking_ = asking;
  first_ = first;
  odd_ = odd;
  seen_ = seen;
}

// Do the outputs of another odd way differ from the plain one's?
bool RelationCheck::differs(const Way& way) {
  const Seen seen = run_way(way, kOdd, false);
  if (!seen.ok()) return false;
  Judgement judgement;
  judge_outputs(asking_.question.judged, views(asking_.question.inputs), seen.together, seen_[kPlain].together,
                asking_.question.compared, nullptr, judgement);
  return !judgement.evidence.empty();
}

void RelationCheck::note_where_it_moves() {
  std::vector<std::string> same, other;
  for (std::size_t w = 0; w < asking_.question.odd.size() && budget_.left(); ++w) {
    const Way& way = asking_.question.odd[w];
    if (w == odd_) continue;
    (differs(way) ? other : same).push_back(way.at);
  }
  notes_.push_back("differs at offset " + asking_.question.odd[odd_].at + " bytes modulo 64 of all tensors" +
                   (other.empty() ? "" : ", and at " + list(other)) + (same.empty() ? "" : "; not at " + list(same)));
}

void RelationCheck::note_single_tensors() {
  const Way& odd = asking_.question.odd[odd_];
  if (!odd.singles) return;
  std::vector<std::string> enough;
  bool all = true;
  for (const Way& single : odd.singles()) {
    all = all && budget_.left();
    if (all && differs(single)) enough.push_back(single.column);
  }
  const bool moved = subject_.c.experiment.relation == RelationKind::kMoved;
  const std::string what = moved ? "moving " : "the layout of ";
  if (enough.size() == 1) notes_.push_back(what + enough[0] + " alone makes the difference");
  if (enough.size() > 1) notes_.push_back(what + "any one of " + list(enough) + " alone makes the difference");
  if (enough.empty() && all) notes_.push_back(what + "no single tensor alone makes the difference");
}

Verdict RelationCheck::explain() {
  ask_for_every_output();
  const bool differing = !first_.differences.empty() || !first_.flips.empty();
  const bool both = seen_[kOdd].ok() && seen_[kPlain].ok();
  Judgement broken;
  std::string truth_path;
  if (both && differing) {
    const Truth known = truth();
    truth_path = known.path;
    broken = difference(&known);
  }
  Judgement judgement;
  std::array<Rate, 2> rates;
  for (const std::size_t which : {std::size_t{kOdd}, std::size_t{kPlain}}) {
    judge_calls(which, judgement);
    rerun_calls(which, judgement);
  }
  bool came_back = true;
  if (may_run_again(seen_[kOdd].together.ending) && may_run_again(seen_[kPlain].together.ending))
    came_back = rerun_ways(judgement, rates);
  const bool steady = rates[0].differing == 0 && rates[1].differing == 0;
  if (steady && came_back) {
    for (Evidence& evidence : broken.evidence) judgement.evidence.push_back(std::move(evidence));
    judgement.differences = std::move(broken.differences);
    judgement.flips = std::move(broken.flips);
    if (!truth_path.empty()) notes_.push_back("truth: " + truth_path + " in f64");
    if (both && differing && subject_.c.experiment.relation == RelationKind::kMoved) note_where_it_moves();
    if (both && differing) note_single_tensors();
  }
  rank_evidence(asking_.question.judged, judgement);
  if (judgement.evidence.empty()) return Verdict{};  // what looked like a fill was a value, or chance that is allowed
  show_executions();
  return {Verdict::Kind::kFinding, "", finding(judgement, rates)};
}

Finding RelationCheck::finding(const Judgement& judgement, const std::array<Rate, 2>& rates) {
  const Question& question = asking_.question;
  Finding finding = finding_of(subject_.c, question.judged, with_itself(subject_.comparison, Side::kTarget), judgement);
  finding.columns[kOdd] = question.odd[odd_].column;
  finding.columns[kPlain] = question.plain.column;
  finding.rates = rates;
  finding.notes = notes_;
  finding.notes.insert(finding.notes.end(), question.judged.notes.begin(), question.judged.notes.end());
  add_hashes(question.judged, views(question.inputs), {&seen_[kOdd].together, &seen_[kPlain].together},
             {question.compared, question.compared}, finding);
  add_words({&seen_[kOdd].together, &seen_[kPlain].together}, finding);
  return finding;
}

}  // namespace fusediff
