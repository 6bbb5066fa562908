#include "engine/relation.h"

#include <algorithm>

#include "base/bytes.h"
#include "engine/call_scene.h"
#include "engine/finding_of.h"
#include "engine/not_offered.h"
#include "oracle/fills.h"
#include "oracle/vacuous.h"

namespace fusediff {
namespace {

Verdict skip(std::string reason) { return {Verdict::Kind::kSkip, std::move(reason), {}}; }
Verdict vacuous(std::string reason) { return {Verdict::Kind::kVacuous, std::move(reason), {}}; }

bool any_row(const RowFlags& rows, bool value) {
  return std::any_of(rows.begin(), rows.end(), [&](const std::vector<bool>& flags) {
    return std::find(flags.begin(), flags.end(), value) != flags.end();
  });
}

Question even_question(const Prepared& prepared, const std::string& path) {
  Question question = whole_question(prepared, path);
  Way way = std::move(question.plain);
  way.column = "as it is";
  way.claim = "one value in every position of a row gives other bits in some positions";
  question.odd.push_back(std::move(way));
  question.plain = {};
  question.plain.column = "first position";
  return question;
}

}  // namespace

RelationCheck::RelationCheck(const Subject& subject)
    : subject_(subject),
      path_(subject.comparison.sides[0]),
      name_(name_of(subject.c.experiment.relation)),
      budget_(subject.options.seconds) {}

std::variant<RelationCheck::Asking, Verdict> RelationCheck::ask_of(const Case& c,
                                                                   std::shared_ptr<const Prepared> prepared) {
  Asking asking;
  if (c.experiment.relation != RelationKind::kSameValue) {
    Asked asked = ask(c, *prepared, path_.path, subject_.options.max_bytes);
    if (Verdict* verdict = std::get_if<Verdict>(&asked)) return std::move(*verdict);
    asking.question = std::get<Question>(std::move(asked));
    asking.prepared = std::move(prepared);
    return asking;
  }
  const std::optional<Case> even = with_even_rows(c, *prepared, EvenValue::kFirst);
  if (!even) return vacuous("no float input has a row of two or more");
  std::variant<Prepared, Unprepared> made =
      prepare(*even, *prepared->call.op, subject_.comparison, subject_.options, subject_.runner, subject_.draws);
  if (const Unprepared* failed = std::get_if<Unprepared>(&made))
    return skip("with one value in every position of a row: " + failed->error.what);
  asking.prepared = std::make_shared<const Prepared>(std::get<Prepared>(std::move(made)));
  asking.question = even_question(*asking.prepared, path_.path);
  asking.even = true;
  asking.alike = alike_positions(*asking.prepared);
  if (std::find(asking.alike.begin(), asking.alike.end(), true) == asking.alike.end())
    return vacuous("no output has a row of two or more whose positions no input tells apart");
  return asking;
}

// An odd way and the plain one have different fills, and memory of their own.
RelationCheck::Seen RelationCheck::run_way(const Way& way, std::size_t which, bool pinned) {
  Seen seen;
  std::vector<std::vector<Bytes>> outputs;
  const Fills fills = which == kOdd ? kFirstFills : kSecondFills;
  for (const PathCall& call : way.calls) {
    const SideRun side(path_, call.call, which == kOdd ? Bank::kFirst : Bank::kSecond, /*keep_context=*/false);
    Execution& execution = seen.calls.emplace_back();
    side.run(subject_.runner, {call.inputs->begin(), call.inputs->end()}, {fills, {}, pinned || call.pinned},
             execution);
    budget_.count(execution);
    if (execution.ending != Ending::kOk) {
      seen.together = execution;
      seen.together.outputs.clear();
      return seen;
    }
    outputs.push_back(execution.outputs);
  }
  seen.together.fills = fills;
  seen.together.outputs = way.compose ? way.compose(outputs) : std::move(outputs.at(0));
  return seen;
}

RelationCheck::Seen RelationCheck::run_plain(const Seen& odd, bool pinned) {
  if (!asking_.even) return run_way(asking_.question.plain, kPlain, pinned);
  Seen seen;
  seen.together = odd.together;
  if (odd.ok()) seen.together.outputs = levelled(asking_.question.judged, odd.together.outputs, asking_.blind);
  return seen;
}

std::optional<Verdict> RelationCheck::nothing_to_judge(const Seen& seen) const {
  for (const Execution& execution : seen.calls) {
    if (std::optional<Verdict> closed = will_not_open(path_, execution)) return closed;
    if (std::optional<Verdict> skipped = unsupported(path_, execution)) return skipped;
  }
  return std::nullopt;
}

std::optional<Verdict> RelationCheck::first_look() {
  if (std::optional<Verdict> missing = not_in_record(path_, subject_.c.op)) return missing;
  if (!subject_.prepared.call.broken.empty()) return skip("a relation is asked of legal calls only");
  const std::shared_ptr<const Prepared> own(std::shared_ptr<void>(), &subject_.prepared);
  std::variant<Asking, Verdict> asked = ask_of(subject_.c, own);
  if (Verdict* verdict = std::get_if<Verdict>(&asked)) return std::move(*verdict);
  asking_ = std::get<Asking>(std::move(asked));
  std::optional<Verdict> verdict = look();
  show_executions();
  return verdict;
}

// Every odd way against the plain one, until something shows: then nothing.
std::optional<Verdict> RelationCheck::look() {
  if (!asking_.even) {
    seen_[kPlain] = run_plain({}, false);
    if (std::optional<Verdict> early = nothing_to_judge(seen_[kPlain])) return early;
  }
  std::optional<Verdict> found;
  const std::size_t ways = asking_.question.odd.size();
  for (odd_ = 0; odd_ < ways && (odd_ == 0 || budget_.left()); ++odd_) {
    std::optional<Verdict> verdict = look_at_odd();
    if (!verdict) return std::nullopt;
    if (!found || found->kind == Verdict::Kind::kPass) found = std::move(verdict);
  }
  if (found && found->kind != Verdict::Kind::kPass) return found;
  const std::string little = judge_vacuous(asking_.question.judged, seen_[kPlain].together);
  return little.empty() ? Verdict{} : vacuous(little);
}

std::optional<Verdict> RelationCheck::look_at_odd() {
  seen_[kOdd] = run_way(asking_.question.odd[odd_], kOdd, false);
  if (std::optional<Verdict> early = nothing_to_judge(seen_[kOdd])) return early;
  if (asking_.even) {
    if (seen_[kOdd].ok()) {
      if (std::optional<Verdict> early = find_blind_rows()) return early;
    }
    seen_[kPlain] = run_plain(seen_[kOdd], false);
  }
  first_ = {};
  judge_calls(kOdd, first_);
  judge_calls(kPlain, first_);
  const bool same = same_bits();
  if (!same && seen_[kOdd].ok() && seen_[kPlain].ok()) {
    Judgement differing = difference(nullptr);
    for (Evidence& evidence : differing.evidence) first_.evidence.push_back(std::move(evidence));
    first_.differences = std::move(differing.differences);
    first_.flips = std::move(differing.flips);
  }
  if (!first_.evidence.empty()) return std::nullopt;
  if (!same && fill_shows()) return std::nullopt;
  return Verdict{};
}

// Where the positions of the outputs are even in f64, or in the against side's path where there is no truth.
std::optional<RowFlags> RelationCheck::even_in_truth(const Prepared& prepared) {
  RowFlags rows;
  const Truth truth = compute_truth(prepared, subject_.comparison, subject_.options, subject_.runner);
  if (!truth.path.empty()) {
    rows = even_rows(prepared.call, truth);
  } else {
    const std::vector<Bytes> other = other_path(prepared);
    if (other.empty()) return std::nullopt;
    rows = even_rows(prepared.call, other);
  }
  for (std::size_t o = 0; o < rows.size(); ++o) {
    if (!asking_.alike[o]) rows[o].clear();
  }
  return rows;
}

// The truth is only asked for where the path's own outputs are uneven: an even row breaks nothing. It may be even by
// chance (a product with 0, an overflow), so it must be on ordinary values too.
std::optional<Verdict> RelationCheck::find_blind_rows() {
  const Call& call = asking_.question.judged;
  asking_.blind = RowFlags(call.outputs.size());
  RowFlags own = even_rows(call, seen_[kOdd].together.outputs);
  for (std::size_t o = 0; o < own.size(); ++o) {
    if (!asking_.alike[o]) own[o].clear();
  }
  if (!any_row(own, false)) return std::nullopt;
  std::optional<Case> ordinary = with_even_rows(subject_.c, subject_.prepared, EvenValue::kOrdinary);
  ordinary->unwanted.clear();
  std::variant<Prepared, Unprepared> made = prepare(*ordinary, *subject_.prepared.call.op, subject_.comparison,
                                                    subject_.options, subject_.runner, subject_.draws);
  const Prepared* prepared = std::get_if<Prepared>(&made);
  const std::optional<RowFlags> here = even_in_truth(*asking_.prepared);
  const std::optional<RowFlags> anywhere = prepared == nullptr ? std::nullopt : even_in_truth(*prepared);
  if (!here || !anywhere) return skip("no truth says which rows are the same in every position");
  asking_.blind = *here;
  for (std::size_t o = 0; o < asking_.blind.size(); ++o) {
    for (std::size_t row = 0; row < asking_.blind[o].size(); ++row)
      asking_.blind[o][row] = asking_.blind[o][row] && row < (*anywhere)[o].size() && (*anywhere)[o][row];
  }
  if (!any_row(asking_.blind, true)) return vacuous("position matters to every row of the outputs");
  return std::nullopt;
}

bool RelationCheck::same_bits() const {
  if (!seen_[kOdd].ok() || !seen_[kPlain].ok()) return false;
  for (std::size_t o = 0; o < asking_.question.compared.size(); ++o) {
    if (asking_.question.compared[o] &&
        !same_bytes(seen_[kOdd].together.outputs[o], seen_[kPlain].together.outputs[o])) {
      return false;
    }
  }
  return true;
}

// Outputs that differ only in what passes: an element may still be one that nobody wrote.
bool RelationCheck::fill_shows() {
  for (const std::size_t which : {std::size_t{kOdd}, std::size_t{kPlain}}) {
    const Way& way = which == kOdd ? asking_.question.odd[odd_] : asking_.question.plain;
    for (std::size_t i = 0; i < seen_[which].calls.size(); ++i) {
      if (!shows_fill(way.calls[i].call, seen_[which].calls[i])) continue;
      const CallScene scene(subject_.runner, path_, way.calls[i].call,
                            {way.calls[i].inputs->begin(), way.calls[i].inputs->end()}, seen_[which].calls[i],
                            which == kOdd ? Bank::kFirst : Bank::kSecond, budget_);
      if (fill_comes_back(scene.scene(), Side::kTarget)) return true;
    }
  }
  return false;
}

// What was compared last, for whoever captures it and for feedback; nothing where it has not the shapes of the case.
void RelationCheck::show_executions() {
  compared_.clear();
  const bool fits = asking_.question.is_case && seen_[kOdd].ok() && seen_[kPlain].ok();
  for (const Side side : kSides) {
    Execution& execution = subject_.executions[index_of(side)];
    execution = {};
    execution.ending = Ending::kUnsupported;  // nothing to be captured
    if (fits) execution = seen_[index_of(side)].together;
  }
  if (fits) compared_ = asking_.question.compared;
}

}  // namespace fusediff
