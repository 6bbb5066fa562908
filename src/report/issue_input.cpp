// The smallest input in readable form, what is next to it and what did not matter; the environment; how to read it.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "model/number_text.h"
#include "report/issue_parts.h"
#include "report/settings.h"

namespace fusediff {
namespace {

constexpr std::int64_t kMostElements = 16;  // of an input that is written out in full
constexpr std::size_t kMostSet = 8;
constexpr std::size_t kMostPatches = 3;
constexpr std::size_t kMostCalls = 4;
constexpr std::size_t kMostShownCalls = 2;  // with their inputs
constexpr std::size_t kMostNotes = 12;

std::string joined(const IssueFacts& facts, const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : std::string(facts.w.comma)) + part;
  return text;
}

std::string attr_text(const std::string& name, const AttrValue& value) {
  if (const std::int64_t* i = std::get_if<std::int64_t>(&value)) return name + "=" + std::to_string(*i);
  if (const double* d = std::get_if<double>(&value)) return name + "=" + short_decimal(*d);
  return name + "=" + std::get<std::string>(value);
}

std::vector<std::string> dims_of(const Case& c) {
  std::vector<std::string> parts;
  for (const auto& [dim, size] : c.dims) parts.push_back(as_code(dim + "=" + std::to_string(size)));
  return parts;
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  return std::isinf(value) ? (value < 0 ? "-inf" : "inf") : short_decimal(value);
}

std::string literal_text(const Literal& literal) {
  if (literal.kind == Literal::Kind::kInteger) return std::to_string(literal.integer);
  if (literal.kind == Literal::Kind::kBits) return as_code(hex(DType::kI64, literal.bits));
  char exact[40];
  std::snprintf(exact, sizeof exact, "%a", literal.real);
  const std::string shown = number(literal.real);
  if (!std::isfinite(literal.real) || std::stod(shown) == literal.real) return shown;
  return shown + " (" + as_code(exact) + ")";
}

std::string fill_text(const IssueFacts& facts, const Fill& fill) {
  const auto call = [](const char* name, std::initializer_list<double> values) {
    std::string text = std::string(name) + "(";
    for (const double value : values) text += (text.back() == '(' ? "" : ", ") + number(value);
    return text + ")";
  };
  std::string recipe;
  switch (fill.kind) {
    case FillKind::kConstant:
      return fill_in(facts.w.all_of, {literal_text(fill.constant)});
    case FillKind::kBits:
      return std::string(facts.w.raw_bits);
    case FillKind::kNormal:
      recipe = call("normal", {fill.a, fill.b});
      break;
    case FillKind::kUniform:
      recipe = call("uniform", {fill.a, fill.b});
      break;
    case FillKind::kGrid:
      recipe = call("grid", {fill.a, fill.b, static_cast<double>(fill.count)});
      break;
    case FillKind::kSpecial:
      recipe = "special";
      break;
    case FillKind::kFiniteSpecial:
      recipe = "finite_special";
      break;
    case FillKind::kShifted:
      recipe = call("shifted", {fill.a, fill.b});
      break;
    case FillKind::kNegative:
      recipe = call("negative", {fill.a, fill.b});
      break;
    case FillKind::kRamp:
      recipe = call("ramp", {fill.a, fill.b});
      break;
    case FillKind::kOneHot:
      recipe = "one_hot";
      break;
    case FillKind::kIndexUniform:
      recipe = "uniform";
      break;
    case FillKind::kSkewed:
      recipe = "skewed";
      break;
    case FillKind::kUnused:
      recipe = "unused";
      break;
    case FillKind::kPermutation:
      recipe = "permutation";
      break;
  }
  const std::string seed = draws(fill.kind) ? ", seed " + std::to_string(fill.seed) : "";
  return fill_in(facts.w.drawn_from, {as_code(recipe + seed)});
}

// tensor: the recorded one, where there is one, whose shape gives places their coordinates.
std::string recipe_text(const IssueFacts& facts, const InputValue& value, const StoredTensor* tensor) {
  const IssueWords& w = facts.w;
  std::string text = fill_text(facts, value.fill);
  for (std::size_t i = 0; i < std::min(kMostPatches, value.patches.size()); ++i) {
    const Patch& patch = value.patches[i];
    const auto span = [](std::int64_t low, std::int64_t high) {
      return low == high ? std::to_string(low) : std::to_string(low) + ".." + std::to_string(high);
    };
    text += std::string(w.semicolon) +
            fill_in(w.block, {span(patch.row_low, patch.row_high), span(patch.column_low, patch.column_high),
                              fill_text(facts, patch.fill)});
  }
  std::size_t shown = 0;
  for (const auto& [index, literal] : value.set) {
    if (shown++ == kMostSet) break;
    const std::string place = tensor == nullptr ? "" : place_in(*tensor, index);
    text += std::string(w.semicolon) +
            fill_in(w.set_to, {place.empty() ? "[" + std::to_string(index) + "]" : place, literal_text(literal)});
  }
  const std::size_t left = value.set.size() - std::min(kMostSet, value.set.size()) + value.patches.size() -
                           std::min(kMostPatches, value.patches.size());
  return left == 0 ? text : text + std::string(w.semicolon) + fill_in(w.elements, {std::to_string(left)});
}

const StoredTensor* recorded_input(const Bundle& bundle, const std::string& name) {
  if (!bundle.recording) return nullptr;
  for (const StoredTensor& tensor : bundle.recording->inputs) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

// Every element of a small tensor; "" of a larger one.
std::string elements_text(const StoredTensor& tensor) {
  const auto count = static_cast<std::int64_t>(tensor.bytes.size() / size_of(tensor.dtype));
  if (count > kMostElements) return "";
  std::string text;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t bits =
        load_bits(tensor.dtype, tensor.bytes.data() + static_cast<std::size_t>(i) * size_of(tensor.dtype));
    text += (i == 0 ? "" : ", ") + decimal(tensor.dtype, bits);
    if (is_float(tensor.dtype) && !is_zero(tensor.dtype, bits)) text += " (" + as_code(hex(tensor.dtype, bits)) + ")";
  }
  return "[" + text + "]";
}

std::string shape_text(const StoredTensor& tensor) {
  std::string text;
  for (const std::int64_t size : tensor.shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return std::string(name_of(tensor.dtype)) + "[" + text + "]";
}

// recorded_under: what stands before the names of recorded tensors, "" of the case's own call, "calls/0/" of another.
std::string inputs_text(const IssueFacts& facts, const Case& c, const std::string& recorded_under) {
  std::string text;
  const std::string indent = recorded_under.empty() ? "" : "  ";
  for (const auto& [name, value] : c.inputs) {
    const StoredTensor* tensor = recorded_input(facts.bundle, recorded_under + name);
    const std::string elements = tensor == nullptr ? "" : elements_text(*tensor);
    const std::string what = tensor == nullptr ? as_code(name) : as_code(name + " " + shape_text(*tensor));
    text += indent + "- " + what + std::string(facts.w.colon) +
            (elements.empty() ? recipe_text(facts, value, tensor) : elements) + "\n";
  }
  return text;
}

std::string layout_text(const IssueFacts& facts, const LayoutChoice& layout) {
  const IssueWords& w = facts.w;
  std::vector<std::string> parts;
  if (!layout.on.empty()) parts.push_back(fill_in(w.lies_on, {as_code(layout.on)}));
  if (layout.stride) {
    std::string strides;
    for (const std::int64_t s : *layout.stride) strides += (strides.empty() ? "" : ", ") + std::to_string(s);
    parts.push_back(fill_in(w.stride_is, {as_code("[" + strides + "]")}));
  }
  if (layout.offset != 0) parts.push_back(fill_in(w.offset_is, {std::to_string(layout.offset)}));
  if (layout.place == Place::kStart) parts.push_back(std::string(w.at_start));
  if (layout.place == Place::kMiddle) parts.push_back(std::string(w.in_middle));
  return joined(facts, parts);
}

std::string calls_text(const IssueFacts& facts) {
  const std::vector<Case>& calls = facts.bundle.smallest.experiment.calls;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMostCalls, calls.size()); ++i) {
    text +=
        (i == 0 ? "" : std::string(facts.w.semicolon)) + as_code(calls[i].op) + " " + joined(facts, dims_of(calls[i]));
  }
  if (calls.size() > kMostCalls) text += std::string(facts.w.comma) + "...";
  return text;
}

