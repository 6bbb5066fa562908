// What every part of ISSUE.md needs: names of the sides, Markdown, elements and their values.
#include <algorithm>
#include <cctype>
#include <cmath>

#include "model/number_text.h"
#include "report/issue_parts.h"
#include "report/text.h"

namespace fusediff {
namespace {

// "/opt/lib/x.so: bad" says no more to a reader elsewhere than "x.so: bad".
std::string without_folders(const std::string& text) {
  std::string kept;
  for (std::size_t i = 0; i < text.size();) {
    const bool starts = text[i] == '/' && (i == 0 || std::isspace(static_cast<unsigned char>(text[i - 1])) != 0 ||
                                           std::string_view("\"'(=:").find(text[i - 1]) != std::string_view::npos);
    if (!starts) {
      kept += text[i++];
      continue;
    }
    std::size_t end = i, last = i;
    while (end < text.size() && std::isspace(static_cast<unsigned char>(text[end])) == 0 &&
           std::string_view("\"'):,;").find(text[end]) == std::string_view::npos) {
      if (text[end] == '/') last = end;
      ++end;
    }
    kept += text.substr(last == i ? i : last + 1, end - (last == i ? i : last + 1));
    i = end;
  }
  return kept;
}

}  // namespace

const StoredTensor* recorded(const IssueFacts& facts, const std::string& name) {
  if (!facts.bundle.recording) return nullptr;
  for (const StoredTensor& tensor : facts.bundle.recording->outputs) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

std::string as_code(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '|') safe += '\\';
    safe += c == '\n' || c == '\r' ? ' ' : c;
  }
  if (safe.find('`') == std::string::npos) return "`" + safe + "`";
  return "`` " + safe + " ``";
}

std::string as_text(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (std::string_view("\\`*_{}[]<>#|~").find(c) != std::string_view::npos) safe += '\\';
    safe += c == '\n' || c == '\r' ? ' ' : c;
  }
  return safe;
}

std::string told(const IssueFacts& facts, const std::string& sentence) {
  return as_text(told_in(facts.w, without_folders(in_own_words(sentence, facts.f))));
}

std::string code_list(const IssueFacts& facts, const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : std::string(facts.w.comma)) + as_code(name);
  return text;
}

std::string table_row(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += " " + cell + " |";
  return text + "\n";
}

std::string table_head(const std::vector<std::string>& cells) {
  std::string text = table_row(cells) + "|";
  for (std::size_t i = 0; i < cells.size(); ++i) text += "---|";
  return text + "\n";
}

bool is_of_other_call(const Finding& f) {
  return std::any_of(f.notes.begin(), f.notes.end(), [](const std::string& note) {
    return note.starts_with("the call that differs is not the case's own");
  });
}

std::string place_in(const StoredTensor& tensor, std::int64_t index) {
  std::string place;
  std::int64_t rest = index;
  for (std::size_t d = tensor.shape.size(); d-- > 0;) {
    if (tensor.shape[d] <= 0) break;
    place = std::to_string(rest % tensor.shape[d]) + (place.empty() ? "" : ", " + place);
    rest /= tensor.shape[d];
  }
  return rest == 0 && index >= 0 ? "[" + place + "]" : "";
}

std::string element_place(const IssueFacts& facts, const std::string& output, std::int64_t index) {
  for (const char* side : {"target/", "against/", "truth/"}) {
    const StoredTensor* tensor = is_of_other_call(facts.f) ? nullptr : recorded(facts, side + output);
    if (tensor == nullptr) continue;
    if (const std::string place = place_in(*tensor, index); !place.empty()) return as_code(output + place);
  }
  return fill_in(facts.w.place_index, {as_code(output), std::to_string(index)});
}

std::string element_value(DType dtype, std::uint64_t bits) {
  return decimal(dtype, bits) + " (" + as_code(hex(dtype, bits)) + ")";
}

