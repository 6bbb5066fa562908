#include "engine/gradient.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "engine/finding_of.h"
#include "engine/not_offered.h"
#include "model/number_text.h"
#include "oracle/fills.h"
#include "oracle/vacuous.h"

namespace fusediff {
namespace {

constexpr std::size_t kMostSweeps = 5;

Verdict skip(std::string reason) { return {Verdict::Kind::kSkip, std::move(reason), {}}; }
Verdict vacuous(std::string reason) { return {Verdict::Kind::kVacuous, std::move(reason), {}}; }

std::string place_of(const GradientSweep& s) {
  return s.index < 0 ? s.output + " along a direction" : s.output + " index " + std::to_string(s.index);
}

std::string quotient_text(const GradientSweep& s) {
  return short_decimal(s.quotient) + " (known to " + short_decimal(s.quotient_error) + ")";
}

std::string sign_text(double gradient, const GradientSweep& s) {
  return gradient * s.quotient < 0 && std::abs(s.quotient) > s.quotient_error ? ", of opposite sign" : "";
}

std::string sentence(const Contradiction& c, const GradientSearch& search, int count) {
  const GradientSweep& s = c.facts;
  const double gradient = c.side ? s.path[index_of(*c.side)].value_or(0) : s.truth.value_or(0);
  std::string text = place_of(s) + ": " + short_decimal(gradient);
  if (!c.side) text += " in f64 (" + search.truth() + ")";
  text += " is not the derivative of " + search.forward() + ", " + quotient_text(s) + sign_text(gradient, s);
  if (c.side && s.truth) text += "; the backward in f64 (" + search.truth() + ") gives " + short_decimal(*s.truth);
  if (count > 1) text += "; so are " + std::to_string(count) + " of what was looked at";
  return text;
}

}  // namespace

GradientCheck::GradientCheck(const Subject& subject)
    : subject_(subject),
      call_(subject.prepared.call),
      inputs_(subject.prepared.views()),
      budget_(subject.options.seconds) {}

// Nothing is run where there is nothing to ask.
std::optional<Verdict> GradientCheck::not_asked() const {
  const Operator& op = *call_.op;
  if (!op.gradient) {
    return skip("the record of " + op.name +
                " has no `gradient`: add it to ask whether a backward is the derivative of its forward");
  }
  if (!call_.broken.empty()) return skip("the call breaks " + call_.broken + ": there is no derivative to ask for");
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const bool stated = op.inputs[i].saved && call_.inputs[i].present && !subject_.prepared.computed[i];
    if (stated) {
      return vacuous("the case states the saved tensor " + op.inputs[i].name +
                     ": what the backward gets need not come from this point");
    }
  }
  return std::nullopt;
}

std::optional<Verdict> GradientCheck::set_up() {
  const bool overlaps =
      std::any_of(call_.outputs.begin(), call_.outputs.end(), [](const Tensor& output) { return output.on >= 0; });
  for (const Side side : kSides) {
    const std::size_t s = index_of(side);
    const PathOf& path = subject_.comparison.sides[s];
    if (std::optional<Verdict> missing = not_in_record(path, subject_.c.op)) return missing;
    const Operator* op = path.target->schema.find(subject_.c.op);
    const Bank bank = side == Side::kTarget ? Bank::kFirst : Bank::kSecond;
    if (side == Side::kTarget || (op == call_.op && !overlaps)) {
      sides_[s] = std::make_unique<SideRun>(path, call_, bank, subject_.options.keep_context);
    } else {
      Result<Adapted> adapted = adapt(call_, *op, false);
      if (!adapted.ok()) return skip(name_of_side(path) + ": " + adapted.error().what);
      sides_[s] = std::make_unique<SideRun>(path, *std::move(adapted), bank, subject_.options.keep_context);
    }
    side_pointers_[s] = sides_[s].get();
    executions_[s] = &subject_.executions[s];
    for (std::size_t o = 0; o < call_.outputs.size(); ++o)
      given_[s].push_back(call_.outputs[o].present && sides_[s]->gives(o));
  }
  for (std::size_t o = 0; o < call_.outputs.size(); ++o) compared_.push_back(given_[0][o] && given_[1][o]);
  return std::nullopt;
}

bool GradientCheck::both_ok() const {
  return executions_[0]->ending == Ending::kOk && executions_[1]->ending == Ending::kOk;
}

void GradientCheck::judge_sides(Judgement& judgement) const {
  for (const Side side : kSides) {
    const Execution& execution = *executions_[index_of(side)];
    judge_memory_and_ending(sides_[index_of(side)]->call(), execution, side, false, judgement);
    if (execution.ending == Ending::kOk) judge_own_outputs(call_, inputs_, execution, side, judgement);
  }
}

Scene GradientCheck::scene() { return {subject_.runner, call_, inputs_, side_pointers_, executions_, fills_, budget_}; }

std::optional<Verdict> GradientCheck::first_look() {
  if (std::optional<Verdict> early = not_asked()) return early;
  if (std::optional<Verdict> early = set_up()) return early;
  for (const Side side : kSides) {
    const std::size_t s = index_of(side);
    sides_[s]->run(subject_.runner, inputs_, {fills_[s], {}, false}, subject_.executions[s]);
    budget_.count(*executions_[s]);
    if (std::optional<Verdict> closed = will_not_open(subject_.comparison.sides[s], *executions_[s])) return closed;
  }
  judge_sides(first_);
  if (!first_.evidence.empty()) return std::nullopt;
  for (const Side side : kSides) {
    const std::size_t s = index_of(side);
    if (std::optional<Verdict> skipped = unsupported(subject_.comparison.sides[s], *executions_[s])) return skipped;
  }
  for (const Side side : kSides) {
    if (shows_fill(call_, *executions_[index_of(side)]) && fill_comes_back(scene(), side)) return std::nullopt;
  }
  GradientSearch search(subject_, executions_, given_, budget_);
  if (std::optional<Verdict> nothing = search.set_up()) return nothing;
  search.search(false);
  add_evidence(search, first_);
  if (!first_.evidence.empty()) return std::nullopt;
  const GradientTally& tally = search.tally();
  if (tally.judged == tally.zeros) return vacuous(why_nothing_was_judged(tally));
  const std::string why = judge_vacuous(call_, *executions_[1]);
  return why.empty() ? Verdict{} : vacuous(why);
}

