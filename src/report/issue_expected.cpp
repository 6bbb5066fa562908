// Title, what would be right, and what happens instead: for each class and experiment what these really are.
#include <algorithm>
#include <cmath>

#include "model/number_text.h"
#include "report/issue_parts.h"
#include "report/text.h"

namespace fusediff {
namespace {

constexpr std::size_t kMostConditions = 4;
constexpr std::size_t kMostRanges = 4;
constexpr std::size_t kMostValues = 3;

bool is_of_fill(const Finding& f) { return !f.evidence.empty() && f.evidence.front().oracle == "fill"; }

// The fact stands in a sentence of an oracle, and in nothing else.
bool is_told(const Finding& f) {
  switch (f.cls) {
    case FindingClass::kHang:
    case FindingClass::kMemory:
    case FindingClass::kOverrun:
    case FindingClass::kOverread:
    case FindingClass::kCrash:
    case FindingClass::kInputChanged:
    case FindingClass::kUndeclaredLimit:
    case FindingClass::kAcceptedIllegal:
    case FindingClass::kInvariant:
      return !is_of_fill(f);
    case FindingClass::kWrongPick:
      return !f.evidence.empty() && f.evidence.front().accused.has_value();
    default:
      return false;
  }
}

ExperimentKind kind_of(const IssueFacts& facts) { return facts.bundle.smallest.experiment.kind; }

// The one thing that the accused side does not follow, by the influence that was measured: "grad_out"; "" where there
// is none, or several, which are a consequence of something else, unless the neighbours single one of them out.
std::string ignored_input(const IssueFacts& facts) {
  std::vector<std::string> ignored, telling;
  for (const std::string& sentence : facts.f.influence) {
    const std::string name = ignored_in(facts, sentence);
    if (name.empty()) continue;
    ignored.push_back(name);
    if (matters_by_neighbours(facts.f, name)) telling.push_back(name);
  }
  if (ignored.size() == 1) return ignored[0];
  return telling.size() == 1 ? telling[0] : "";
}

std::string setting(const std::string& name, const AttrValue& value) {
  if (const std::int64_t* i = std::get_if<std::int64_t>(&value)) return name + "=" + std::to_string(*i);
  if (const double* d = std::get_if<double>(&value)) return name + "=" + short_decimal(*d);
  return name + "=" + std::get<std::string>(value);
}

// By the neighbours this does not matter: "the size of N (", "attribute eps;".
bool is_idle(const Finding& f, const std::string& what) {
  return std::any_of(f.notes.begin(), f.notes.end(), [&](const std::string& note) {
    return note.starts_with("does not matter: ") && (note + ";").find(what) != std::string::npos;
  });
}

// The sizes that the neighbours show to matter, else the small list of all; then what is off its default.
std::string conditions(const IssueFacts& facts) {
  const Case& c = facts.bundle.smallest;
  std::vector<std::string> shown;
  for (const auto& [dim, size] : c.dims) {
    const auto matters = [&, name = dim](const std::string& note) {
      return note.starts_with("passes with " + name + " = ") && !note.starts_with("passes with " + name + " = 0,");
    };
    const bool told_by_notes = std::any_of(facts.f.notes.begin(), facts.f.notes.end(), matters);
    const bool matters_not = is_idle(facts.f, "the size of " + dim + " (");
    if (told_by_notes || (size == 0 && !matters_not)) shown.push_back(as_code(dim + "=" + std::to_string(size)));
  }
  for (const auto& [name, value] : c.attrs) {
    if (!is_idle(facts.f, "attribute " + name + ";")) shown.push_back(as_code(setting(name, value)));
  }
  if (shown.size() > kMostConditions) shown.resize(kMostConditions);
  if (!facts.f.dtype.empty()) shown.insert(shown.begin(), as_code(facts.f.dtype));
  std::string text;
  for (const std::string& one : shown) text += (text.empty() ? "" : std::string(facts.w.comma)) + one;
  return text.empty() ? "" : fill_in(facts.w.condition, {text});
}

std::string relation_words(const IssueFacts& facts) {
  return std::string(facts.w.relations[static_cast<std::size_t>(facts.bundle.smallest.experiment.relation)]);
}

std::string error_text(double error) { return std::isinf(error) ? "inf" : short_decimal(error); }

std::string damage_defect(const IssueFacts& facts) {
  const IssueWords& w = facts.w;
  const Finding& f = facts.f;
  const std::string tensor = as_code(f.output);
  if (const std::string deaf = ignored_input(facts); !deaf.empty())
    return fill_in(w.title_deaf, {tensor, as_code(deaf)});
  const Difference* d = named_difference(f);
  if (d != nullptr && d->error && d->bound) {
    const double error = facts.accused ? (*d->error)[*facts.accused] : std::max((*d->error)[0], (*d->error)[1]);
    return fill_in(w.title_error, {tensor, error_text(error), short_decimal(*d->bound)});
  }
  if (d != nullptr && !is_float(d->dtype)) return fill_in(w.title_integer, {tensor});
  return fill_in(w.classes[static_cast<std::size_t>(f.cls)].defect, {tensor});
}

std::string flip_defect(const IssueFacts& facts) {
  const Finding& f = facts.f;
  const IssueWords& w = facts.w;
  if (f.flips.empty() || f.stage_outputs.empty()) return fill_in(w.title_pick, {as_code(f.output)});
  const auto at = std::find_if(f.differences.begin(), f.differences.end(),
                               [&](const Difference& d) { return d.output == f.stage_outputs.front(); });
  if (at == f.differences.end()) return fill_in(w.title_pick, {as_code(f.output)});
  const bool tie = f.flips[0].by_is_known && (f.flips[0].gap_ulp[0] == 0 || f.flips[0].gap_ulp[1] == 0);
  const std::string off = ulp_text(facts, at->max_ulp);
  return fill_in(tie ? w.title_tie : w.title_pick,
                 {as_code(f.output), as_code(at->output), off, as_code(f.flips[0].by)});
}

std::string defect(const IssueFacts& facts) {
  const Finding& f = facts.f;
  const IssueWords& w = facts.w;
  const std::string tensor = as_code(f.output);
  const bool graver = f.cls == FindingClass::kDamage || f.cls == FindingClass::kNonFinite;
  if (is_relation(f))
    return fill_in(graver ? w.title_relation_damage : w.title_relation, {tensor, relation_words(facts)});
  switch (f.cls) {
    case FindingClass::kUnwritten:
      if (f.byte_ranges.empty()) break;
      return fill_in(w.title_bytes,
                     {tensor, std::to_string(f.byte_ranges[0].bytes) + "/" + std::to_string(f.byte_ranges[0].total)});
    case FindingClass::kNondeterminism: {
      const Rate& rate = f.rates[facts.accused.value_or(0)];
      if (rate.runs == 0) break;
      return fill_in(w.title_rate, {tensor, std::to_string(rate.differing), std::to_string(rate.runs)});
    }
    case FindingClass::kContamination:
      if (kind_of(facts) == ExperimentKind::kHistory) return fill_in(w.title_history, {tensor});
      if (kind_of(facts) == ExperimentKind::kRepeat) return fill_in(w.title_repeat, {tensor});
      break;
    case FindingClass::kUndeclaredLimit:
      if (!f.evidence.empty()) return told(facts, f.evidence.front().what);
      break;
    case FindingClass::kCrash:
    case FindingClass::kInvariant:
      if (f.evidence.empty()) break;
      return fill_in(w.title_message, {fill_in(w.classes[static_cast<std::size_t>(f.cls)].defect, {tensor}),
                                       told(facts, f.evidence.front().what)});
    case FindingClass::kFlip:
      return flip_defect(facts);
    case FindingClass::kDamage:
      return damage_defect(facts);
    default:
      break;
  }
  return fill_in(w.classes[static_cast<std::size_t>(f.cls)].defect, {tensor});
}

// The rule that is broken, by the sentence of the oracle.
std::string_view rule_of(const IssueWords& w, const std::string& what) {
  const auto says = [&](const char* words) { return what.find(words) != std::string::npos; };
  if (says(" stands twice in row ")) return w.expect_distinct;
  if (says(", outside ")) return w.expect_range;
  if (says(" although every input is finite")) return w.expect_finite;
  if (says(" sums to ")) return w.expect_sums;
  if (says("no permutation of")) return w.expect_permutation;
  return {};
}

std::string expected_numbers(const IssueFacts& facts) {
  const Finding& f = facts.f;
  const IssueWords& w = facts.w;
  const Difference* d = named_difference(f);
  if (d == nullptr) return "";
  const std::string tensor = as_code(d->output);
  if (!is_float(d->dtype)) return fill_in(w.expect_integer, {tensor});
  if (d->bound) return fill_in(w.expect_bound, {tensor, short_decimal(*d->bound)});
  if (!d->error) return fill_in(w.expect_no_truth, {tensor});
  if (is_relation(f)) return fill_in(w.expect_reference, {tensor});
  return fill_in(w.expect_relative, {tensor, as_code(f.paths[0]), as_code(f.paths[1])});
}

std::string expected_pick(const IssueFacts& facts) {
  const Finding& f = facts.f;
  if (f.flips.empty() || !f.flips[0].by_is_known) return "";
  const Flip& flip = f.flips[0];
  std::string text;
  if (flip.gap_ulp[1] == 0)
    text = fill_in(facts.w.expect_tie,
                   {as_code(flip.by), facts.side[1], std::to_string(flip.picked[0]), std::to_string(flip.picked[1])});
  return text;
}

std::string expected_gradient(const IssueFacts& facts) {
  const IssueWords& w = facts.w;
  if (facts.f.sweeps.empty()) return "";
  const GradientSweep& s = facts.f.sweeps.front();
  return fill_in(s.index < 0 ? w.expect_direction : w.expect_quotient,
                 {s.index < 0 ? as_code(s.output) : element_place(facts, s.output, s.index), short_decimal(s.quotient),
                  short_decimal(s.quotient_error)});
}

std::vector<std::string> expectations(const IssueFacts& facts) {
  const Finding& f = facts.f;
  const IssueWords& w = facts.w;
  const std::string tensor = as_code(f.output);
  const std::size_t who = facts.accused.value_or(0);
  std::vector<std::string> said;
  if (f.cls == FindingClass::kContamination && kind_of(facts) == ExperimentKind::kHistory) {
    said.push_back(fill_in(w.expect_history, {tensor}));
  } else if (f.cls == FindingClass::kContamination && kind_of(facts) == ExperimentKind::kRepeat) {
    said.push_back(fill_in(w.expect_repeat, {tensor}));
  } else if (is_relation(f)) {
    said.push_back(fill_in(w.expect_relation, {tensor, facts.path, facts.side[0], facts.side[1]}));
  } else if (f.cls == FindingClass::kOverread && is_of_fill(f)) {
    said.push_back(fill_in(w.expect_inside, {tensor}));
  } else {
    said.push_back(
        fill_in(w.classes[static_cast<std::size_t>(f.cls)].expected, {tensor, facts.side[who], facts.side[1 - who]}));
  }
  const bool empty = std::any_of(facts.bundle.smallest.dims.begin(), facts.bundle.smallest.dims.end(),
                                 [](const auto& dim) { return dim.second == 0; });
  if (f.cls == FindingClass::kUnwritten && empty) said.push_back(std::string(w.expect_empty));
  if (f.cls == FindingClass::kInvariant && !f.evidence.empty()) {
    const std::string_view rule = rule_of(w, f.evidence.front().what);
    if (!rule.empty()) said.push_back(fill_in(rule, {tensor}));
  }
  if (f.cls == FindingClass::kFlip || (f.cls == FindingClass::kWrongPick && !is_told(f)))
    said.push_back(expected_pick(facts));
  if (f.cls == FindingClass::kGradient) said.push_back(expected_gradient(facts));
  if (f.cls == FindingClass::kDamage) said.push_back(expected_numbers(facts));
  if (f.cls == FindingClass::kDamage && !ignored_input(facts).empty())
    said.push_back(fill_in(w.expect_follow, {as_code(ignored_input(facts))}));
  return said;
}

std::string paragraph(const IssueFacts& facts, const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) {
    if (!sentence.empty()) text += (text.empty() ? "" : std::string(facts.w.gap)) + sentence;
  }
  return text.empty() ? text : text + "\n";
}

std::string bytes_line(const IssueFacts& facts, const ByteRanges& ranges) {
  const IssueWords& w = facts.w;
  const std::string share = std::to_string(ranges.bytes) + "/" + std::to_string(ranges.total);
  const std::string_view memory = ranges.follows == "output"      ? w.memory_output
                                  : ranges.follows == "workspace" ? w.memory_workspace
                                                                  : w.memory_guard;
  std::string text = ranges.follows.empty()
                         ? fill_in(w.bytes_unwritten, {as_code(ranges.output), share})
                         : fill_in(w.bytes_follow, {as_code(ranges.output), share, std::string(memory)});
  std::string where;
  for (std::size_t i = 0; i < std::min(kMostRanges, ranges.ranges.size()); ++i) {
    where += (i == 0 ? "" : std::string(w.comma)) + std::to_string(ranges.ranges[i].first) + ".." +
             std::to_string(ranges.ranges[i].second);
  }
  if (ranges.ranges.size() > kMostRanges) where += std::string(w.comma) + "...";
  return "- " + text + (where.empty() ? "" : fill_in(w.bytes_at, {where})) + "\n";
}

std::string rate_lines(const IssueFacts& facts) {
  const Finding& f = facts.f;
  const IssueWords& w = facts.w;
  std::string text;
  for (const std::size_t s : {0u, 1u}) {
    const Rate& rate = f.rates[s];
    if (rate.runs == 0) continue;
    text += "- " + fill_in(w.rate_of, {facts.side[s], std::to_string(rate.differing), std::to_string(rate.runs)});
    if (rate.pinned_runs > 0)
      text += fill_in(w.rate_pinned, {std::to_string(rate.pinned_differing), std::to_string(rate.pinned_runs)});
    text += "\n";
  }
  return text;
}

std::string contamination_lines(const IssueFacts& facts) {
  const Finding& f = facts.f;
  const IssueWords& w = facts.w;
  std::string text;
  if (!f.causes.empty()) {
    const CauseRun& seen = f.causes.front();
    text += "- " + fill_in(w.differ_from_alone,
                           {told(facts, seen.what), std::to_string(seen.differing), std::to_string(seen.calls)});
    if (seen.differing > 1)
      text += std::string(w.comma) +
              (seen.digests == 1 ? std::string(w.always_alike) : fill_in(w.ways, {std::to_string(seen.digests)}));
    text += "\n";
  } else if (!f.evidence.empty()) {
    text += "- " + told(facts, f.evidence.front().what) + "\n";
  }
  if (f.rates[0].runs > 0)
    text += "- " + fill_in(w.shown_in, {std::to_string(f.rates[0].differing), std::to_string(f.rates[0].runs)}) + "\n";
  return text;
}

std::string flip_lines(const IssueFacts& facts) {
  const IssueWords& w = facts.w;
  std::string text;
  for (const Flip& flip : facts.f.flips) {
    text += "- " +
            fill_in(w.pick_is, {as_code(flip.pick), std::to_string(flip.row), std::to_string(flip.slot), facts.side[0],
                                std::to_string(flip.picked[0]), facts.side[1], std::to_string(flip.picked[1])});
    if (flip.rows > 1) text += fill_in(w.pick_rows, {std::to_string(flip.rows)});
    text += "\n";
    if (!flip.by_is_known) text += "- " + std::string(w.no_ranks) + "\n";
    for (const std::size_t s : {1u, 0u}) {
      if (!flip.by_is_known) break;
      text += "- " +
              (both_nan(flip, s) ? fill_in(w.ranks_nan, {as_code(flip.by), facts.side[s]})
               : flip.gap_ulp[s] == 0
                   ? fill_in(w.ranks_tie, {as_code(flip.by), facts.side[s]})
                   : fill_in(w.ranks_apart, {as_code(flip.by), facts.side[s], ulp_text(facts, flip.gap_ulp[s])})) +
              "\n";
    }
    for (const Flip::Sum& sum : flip.sums) {
      text += "- " +
              fill_in(w.sum_of, {as_code(sum.output), facts.side[0], fixed10(sum.value[0]), facts.side[1],
                                 fixed10(sum.value[1]), fixed10(std::abs(sum.value[0] - sum.value[1]))}) +
              "\n";
    }
  }
  return text;
}

// " (`0x3f800000`)": the bits of a recorded element, by which a value that was rounded to fewer is seen.
std::string exact_text(const IssueFacts& facts, const std::string& name, std::int64_t index) {
  const StoredTensor* tensor = recorded(facts, name);
  if (tensor == nullptr || index < 0) return "";
  const auto at = static_cast<std::size_t>(index) * size_of(tensor->dtype);
  if (at + size_of(tensor->dtype) > tensor->bytes.size()) return "";
  return " (" + as_code(hex(tensor->dtype, load_bits(tensor->dtype, tensor->bytes.data() + at))) + ")";
}

std::string gradient_lines(const IssueFacts& facts) {
  const IssueWords& w = facts.w;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMostValues, facts.f.sweeps.size()); ++i) {
    const GradientSweep& s = facts.f.sweeps[i];
    const std::string place =
        s.index < 0 ? fill_in(w.place_direction, {as_code(s.output)}) : element_place(facts, s.output, s.index);
    std::string given;
    const auto give = [&](const std::string& who, const std::optional<double>& value) {
      if (!value) return;
      const bool opposite = *value * s.quotient < 0 && std::abs(s.quotient) > s.quotient_error;
      given += std::string(w.comma) + who + " " + short_decimal(*value) + (opposite ? std::string(w.opposite) : "");
    };
    give(facts.side[0], s.path[0]);
    given += exact_text(facts, "target/" + s.output, s.index);
    if (facts.side[0] != facts.side[1]) {
      give(facts.side[1], s.path[1]);
      given += exact_text(facts, "against/" + s.output, s.index);
    }
    give(std::string(w.col_f64), s.truth);
    text += "- " + fill_in(w.gradient_is, {place, short_decimal(s.quotient), short_decimal(s.quotient_error)}) + given +
            "\n";
  }
  return text;
}

