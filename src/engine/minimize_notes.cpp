#include "engine/minimize_notes.h"

#include <algorithm>
#include <map>
#include <set>
#include <variant>

#include "engine/resized.h"
#include "engine/simpler_experiment.h"
#include "model/number_text.h"

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

constexpr std::int64_t kFarthest = 4096;  // from a dim's size, within the range that is tried

struct Notes {
  std::vector<std::string> notes;
  std::vector<std::string> idle;  // what does not matter
};

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

// How another value came out, as far as it says anything.
enum class Seen { kPasses, kSame, kNothing };
Seen seen_of(const Asked& asked, const Case& c, bool and_vacuous = true) {
  const std::optional<Verdict> verdict = asked.check(c);
  if (!verdict) return Seen::kNothing;
  if (verdict->finding) return signature_of(*verdict->finding) == asked.signature ? Seen::kSame : Seen::kNothing;
  const bool passed =
      verdict->kind == Verdict::Kind::kPass || (and_vacuous && verdict->kind == Verdict::Kind::kVacuous);
  return passed ? Seen::kPasses : Seen::kNothing;
}

// The nearest size towards `direction` that passes: farther and farther until one does, then back to where it begins.
// same: takes the sizes that show the same finding.
std::optional<std::int64_t> nearest_passing(const Case& c, const DimRule& dim, std::int64_t size, int direction,
                                            const Asked& asked, std::set<std::int64_t>& same) {
  const std::int64_t most = std::min(direction < 0 ? size : std::max(dim.high, size + 1) - size, kFarthest);
  const auto look = [&](std::int64_t distance) {
    const std::int64_t other = size + direction * distance;
    // That nothing shows in nothing is no news.
    const Seen seen = seen_of(asked, at_size(c, asked, dim.name, other), /*and_vacuous=*/other != 0);
    if (seen == Seen::kSame) same.insert(other);
    return seen == Seen::kPasses;
  };
  std::int64_t fails = 0;
  for (std::int64_t distance = 1; distance <= most;
       distance = distance == most ? most + 1 : std::min(2 * distance, most)) {
    if (!look(distance)) {
      fails = distance;
      continue;
    }
    std::int64_t passes = distance;
    while (passes - fails > 1) {
      const std::int64_t middle = fails + (passes - fails) / 2;
      (look(middle) ? passes : fails) = middle;
    }
    return size + direction * passes;
  }
  return std::nullopt;
}

void look_at_sizes(const Case& smallest, const DimRule& dim, const Asked& asked, Notes& found) {
  const auto at = smallest.dims.find(dim.name);
  const std::int64_t size = at == smallest.dims.end() ? 0 : at->second;
  std::set<std::int64_t> same;
  bool any_passes = false;
  for (const int direction : {-1, 1}) {
    const std::optional<std::int64_t> other = nearest_passing(smallest, dim, size, direction, asked, same);
    if (!other) continue;
    any_passes = true;
    found.notes.push_back("passes with " + dim.name + " = " + std::to_string(*other) + ", fails with " + dim.name +
                          " = " + std::to_string(size));
  }
  if (any_passes || same.empty()) return;
  const std::string sizes = same.size() == 1
                                ? "with " + std::to_string(*same.begin())
                                : "at " + std::to_string(same.size()) + " sizes from " + std::to_string(*same.begin()) +
                                      " to " + std::to_string(*same.rbegin());
  found.idle.push_back("the size of " + dim.name + " (the same " + sizes + ")");
}

// Of several dims that are 0, any one is enough to empty a tensor: by itself none seems to matter.
void look_at_zeros(const Case& smallest, const Asked& asked, Notes& found) {
  std::vector<std::string> names, at_one;
  std::map<std::string, std::int64_t> sizes;
  for (const auto& [name, size] : smallest.dims) {
    if (size != 0) continue;
    names.push_back(name);
    at_one.push_back(name + " = 1");
    sizes[name] = 1;
  }
  if (names.size() < 2) return;
  Case other = resized(smallest, asked.op, sizes, asked.max_bytes);
  other.experiment.calls = follow(smallest.experiment.calls, smallest, other, asked.op, asked.max_bytes);
  if (seen_of(asked, other) != Seen::kPasses) return;
  found.notes.push_back("passes with " + joined(at_one, ", ") + ", fails where one of " + joined(names, ", ") +
                        " is 0");
  std::erase_if(found.idle, [&](const std::string& idle) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return idle.starts_with("the size of " + name + " ("); });
  });
}

