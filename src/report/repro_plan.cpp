#include "report/repro_plan.h"

#include <algorithm>

#include "report/libraries.h"
#include "report/repro_rule.h"
#include "report/settings.h"
#include "report/text.h"
#include "report/text_cause.h"

namespace fusediff {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kDefaultCap = std::uint64_t{1} << 30;

const Evidence* naming(const Finding& f) { return f.evidence.empty() ? nullptr : &f.evidence.front(); }

Side accused_of(const Finding& f) {
  const Evidence* first = naming(f);
  return first != nullptr && first->accused ? *first->accused : Side::kTarget;
}

const char* key_of(Side side) { return side == Side::kTarget ? "target" : "against"; }

bool is_recorded(const Recording& recording, const std::string& name) {
  return std::any_of(recording.outputs.begin(), recording.outputs.end(),
                     [&](const StoredTensor& tensor) { return tensor.name == name; });
}

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \n");
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \n") - first + 1);
}

Json difference_plan(const Difference& d) {
  Json plan{{"output", d.output}, {"dtype", name_of(d.dtype)}};
  plan["stage"] = d.stage ? Json(*d.stage) : Json();
  plan["max_ulp"] = d.max_ulp;
  // The error that accuses: the larger one of the two sides.
  plan["error"] = d.error ? Json(std::max((*d.error)[0], (*d.error)[1])) : Json();
  plan["bound"] = Json();
  if (d.bound) plan["bound"] = *d.bound;
  return plan;
}

Json sweep_plan(const GradientSweep& s) {
  const auto value = [](const std::optional<double>& of) { return of ? Json(*of) : Json(); };
  return {{"output", s.output},        {"index", s.index},           {"quotient", s.quotient},
          {"error", s.quotient_error}, {"target", value(s.path[0])}, {"against", value(s.path[1])},
          {"truth", value(s.truth)}};
}

// Outputs whose bytes follow a fill.
Json filled_plan(const Finding& f) {
  std::vector<std::string> names;
  for (const ByteRanges& ranges : f.byte_ranges) {
    if (std::find(names.begin(), names.end(), ranges.output) == names.end()) names.push_back(ranges.output);
  }
  if (names.empty()) names.push_back(f.output);
  return names;
}

std::string times(int differing, int runs) { return std::to_string(differing) + " of " + std::to_string(runs); }

std::string rate_text(const Finding& f) {
  const Rate& rate = f.rates[f.cls == FindingClass::kContamination ? 0 : index_of(accused_of(f))];
  if (rate.runs == 0) return "not measured";
  if (f.cls == FindingClass::kContamination) return times(rate.differing, rate.runs) + " runs of the experiment";
  return times(rate.differing, rate.runs) + " reruns (" + times(rate.pinned_differing, rate.pinned_runs) +
         " kept on one CPU)";
}

// What was recorded beside the headline.
Json words_plan(const Bundle& bundle) {
  const Finding& f = bundle.finding;
  std::vector<std::string> words;
  if (const std::string text = trimmed(experiment_text(bundle.smallest.experiment)); !text.empty())
    words.push_back(text);
  const std::vector<std::string> evidence = evidence_of(f);
  for (std::size_t i = 1; i < evidence.size(); ++i) words.push_back(evidence[i]);
  for (const std::string& sentence : f.influence) words.push_back(sentence);
  if (!f.conclusion.empty()) words.push_back(f.conclusion);
  return words;
}

Json opened_plan(const Bundle& bundle) {
  const Settings settings = settings_of(bundle.environment);
  Json plan;
  for (const Side side : kSides) {
    const SideSettings& of = settings[index_of(side)];
    plan[key_of(side)] = {{"options", of.options}, {"variables", of.variables}};
  }
  return plan;
}

// The other side as one sentence names it.
std::string other_text(const Bundle& bundle) {
  const std::size_t against = index_of(Side::kAgainst);
  Settings settings;
  settings[against] = settings_of(bundle.environment)[against];
  settings[against].isolated = false;
  const std::string words = are_apart(bundle) ? setting_words(settings, true) : "";
  return library_words(bundle.finding, bundle.environment)[against] + ", path " + bundle.finding.paths[against] +
         (words.empty() ? "" : ", opened with" + words);
}