std::string value_line(const IssueFacts& facts, const Difference& d, std::int64_t index,
                       const std::array<std::uint64_t, 2>& bits) {
  const IssueWords& w = facts.w;
  std::string text =
      "- " + fill_in(w.value_is, {element_place(facts, d.output, index), facts.side[0], element_value(d.dtype, bits[0]),
                                  facts.side[1], element_value(d.dtype, bits[1])});
  if (const std::optional<double> truth = recorded_truth(facts, d.output, index)) {
    text += fill_in(w.value_truth, {decimal(DType::kF64, round_to_bits(DType::kF64, *truth))});
    const std::uint64_t rounded = is_float(d.dtype) ? round_to_bits(d.dtype, *truth) : 0;
    if (is_float(d.dtype) && (rounded == bits[0]) != (rounded == bits[1]))
      text += fill_in(w.value_rounds, {facts.side[rounded == bits[0] ? 0 : 1]});
  }
  if (bits[0] != bits[1]) text += fill_in(w.value_far, {ulp_text(facts, ulp_distance(d.dtype, bits[0], bits[1]))});
  return text + "\n";
}

std::string difference_lines(const IssueFacts& facts) {
  const Finding& f = facts.f;
  const IssueWords& w = facts.w;
  std::string text;
  std::size_t shown = 0;
  for (const Difference& d : f.differences) {
    if (d.follows_pick || shown == kMostValues) continue;
    ++shown;
    text += "- " + fill_in(w.difference, {as_code(d.output), std::to_string(d.differing), std::to_string(d.elements)});
    text += d.cls == FindingClass::kZeroSign  ? std::string(w.only_zero_sign)
            : d.cls == FindingClass::kNanBits ? std::string(w.only_nan_bits)
                                              : fill_in(w.worst_at, {ulp_text(facts, d.max_ulp)});
    text += "\n" + value_line(facts, d, d.first, d.first_bits);
    if (d.worst != d.first) text += value_line(facts, d, d.worst, d.worst_bits);
  }
  return text;
}

}  // namespace