std::string words(const AttrRule& rule, const AttrValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* real = std::get_if<double>(&value)) return short_decimal(*real);
  const std::int64_t whole = std::get<std::int64_t>(value);
  return rule.kind == AttrKind::kBool ? (whole != 0 ? "true" : "false") : std::to_string(whole);
}

// A few values that such an attribute may have.
std::vector<AttrValue> values_of(const AttrRule& rule) {
  std::vector<AttrValue> values = rule.also;
  if (rule.standard) values.push_back(*rule.standard);
  switch (rule.kind) {
    case AttrKind::kBool:
      values.insert(values.end(), {std::int64_t{0}, std::int64_t{1}});
      break;
    case AttrKind::kInt:
      values.insert(values.end(), {rule.int_low, rule.int_high});
      break;
    case AttrKind::kFloat:
      values.insert(values.end(), {rule.float_low, rule.float_high});
      break;
    case AttrKind::kChoice:
      values.insert(values.end(), rule.choices.begin(), rule.choices.end());
      break;
  }
  return values;
}

void look_at_attribute(const Case& original, const Case& smallest, const AttrRule& rule, const Asked& asked,
                       Notes& found) {
  if (rule.derived) return;
  const auto at = smallest.attrs.find(rule.name);
  const std::optional<AttrValue> own = at == smallest.attrs.end() ? rule.standard : at->second;
  if (!own) return;
  bool same = false, passes = false;
  std::set<std::string> tried = {words(rule, *own)};
  for (const AttrValue& value : values_of(rule)) {
    if (passes || !tried.insert(words(rule, value)).second) continue;
    Case other = smallest;
    other.attrs[rule.name] = value;
    const Seen seen = seen_of(asked, other);
    same |= seen == Seen::kSame;
    passes = seen == Seen::kPasses;
    if (passes)
      found.notes.push_back("passes with " + rule.name + " = " + words(rule, value) + ", fails with " + rule.name +
                            " = " + words(rule, *own));
  }
  const bool dropped = original.attrs.contains(rule.name) && at == smallest.attrs.end();
  if (!passes && (same || dropped)) found.idle.push_back("attribute " + rule.name);
}

bool is_all_zero(const InputValue& value) {
  const Literal& constant = value.fill.constant;
  return value.fill.kind == FillKind::kConstant && value.patches.empty() && value.set.empty() && constant.real == 0 &&
         constant.integer == 0 && constant.bits == 0;
}

// What the original had of its tensors and the smallest case does without.
void look_at_inputs(const Case& original, const Case& smallest, Notes& found) {
  for (const auto& [name, value] : original.inputs) {
    const auto left = smallest.inputs.find(name);
    if (left == smallest.inputs.end()) {
      found.idle.push_back("input " + name);
    } else if (is_all_zero(left->second) && !is_all_zero(value)) {
      found.idle.push_back("the values of " + name);
    }
  }
  for (const auto& [name, choice] : original.layout) {
    if (!smallest.layout.contains(name)) found.idle.push_back("the layout of " + name);
  }
}

}  // namespace

std::vector<std::string> neighbours(const Case& original, const Case& smallest, const Asked& asked) {
  Notes found;
  for (const DimRule& dim : asked.op.dims) look_at_sizes(smallest, dim, asked, found);
  look_at_zeros(smallest, asked, found);
  for (const AttrRule& rule : asked.op.attrs) look_at_attribute(original, smallest, rule, asked, found);
  look_at_inputs(original, smallest, found);
  if (!found.idle.empty()) found.notes.push_back("does not matter: " + joined(found.idle, "; "));
  return std::move(found.notes);
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