std::string experiment_text(const IssueFacts& facts) {
  const Experiment& e = facts.bundle.smallest.experiment;
  const IssueWords& w = facts.w;
  std::string text;
  if (e.kind == ExperimentKind::kThreads)
    text = "- " + fill_in(w.threads_are, {std::to_string(e.count), std::to_string(e.rounds)}) + "\n";
  if (e.kind == ExperimentKind::kRepeat) text = "- " + fill_in(w.repeats_are, {std::to_string(e.count)}) + "\n";
  if (!e.calls.empty()) text += "- " + fill_in(w.other_calls, {calls_text(facts)}) + "\n";
  for (std::size_t i = 0; e.calls.size() <= kMostShownCalls && i < e.calls.size(); ++i)
    text += inputs_text(facts, e.calls[i], "calls/" + std::to_string(i) + "/");
  return text;
}

// What the minimiser put back to its plainest without losing the finding.
std::string reset_text(const IssueFacts& facts) {
  const Case &original = facts.bundle.original, &smallest = facts.bundle.smallest;
  const IssueWords& w = facts.w;
  const auto says_so = [](const std::string& note) { return note.starts_with("does not matter: "); };
  if (std::any_of(facts.f.notes.begin(), facts.f.notes.end(), says_so)) return "";
  std::vector<std::string> parts;
  for (const auto& [name, value] : original.attrs) {
    if (!smallest.attrs.contains(name)) parts.push_back(as_code(attr_text(name, value)));
  }
  for (const auto& [name, layout] : original.layout) {
    if (!smallest.layout.contains(name)) parts.push_back(fill_in(w.reset_layout, {as_code(name)}));
  }
  for (const auto& [name, value] : original.inputs) {
    if (!smallest.inputs.contains(name)) parts.push_back(fill_in(w.reset_input, {as_code(name)}));
  }
  if (original.experiment.kind != smallest.experiment.kind)
    parts.push_back(fill_in(w.reset_experiment, {as_code(name_of(original.experiment.kind))}));
  if (parts.size() > kMostNotes) parts.resize(kMostNotes);
  return parts.empty() ? "" : "- " + fill_in(w.reset, {joined(facts, parts)}) + "\n";
}