// What is as usual is left out.
Json tensor_plan(const Tensor& t) {
  Json plan{{"name", t.name}, {"dtype", name_of(t.dtype)}, {"shape", t.shape}, {"stride", t.stride}};
  if (t.align > static_cast<std::int64_t>(size_of(t.dtype))) plan["align"] = t.align;
  if (t.place != Place::kEnd) plan["place"] = t.place == Place::kStart ? "start" : "middle";
  if (t.offset != 0) plan["offset"] = t.offset;
  return plan;
}

Json attrs_plan(const std::vector<CallAttr>& attrs) {
  Json plan = Json::object();
  for (const CallAttr& attr : attrs) {
    std::visit([&](const auto& value) { plan[attr.name] = value; }, attr.value);
  }
  return plan;
}

// Is it asked for? Also where the call does without it: the output that the finding is about, and what was recorded
// of stages on the way.
bool is_wanted(const Bundle& bundle, const Tensor& output, Side side) {
  const Finding& f = bundle.finding;
  if (output.present || output.name == f.output) return true;
  const bool follows = std::any_of(f.byte_ranges.begin(), f.byte_ranges.end(),
                                   [&](const ByteRanges& ranges) { return ranges.output == output.name; });
  const bool compares = bundle.recording->experiment.kind == ExperimentKind::kPair && look_of(f) == Look::kDifference;
  return follows || (compares && is_recorded(*bundle.recording, key_of(side) + ("/" + output.name)));
}

Json call_plan(const Bundle& bundle, const RecordedCall& call, Side side) {
  Json plan{{"op", call.op}, {"path", call.path}, {"pinned", call.pinned}, {"attrs", attrs_plan(call.attrs)}};
  plan["inputs"] = Json::array();
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    Json tensor = tensor_plan(call.inputs[i]);
    if (!call.inputs[i].present) tensor["present"] = false;
    if (call.inputs[i].present && call.stored[i] != call.inputs[i].name) tensor["stored"] = call.stored[i];
    plan["inputs"].push_back(std::move(tensor));
  }
  plan["outputs"] = Json::array();
  for (const Tensor& output : call.outputs) {
    Json tensor = tensor_plan(output);
    if (!is_wanted(bundle, output, side)) tensor["wanted"] = false;
    if (output.on >= 0) tensor["on"] = call.inputs[static_cast<std::size_t>(output.on)].name;
    plan["outputs"].push_back(std::move(tensor));
  }
  return plan;
}

// Indexes as arithmetic runs [first, step, count]; steps may be 0 or negative.
Json runs_of(const std::vector<std::int64_t>& indexes) {
  Json runs = Json::array();
  for (std::size_t i = 0; i < indexes.size();) {
    std::size_t end = i + 1;
    const std::int64_t step = end < indexes.size() ? indexes[end] - indexes[i] : 1;
    while (end < indexes.size() && indexes[end] - indexes[end - 1] == step) ++end;
    runs.push_back({indexes[i], step, end - i});
    i = end;
  }
  return runs;
}

}  // namespace

Look look_of(const Finding& f) {
  switch (f.cls) {
    case FindingClass::kHang:
    case FindingClass::kOverrun:
    case FindingClass::kCrash:
      return Look::kGuards;
    case FindingClass::kOverread:
      return naming(f) != nullptr && naming(f)->oracle == "fill" ? Look::kFills : Look::kGuards;
    case FindingClass::kMemory:
      return Look::kMemory;
    case FindingClass::kUnwritten:
    case FindingClass::kDirty:
      return Look::kFills;
    case FindingClass::kInputChanged:
      return Look::kInputs;
    case FindingClass::kNondeterminism:
      return Look::kReruns;
    case FindingClass::kContamination:
      return Look::kCompany;
    case FindingClass::kUndeclaredLimit:
    case FindingClass::kAcceptedIllegal:
      return Look::kStatus;
    case FindingClass::kGradient:
      return Look::kGradient;
    case FindingClass::kInvariant:
      return Look::kOneSide;
    default:
      break;
  }
  const bool differs = std::any_of(f.differences.begin(), f.differences.end(),
                                   [&](const Difference& d) { return d.output == f.output; });
  if (!differs) return Look::kOneSide;
  return f.experiment == name_of(ExperimentKind::kRelation) ? Look::kRelation : Look::kDifference;
}