std::optional<double> recorded_truth(const IssueFacts& facts, const std::string& output, std::int64_t index) {
  const StoredTensor* tensor = is_of_other_call(facts.f) ? nullptr : recorded(facts, "truth/" + output);
  if (tensor == nullptr || tensor->dtype != DType::kF64) return std::nullopt;
  const auto at = static_cast<std::size_t>(index) * size_of(DType::kF64);
  if (index < 0 || at + size_of(DType::kF64) > tensor->bytes.size()) return std::nullopt;
  return float_value(DType::kF64, load_bits(DType::kF64, tensor->bytes.data() + at));
}

std::string ulp_text(const IssueFacts& facts, std::uint64_t distance) {
  return distance == UINT64_MAX ? std::string(facts.w.nan_against) : fill_in(facts.w.ulp, {std::to_string(distance)});
}

const Difference* named_difference(const Finding& f) {
  // Of another pick: what makes the ranks differ, where that is known.
  const std::string& begins =
      f.cls == FindingClass::kFlip && !f.stage_outputs.empty() ? f.stage_outputs.front() : f.output;
  for (const Difference& d : f.differences) {
    if (d.output == begins) return &d;
  }
  return f.differences.empty() ? nullptr : &f.differences.front();
}

std::string ignored_in(const IssueFacts& facts, const std::string& influence) {
  if (!facts.accused) return "";
  const std::string start = facts.f.paths[*facts.accused] + " does not follow ";
  if (!influence.starts_with(start) || influence.find("the strides of ") == start.size()) return "";
  const std::size_t colon = influence.find(':', start.size());
  return colon == std::string::npos ? "" : influence.substr(start.size(), colon - start.size());
}

std::string judgement_of(const Difference& d) { return d.judged_by.substr(0, d.judged_by.find(" (")); }

std::string derivation_of(const Difference& d) {
  const std::size_t open = d.judged_by.find(" (");
  if (open == std::string::npos || !d.judged_by.ends_with(')')) return "";
  return d.judged_by.substr(open + 2, d.judged_by.size() - open - 3);
}

bool both_nan(const Flip& flip, std::size_t side) {
  const auto& bits = flip.rank_bits[side];
  return is_float(flip.by_dtype) && is_nan(flip.by_dtype, bits[0]) && is_nan(flip.by_dtype, bits[1]);
}

bool matters_by_neighbours(const Finding& f, const std::string& name) {
  return std::any_of(f.notes.begin(), f.notes.end(),
                     [&](const std::string& note) { return note.starts_with("passes with " + name + " = "); });
}

bool is_relation(const Finding& f) { return f.experiment == "relation" && f.oracle == "relation"; }

IssueFacts issue_facts(const Bundle& bundle, const IssueWords& words) {
  const Finding& f = bundle.finding;
  IssueFacts facts{bundle, f, words, {}, {}, {}};
  const std::array<std::string, 2> names = side_names(f);
  for (const std::size_t s : {0u, 1u}) {
    const std::size_t on = names[s].find(" on ");
    const bool inplace = bundle.smallest.experiment.relation == RelationKind::kInplace && on != std::string::npos;
    facts.side[s] =
        f.columns[s].empty() ? as_code(names[s])
        : inplace ? as_code(names[s].substr(0, on)) + " " + fill_in(words.lies_on, {as_code(names[s].substr(on + 4))})
                  : told(facts, names[s]);
  }
  const bool alike = f.columns[0].empty() && f.paths[0] == f.paths[1] && f.targets[0] == f.targets[1];
  if (alike) facts.side = {as_code(f.paths[0]), as_code(f.paths[0])};
  if (!f.evidence.empty() && f.evidence.front().accused) facts.accused = index_of(*f.evidence.front().accused);
  const bool one = !f.columns[0].empty() || (f.paths[0] == f.paths[1] && f.targets[0] == f.targets[1]);
  const auto named = [&](std::size_t s) { return f.paths[0] == f.paths[1] ? names[s] : f.paths[s]; };
  facts.path = one             ? as_code(f.paths[0])
               : facts.accused ? as_code(named(*facts.accused))
                               : fill_in(words.versus, {as_code(named(0)), as_code(named(1))});
  return facts;
}

}  // namespace fusediff