// Sizes next to the input were tried, and some of them pass.
bool says_of_sizes(const IssueFacts& facts) {
  return std::any_of(facts.bundle.smallest.dims.begin(), facts.bundle.smallest.dims.end(), [&](const auto& dim) {
    return std::any_of(facts.f.notes.begin(), facts.f.notes.end(), [&](const std::string& note) {
      const std::string start = "passes with " + dim.first + " = ";
      return note.starts_with(start) && !note.starts_with(start + "0,");
    });
  });
}

// Elements are set one by one in a tensor of several rows, where another size moves them.
bool sets_among_rows(const IssueFacts& facts) {
  const auto& inputs = facts.bundle.smallest.inputs;
  return std::any_of(inputs.begin(), inputs.end(), [&](const auto& input) {
    const StoredTensor* tensor = recorded_input(facts.bundle, input.first);
    return tensor != nullptr && !input.second.set.empty() &&
           std::count_if(tensor->shape.begin(), tensor->shape.end(), [](std::int64_t size) { return size > 1; }) > 1;
  });
}

// Nothing could be taken away from the call that was found.
bool is_as_found(const Bundle& bundle) {
  const bool tried = std::any_of(bundle.finding.notes.begin(), bundle.finding.notes.end(), is_about_input);
  return !tried && bundle.smallest == bundle.original;
}

constexpr std::string_view kIdle = "does not matter: ";

// items: "attribute eps; the values of x"
std::string idle_text(const IssueFacts& facts, const std::string& items) {
  std::string text;
  for (std::size_t at = 0; at < items.size();) {
    const std::size_t end = std::min(items.find("; ", at), items.size());
    text += (text.empty() ? "" : std::string(facts.w.semicolon)) + told(facts, items.substr(at, end - at));
    at = end + 2;
  }
  return fill_in(facts.w.idle, {text});
}

std::string notes_text(const IssueFacts& facts) {
  std::string text;
  std::size_t shown = 0;
  for (const std::string& note : facts.f.notes) {
    if (!is_about_input(note) || shown++ >= kMostNotes) continue;
    text += "- " + (note.starts_with(kIdle) ? idle_text(facts, note.substr(kIdle.size())) : told(facts, note)) + "\n";
  }
  return text;
}

using Json = nlohmann::json;

std::string field(const Json& json, const char* key) {
  const auto at = json.find(key);
  return at != json.end() && at->is_string() ? at->get<std::string>() : "";
}

std::string target_text(const Json& json, const char* side) {
  const auto at = json.find(side);
  if (at == json.end() || !at->is_object()) return "";
  std::string text = as_code(field(*at, "name"));
  if (const std::string version = field(*at, "version"); !version.empty()) text += " " + as_text(version);
  if (const std::string file = field(*at, "file"); !file.empty())
    text += " (" + as_code(std::filesystem::path(file).filename().string()) + ")";
  return text;
}

// Those of the processor's features that decide which kernel runs.
std::string features_text(const std::string& flags) {
  constexpr std::string_view kTelling[] = {"avx2",        "fma",         "f16c",     "avx512f",  "avx512_bf16",
                                           "avx512_fp16", "avx512_vnni", "amx_tile", "amx_bf16", "asimd",
                                           "asimdhp",     "sve",         "sve2",     "bf16"};
  std::string text;
  for (const std::string_view feature : kTelling) {
    if ((" " + flags + " ").find(" " + std::string(feature) + " ") != std::string::npos)
      text += (text.empty() ? "" : " ") + std::string(feature);
  }
  return text.empty() ? "" : as_code(text);
}

}  // namespace