std::string issue_title(const IssueFacts& facts) {
  return fill_in(facts.w.title, {as_code(facts.f.op), facts.path, defect(facts), conditions(facts)});
}

std::string issue_expected(const IssueFacts& facts) { return paragraph(facts, expectations(facts)); }

std::string issue_actual(const IssueFacts& facts) {
  const Finding& f = facts.f;
  std::string text;
  if (is_told(f)) {
    for (const Evidence& evidence : f.evidence) {
      if (evidence.cls != f.cls || evidence.oracle == "bits") continue;
      const std::string who =
          evidence.accused ? facts.side[index_of(*evidence.accused)] + std::string(facts.w.colon) : "";
      text += "- " + who + told(facts, evidence.what) + "\n";
    }
  }
  for (const ByteRanges& ranges : f.byte_ranges) text += bytes_line(facts, ranges);
  if (f.cls == FindingClass::kNondeterminism) text += rate_lines(facts);
  if (f.cls == FindingClass::kContamination) text += contamination_lines(facts);
  if (f.cls == FindingClass::kGradient) text += gradient_lines(facts);
  text += flip_lines(facts);
  const bool garbage = !f.byte_ranges.empty() || f.cls == FindingClass::kFlip;
  if (!garbage) text += difference_lines(facts);
  if (f.cls == FindingClass::kRounding) text += "\n" + std::string(facts.w.reproducibility) + "\n";
  return text;
}

}  // namespace fusediff