std::string GradientCheck::suspicion() const {
  if (first_.evidence.empty()) return subject_.c.op + " shows its fill";
  return suspicion_of(subject_.c, call_, subject_.comparison, first_);
}

// The one side that is wrong; nothing where both are, or neither is what the truth is made of.
std::optional<Side> GradientCheck::accused_of(const GradientSearch& search, std::size_t output) const {
  std::set<Side> wrong;
  for (const Contradiction& c : search.contradictions()) {
    if (c.output == output && c.side) wrong.insert(*c.side);
  }
  for (const Side side : kSides) {
    const PathOf& path = subject_.comparison.sides[index_of(side)];
    if (path.target == search.truth_path().target && path.path == search.truth_path().path) wrong.insert(side);
  }
  return wrong.size() == 1 ? std::optional(*wrong.begin()) : std::nullopt;
}

// One piece of evidence an output and a side, by what is furthest off.
void GradientCheck::add_evidence(const GradientSearch& search, Judgement& judgement) const {
  std::set<std::pair<std::size_t, std::optional<Side>>> told;
  for (const Contradiction& c : search.contradictions()) {
    const bool truth_told = std::any_of(search.contradictions().begin(), search.contradictions().end(),
                                        [&](const Contradiction& o) { return o.output == c.output && !o.side; });
    if ((truth_told && c.side) || !told.emplace(c.output, c.side).second) continue;
    const auto count = std::count_if(search.contradictions().begin(), search.contradictions().end(),
                                     [&](const Contradiction& o) { return o.output == c.output && o.side == c.side; });
    judgement.evidence.push_back({FindingClass::kGradient, "gradient", call_.outputs[c.output].name,
                                  call_.op->outputs[c.output].stage, c.side ? c.side : accused_of(search, c.output),
                                  sentence(c, search, static_cast<int>(count))});
  }
}

// The elements that are furthest off, a few, each swept through the target's own forward in the case's dtypes.
std::vector<GradientSweep> GradientCheck::sweeps_of(const GradientSearch& search, std::vector<std::string>& notes) {
  std::vector<GradientSweep> sweeps;
  std::set<std::pair<std::string, std::int64_t>> told;
  for (const bool elements : {true, false}) {
    for (const Contradiction& c : search.contradictions()) {
      if (sweeps.size() == kMostSweeps || (c.facts.index >= 0) != elements) continue;
      if (told.emplace(c.facts.output, c.facts.index).second) sweeps.push_back(c.facts);
    }
  }
  const PathOf& path = subject_.comparison.sides[0];
  const BackwardPoint point = point_of(subject_.prepared);
  Result<GradientForward> own = GradientForward::make(path, point, subject_.options.max_bytes);
  if (!own.ok()) {
    notes.push_back("no sweep through " + name_of_side(path) + " of " + call_.op->gradient->of + ": " +
                    own.error().what);
    return sweeps;
  }
  GradientProber prober(*own, subject_.runner, budget_);
  if (!prober.start()) {
    notes.push_back("no sweep through " + name_of_side(path) + " of " + call_.op->gradient->of + ": " + prober.why());
    return sweeps;
  }
  for (GradientSweep& s : sweeps) {
    if (s.index >= 0 && budget_.left()) s.own = prober.sweep(own->variable_of(s.output), s.index);
  }
  return sweeps;
}

Verdict GradientCheck::explain() {
  Judgement judgement;
  std::array<Rate, 2> rates;
  std::vector<GradientSweep> sweeps;
  std::vector<std::string> notes;
  judge_sides(judgement);
  for (const Side side : kSides) {
    rerun_in_the_middle(scene(), side, judgement);
    if (executions_[index_of(side)]->ending == Ending::kOk) rerun_with_other_fills(scene(), side, judgement);
  }
  const bool again = may_run_again(executions_[0]->ending) && may_run_again(executions_[1]->ending);
  if (again) rerun_alike(scene(), compared_, judgement, rates);
  if (both_ok()) {
    // Everything anew, from the f64 backward on: what does not come back is not told.
    GradientSearch search(subject_, executions_, given_, budget_);
    if (!search.set_up()) {
      search.search(true);
      add_evidence(search, judgement);
      if (!search.truth().empty()) notes.push_back("truth: " + search.truth() + " in f64");
      notes.push_back("derivative: central differences of " + search.forward() + " in f64");
      if (!search.contradictions().empty()) sweeps = sweeps_of(search, notes);
    }
  }
  rank_evidence(call_, judgement);
  if (judgement.evidence.empty()) {
    if (first_.evidence.empty()) return Verdict{};  // what looked like a fill was a value
    return vacuous("a contradiction did not come back when everything was computed anew");
  }
  Finding finding = finding_of(subject_.c, call_, subject_.comparison, judgement);
  finding.rates = rates;
  finding.sweeps = std::move(sweeps);
  finding.notes = std::move(notes);
  finding.notes.insert(finding.notes.end(), call_.notes.begin(), call_.notes.end());
  add_hashes(call_, inputs_, executions_, given_, finding);
  add_words(executions_, finding);
  return {Verdict::Kind::kFinding, "", std::move(finding)};
}

}  // namespace fusediff