std::string issue_input(const IssueFacts& facts) {
  const Case& c = facts.bundle.smallest;
  const IssueWords& w = facts.w;
  std::string text;
  if (const std::vector<std::string> dims = dims_of(c); !dims.empty())
    text += "- " + std::string(w.dims) + std::string(w.colon) + joined(facts, dims) + "\n";
  std::vector<std::string> attrs;
  for (const auto& [name, value] : c.attrs) attrs.push_back(as_code(attr_text(name, value)));
  text += "- " + std::string(w.attrs) + std::string(w.colon) +
          (attrs.empty() ? std::string(w.defaults) : joined(facts, attrs)) + "\n";
  text += inputs_text(facts, c, "");
  if (sets_among_rows(facts) && says_of_sizes(facts)) text += "- " + std::string(w.flat_places) + "\n";
  for (const auto& [name, layout] : c.layout) {
    if (const std::string what = layout_text(facts, layout); !what.empty())
      text += "- " + fill_in(w.layout, {as_code(name), what}) + "\n";
  }
  if (!c.unwanted.empty()) text += "- " + fill_in(w.unwanted, {code_list(facts, c.unwanted)}) + "\n";
  if (is_as_found(facts.bundle)) text += "- " + std::string(w.as_found) + "\n";
  return text + experiment_text(facts) + notes_text(facts) + reset_text(facts);
}

bool is_about_input(const std::string& note) {
  constexpr std::string_view kStarts[] = {
      "passes with ",      "needs ",           "the mate",        "the call between",
      "the calls between", "the earlier call", "the experiment ", "not minimised"};
  return std::any_of(std::begin(kStarts), std::end(kStarts),
                     [&](std::string_view start) { return note.starts_with(start); }) ||
         note.find("matter") != std::string::npos;
}

std::string issue_environment(const IssueFacts& facts) {
  const IssueWords& w = facts.w;
  const Json json = Json::parse(facts.bundle.environment, nullptr, false);
  if (!json.is_object()) return std::string(w.env_unreadable) + "\n";
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) text += "- " + std::string(name) + std::string(w.colon) + value + "\n";
  };
  line(w.env_target, target_text(json, "target"));
  if (facts.f.paths[0] != facts.f.paths[1] || facts.f.targets[0] != facts.f.targets[1])
    line(w.env_against, target_text(json, "against"));
  if (const std::string words = setting_words(settings_of(facts.bundle.environment), true); !words.empty())
    line(w.env_opened, as_code(words.substr(1)));
  std::string system;
  for (const char* key : {"distribution", "os", "machine"}) {
    if (const std::string value = field(json, key); !value.empty())
      system += (system.empty() ? "" : std::string(w.comma)) + as_text(value);
  }
  line(w.env_system, system);
  line(w.env_cpu, as_text(field(json, "cpu")));
  line(w.env_features, features_text(field(json, "cpu_flags")));
  line(w.env_fusediff, as_text(field(json, "fusediff")));
  return text;
}

std::string issue_reading(const IssueFacts& facts) {
  const Finding& f = facts.f;
  const IssueWords& w = facts.w;
  std::string text = std::string(w.read_head) + "\n\n";
  const auto say = [&](bool fits, std::string_view words) {
    if (fits) text += "- " + std::string(words) + "\n";
  };
  const bool numbers =
      std::any_of(f.differences.begin(), f.differences.end(), [](const Difference& d) { return is_float(d.dtype); });
  const ExperimentKind kind = facts.bundle.smallest.experiment.kind;
  say(numbers, w.read_ulp);
  say(f.stage.has_value(), w.read_stage);
  say(std::any_of(f.differences.begin(), f.differences.end(), [](const Difference& d) { return d.bound; }),
      w.read_bound);
  const Difference* named = named_difference(f);
  if (named != nullptr && named->bound && named->error && f.byte_ranges.empty() && !derivation_of(*named).empty())
    text += "- " + fill_in(w.read_derivation, {as_code(named->output), as_text(derivation_of(*named))}) + "\n";
  say(!f.byte_ranges.empty(), w.read_fill);
  say(kind == ExperimentKind::kThreads || kind == ExperimentKind::kHistory || kind == ExperimentKind::kRepeat ||
          f.cls == FindingClass::kNondeterminism,
      w.read_context);
  say(f.cls == FindingClass::kGradient, w.read_gradient);
  say(kind == ExperimentKind::kRelation, w.read_relation);
  text += "- " + fill_in(w.read_signature, {as_code(signature_of(f))}) + "\n";
  return text;
}

}  // namespace fusediff