bool are_apart(const Bundle& bundle) {
  if (bundle.recording->calls[index_of(Side::kAgainst)].empty()) return false;
  const Settings settings = settings_of(bundle.environment);
  return settings[0].variables != settings[1].variables || is_opened_twice(bundle.finding, bundle.environment);
}

std::array<std::string, 2> side_words(const Finding& f) {
  if (!f.columns[0].empty()) return f.columns;
  if (f.paths[0] != f.paths[1]) return f.paths;
  if (f.targets[0] != f.targets[1]) return f.targets;
  return {"target", "against"};
}

Json finding_plan(const Bundle& bundle) {
  const Finding& f = bundle.finding;
  const Evidence* first = naming(f);
  Json plan{
      {"headline", headline(f)}, {"comparison", comparison_of(f, bundle.smallest)}, {"words", words_plan(bundle)}};
  plan["class"] = name_of(f.cls);
  plan["output"] = f.output;
  plan["accused"] = key_of(accused_of(f));
  plan["targets"] = f.targets;
  plan["paths"] = f.paths;
  plan["sides"] = side_words(f);
  plan["two_libraries"] = are_two_libraries(f, bundle.environment);
  plan["apart"] = are_apart(bundle);
  plan["compares"] = look_of(f) == Look::kDifference;
  plan["opened"] = opened_plan(bundle);
  plan["other"] = other_text(bundle);
  plan["rate"] = rate_text(f);
  const Look look = look_of(f);
  if (look == Look::kFills) plan["filled"] = filled_plan(f);
  if (look == Look::kMemory) plan["memory_cap"] = memory_cap(first == nullptr ? "" : first->what).value_or(kDefaultCap);
  if (look == Look::kGradient) {
    plan["sweeps"] = Json::array();
    for (const GradientSweep& sweep : f.sweeps) plan["sweeps"].push_back(sweep_plan(sweep));
  }
  if (look == Look::kOneSide)
    plan["rule"] = f.cls == FindingClass::kInvariant && first != nullptr ? broken_rule(first->what) : Json();
  if (look != Look::kDifference) return plan;
  plan["differences"] = Json::array();
  for (const Difference& d : f.differences) plan["differences"].push_back(difference_plan(d));
  plan["flips"] = Json::array();
  for (const Flip& flip : f.flips)
    plan["flips"].push_back({{"pick", flip.pick}, {"row", flip.row}, {"slot", flip.slot}, {"picked", flip.picked}});
  return plan;
}

Json experiment_plan(const Bundle& bundle) {
  const Experiment& e = bundle.recording->experiment;
  const bool each = bundle.finding.columns[0].ends_with("with a context each");
  return {{"kind", name_of(e.kind)}, {"count", e.count}, {"rounds", e.rounds}, {"context_each", each}};
}

Json calls_plan(const Bundle& bundle) {
  Json plan = Json::object();
  for (const Side side : kSides) {
    Json calls = Json::array();
    for (const RecordedCall& call : bundle.recording->calls[index_of(side)])
      calls.push_back(call_plan(bundle, call, side));
    plan[key_of(side)] = std::move(calls);
  }
  return plan;
}

Json same_plan(const Bundle& bundle) {
  Json plan = Json::array();
  for (const SameBits& same : bundle.recording->same) {
    plan.push_back({{"output", same.output},
                    {"calls", same.call},
                    {"elements", {runs_of(same.elements[0]), runs_of(same.elements[1])}}});
  }
  return plan;
}

}  // namespace fusediff
