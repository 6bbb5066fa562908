// Tables of numbers, where the difference begins, what it follows, what splits the cause; and what was ruled out.
#include <algorithm>
#include <cmath>
#include <set>

#include "model/number_text.h"
#include "report/issue_parts.h"
#include "report/text.h"

namespace fusediff {
namespace {

constexpr std::size_t kMostOutputs = 8;
constexpr std::size_t kMostSentences = 6;
constexpr std::size_t kMostSweeps = 4;
constexpr std::size_t kMostSteps = 6;  // of falling eps

std::string error_cell(double error) { return std::isinf(error) ? "inf" : short_decimal(error); }

// Outputs whose bytes are the same on both sides.
std::vector<std::string> equal_outputs(const Finding& f) {
  std::vector<std::string> names;
  for (const TensorHash& output : f.output_hashes) {
    const bool uncertain = std::any_of(f.byte_ranges.begin(), f.byte_ranges.end(),
                                       [&](const ByteRanges& ranges) { return ranges.output == output.name; });
    if (output.hash[0] && output.hash[0] == output.hash[1] && !uncertain) names.push_back(output.name);
  }
  return names;
}

// A recorded output of which every element is zero: with this input it cannot show anything.
bool is_zero_throughout(const IssueFacts& facts, const std::string& output) {
  const StoredTensor* tensor = recorded(facts, "target/" + output);
  if (tensor == nullptr || is_of_other_call(facts.f) || !is_float(tensor->dtype) || tensor->bytes.empty()) return false;
  for (std::size_t at = 0; at < tensor->bytes.size(); at += size_of(tensor->dtype)) {
    if (!is_zero(tensor->dtype, load_bits(tensor->dtype, tensor->bytes.data() + at))) return false;
  }
  return true;
}

bool is_numeric(const Finding& f) {
  return f.cls >= FindingClass::kNonFinite || f.cls == FindingClass::kContamination ||
         f.cls == FindingClass::kNondeterminism || f.cls == FindingClass::kGradient;
}

std::string starts_line(const IssueFacts& facts) {
  const Finding& f = facts.f;
  const IssueWords& w = facts.w;
  std::string text;
  if (f.stage && !f.stage_outputs.empty() && is_numeric(f)) {
    text += "- " + fill_in(w.starts_at, {std::to_string(*f.stage), code_list(facts, f.stage_outputs)}) + "\n";
  }
  std::vector<std::string> equal, zero;
  for (const std::string& name : equal_outputs(f)) (is_zero_throughout(facts, name) ? zero : equal).push_back(name);
  if (!equal.empty()) text += "- " + fill_in(w.equal_outputs, {code_list(facts, equal)}) + "\n";
  if (!zero.empty()) text += "- " + fill_in(w.zero_outputs, {code_list(facts, zero)}) + "\n";
  std::vector<std::string> later;
  for (const Difference& d : f.differences) {
    if (d.follows_pick && d.output != f.output) later.push_back(d.output);
  }
  if (!later.empty()) text += "- " + fill_in(w.follow_on, {code_list(facts, later)}) + "\n";
  return text;
}

// Of a change by as much as the value itself a bound excludes nothing.
bool is_empty_bound(const Difference& d) {
  return d.bound && is_float(d.dtype) && *d.bound >= std::ldexp(1.0, float_format(d.dtype).mantissa_bits + 1);
}

std::string difference_table(const IssueFacts& facts) {
  const Finding& f = facts.f;
  const IssueWords& w = facts.w;
  std::vector<Difference> shown;  // what nobody wrote has no error
  for (const Difference& d : f.differences) {
    const auto is_of = [&](const ByteRanges& ranges) { return ranges.output == d.output; };
    if (std::none_of(f.byte_ranges.begin(), f.byte_ranges.end(), is_of)) shown.push_back(d);
  }
  if (shown.empty()) return "";
  const bool errors = std::any_of(shown.begin(), shown.end(), [](const Difference& d) { return d.error; });
  std::vector<std::string> head = {std::string(w.col_output),    std::string(w.col_stage), std::string(w.col_dtype),
                                   std::string(w.col_differing), std::string(w.col_max),   std::string(w.col_median)};
  if (errors) {
    for (const std::size_t s : {0u, 1u}) head.push_back(fill_in(w.col_error, {facts.side[s]}));
    head.push_back(std::string(w.col_bound));
  }
  head.push_back(std::string(w.col_class));
  std::string text = "\n" + table_head(head);
  for (std::size_t i = 0; i < std::min(kMostOutputs, shown.size()); ++i) {
    const Difference& d = shown[i];
    std::vector<std::string> row = {
        as_code(d.output),          d.stage ? std::to_string(*d.stage) : "-",
        as_code(name_of(d.dtype)),  fill_in(w.of_total, {std::to_string(d.differing), std::to_string(d.elements)}),
        ulp_text(facts, d.max_ulp), ulp_text(facts, d.median_ulp)};
    if (errors) {
      for (const std::size_t s : {0u, 1u}) row.push_back(d.error ? error_cell((*d.error)[s]) : "-");
      row.push_back(d.bound ? short_decimal(*d.bound) : "-");
    }
    row.push_back(as_code(name_of(d.cls)));
    text += table_row(row);
  }
  if (shown.size() > kMostOutputs)
    text += "\n" + fill_in(w.no_more_outputs, {std::to_string(shown.size() - kMostOutputs)}) + "\n";
  const Difference* named = named_difference(f);
  if (!errors || named == nullptr || named->judged_by.empty() || !f.byte_ranges.empty()) return text;
  text += "\n" + fill_in(w.judged, {as_code(named->output), told(facts, judgement_of(*named))}) + "\n";
  std::vector<std::string> empty;
  for (const Difference& d : shown) {
    if (is_empty_bound(d)) empty.push_back(d.output);
  }
  if (!empty.empty()) text += "\n" + fill_in(w.empty_bound, {code_list(facts, empty)}) + "\n";
  return text;
}

// The ranks at both picks on both sides, and what fed them.
std::string tie_table(const IssueFacts& facts, const Flip& flip) {
  const IssueWords& w = facts.w;
  if (!flip.by_is_known) return "";
  std::vector<Flip::Stage> stages = flip.stages;
  const auto ranked = [&](const Flip::Stage& s) { return s.output == flip.by; };
  if (std::none_of(stages.begin(), stages.end(), ranked)) stages.push_back({flip.by, flip.by_dtype, flip.rank_bits});
  std::string text =
      "\n" +
      table_head({std::string(w.col_quantity), fill_in(w.col_pick, {std::to_string(flip.picked[0]), facts.side[0]}),
                  fill_in(w.col_pick, {std::to_string(flip.picked[1]), facts.side[1]}), std::string(w.col_gap)});
  for (const Flip::Stage& stage : stages) {
    for (const std::size_t s : {1u, 0u}) {
      std::string gap;
      if (ranked(stage))
        gap = both_nan(flip, s)      ? std::string(w.both_nan)
              : flip.gap_ulp[s] == 0 ? std::string(w.exact_tie)
                                     : fill_in(w.apart, {ulp_text(facts, flip.gap_ulp[s])});
      text +=
          table_row({as_code(stage.output) + std::string(w.comma) + facts.side[s],
                     element_value(stage.dtype, stage.bits[s][0]), element_value(stage.dtype, stage.bits[s][1]), gap});
    }
    if (stage.bits[0] != stage.bits[1] && is_float(stage.dtype)) {
      const auto between = [&](std::size_t pick) {
        return short_decimal(float_value(stage.dtype, stage.bits[0][pick]) -
                             float_value(stage.dtype, stage.bits[1][pick]));
      };
      text += table_row(
          {fill_in(w.minus, {as_code(stage.output), facts.side[0], facts.side[1]}), between(0), between(1), ""});
    }
  }
  return text;
}

std::string cause_table(const IssueFacts& facts) {
  const Finding& f = facts.f;
  const IssueWords& w = facts.w;
  if (f.causes.empty()) return "";
  std::string text = "\n" + table_head({std::string(w.col_run), std::string(w.col_calls), std::string(w.col_wrong),
                                        std::string(w.col_digests)});
  for (const CauseRun& run : f.causes) {
    text += table_row({told(facts, run.what), std::to_string(run.calls), std::to_string(run.differing),
                       run.differing == 0 ? "-" : std::to_string(run.digests)});
  }
  return text;
}

std::string sweep_table(const IssueFacts& facts) {
  const Finding& f = facts.f;
  const IssueWords& w = facts.w;
  if (f.sweeps.empty()) return "";
  std::vector<std::string> head = {std::string(w.col_gradient), std::string(w.col_quotient), std::string(w.col_f64),
                                   facts.side[0]};
  const bool two = facts.side[0] != facts.side[1];
  if (two) head.push_back(facts.side[1]);
  std::string text = "\n" + table_head(head);
  const auto cell = [](const std::optional<double>& value) { return value ? short_decimal(*value) : "-"; };
  for (std::size_t i = 0; i < std::min(kMostSweeps, f.sweeps.size()); ++i) {
    const GradientSweep& s = f.sweeps[i];
    std::vector<std::string> row = {
        s.index < 0 ? fill_in(w.place_direction, {as_code(s.output)}) : element_place(facts, s.output, s.index),
        short_decimal(s.quotient) + " ± " + short_decimal(s.quotient_error), cell(s.truth), cell(s.path[0])};
    if (two) row.push_back(cell(s.path[1]));
    text += table_row(row);
  }
  const GradientSweep& first = f.sweeps.front();
  if (first.own.empty()) return text;
  std::string steps;
  const std::size_t every = (first.own.size() + kMostSteps - 1) / kMostSteps;
  for (std::size_t i = 0; i < first.own.size(); i += every) {
    const auto& [eps, quotient] = first.own[i];
    steps += (steps.empty() ? "" : std::string(w.semicolon)) + short_decimal(eps) + " → " + short_decimal(quotient);
  }
  return text + "\n" +
         fill_in(w.sweep,
                 {as_code(f.paths[0]),
                  first.index < 0 ? as_code(first.output) : element_place(facts, first.output, first.index), steps}) +
         "\n";
}

bool is_shown_elsewhere(const Finding& f, const Evidence& evidence) {
  if (&evidence == &f.evidence.front()) return true;
  if (evidence.oracle == "bits" || evidence.oracle == "fill" || evidence.oracle == "self" ||
      evidence.oracle == "relation" || (evidence.oracle == "decide" && !evidence.accused))
    return true;
  return evidence.cls == f.cls && evidence.cls <= FindingClass::kInvariant;
}

std::string sentences(const IssueFacts& facts) {
  const Finding& f = facts.f;
  const IssueWords& w = facts.w;
  std::string text;
  std::vector<std::string> influence = f.influence;
  std::stable_partition(influence.begin(), influence.end(), [&](const std::string& sentence) {
    const std::string name = ignored_in(facts, sentence);
    return !name.empty() && matters_by_neighbours(f, name);
  });
  for (const std::string& sentence : influence) text += "- " + fill_in(w.influence, {told(facts, sentence)}) + "\n";
  if (!f.conclusion.empty()) text += "- " + fill_in(w.cause, {told(facts, f.conclusion)}) + "\n";
  std::size_t shown = 0, left = 0;
  std::set<std::string> seen;
  for (const Evidence& evidence : f.evidence) {
    if (is_shown_elsewhere(f, evidence)) continue;
    const std::string who = evidence.accused ? facts.side[index_of(*evidence.accused)] + std::string(w.colon) : "";
    const std::string line =
        "- " + fill_in(w.also, {as_code(name_of(evidence.cls)), who + told(facts, evidence.what)}) + "\n";
    if (!seen.insert(line).second) continue;
    if (shown++ < kMostSentences)
      text += line;
    else
      ++left;
  }
  if (left > 0) text += "- " + fill_in(w.more, {std::to_string(left)}) + "\n";
  // Of a relation the naming sentence says more than the numbers: where in the row, at which offset.
  if (is_relation(f)) text += "- " + told(facts, f.evidence.front().what) + "\n";
  for (const std::string& note : f.notes) {
    if (!is_about_input(note)) text += "- " + told(facts, note) + "\n";
  }
  return text;
}

bool same_inputs(const Finding& f) {
  return !f.input_hashes.empty() && std::all_of(f.input_hashes.begin(), f.input_hashes.end(), [](const TensorHash& h) {
    return h.hash[0] && h.hash[1] && *h.hash[0] == *h.hash[1];
  });
}

// The runs that were clean say what it is not.
std::string clean_runs(const IssueFacts& facts) {
  std::string text;
  for (const CauseRun& run : facts.f.causes) {
    if (run.calls > 0 && run.differing == 0)
      text += "- " + fill_in(facts.w.not_cause, {told(facts, run.what), std::to_string(run.calls)}) + "\n";
  }
  return text;
}

std::string by_bounds(const IssueFacts& facts) {
  const Finding& f = facts.f;
  const IssueWords& w = facts.w;
  const Difference* d = named_difference(f);
  if (d == nullptr || !d->error || !d->bound || !f.byte_ranges.empty()) return "";
  const std::string tensor = as_code(d->output), bound = short_decimal(*d->bound);
  std::string text;
  for (const std::size_t s : {0u, 1u}) {
    const std::string error = error_cell((*d->error)[s]);
    const bool outside = !((*d->error)[s] <= *d->bound);
    if (outside) {
      text += "- " + fill_in(w.not_rounding, {facts.side[s], tensor, error, bound}) + "\n";
    } else if (d->cls == FindingClass::kDamage || d->cls == FindingClass::kNonFinite) {
      text += "- " + fill_in(w.not_reference, {facts.side[s], tensor, error, bound}) + "\n";
    }
  }
  if (d->cls == FindingClass::kRounding)
    text +=
        "- " + fill_in(w.not_beyond, {tensor, error_cell((*d->error)[0]), error_cell((*d->error)[1]), bound}) + "\n";
  return text;
}

}  // namespace

std::string issue_evidence(const IssueFacts& facts) {
  std::string text = starts_line(facts) + sentences(facts);
  for (std::size_t i = 0; i < std::min<std::size_t>(2, facts.f.flips.size()); ++i)
    text += tie_table(facts, facts.f.flips[i]);
  text += cause_table(facts) + sweep_table(facts) + difference_table(facts);
  return text.starts_with('\n') ? text.substr(1) : text;
}

std::string issue_ruled_out(const IssueFacts& facts) {
  const Finding& f = facts.f;
  const IssueWords& w = facts.w;
  std::string text;
  const bool contamination = f.cls == FindingClass::kContamination;
  for (const std::size_t s : {0u, 1u}) {
    const Rate& rate = f.rates[s];
    if (rate.runs == 0 || rate.differing > 0 || (contamination && s == 0)) continue;
    text += "- " +
            fill_in(contamination ? w.not_alone : w.not_chance,
                    {facts.side[s], std::to_string(rate.runs), std::to_string(rate.pinned_runs)}) +
            "\n";
  }
  text += clean_runs(facts) + by_bounds(facts);
  if (f.cls == FindingClass::kUnwritten || f.cls == FindingClass::kDirty) text += "- " + std::string(w.not_fill) + "\n";
  if (f.cls == FindingClass::kGradient && !f.sweeps.empty()) text += "- " + std::string(w.not_quotient) + "\n";
  const bool damaged = std::any_of(f.evidence.begin(), f.evidence.end(), [](const Evidence& e) {
    return e.cls <= FindingClass::kInputChanged && e.cls != FindingClass::kUnwritten && e.cls != FindingClass::kDirty;
  });
  if (!damaged && f.cls != FindingClass::kUndeclaredLimit && f.cls != FindingClass::kAcceptedIllegal)
    text += "- " + std::string(w.not_memory) + "\n";
  if (same_inputs(f)) text += "- " + std::string(w.not_inputs) + "\n";
  return text.empty() ? std::string(w.nothing_ruled_out) + "\n" : text;
}

}  // namespace fusediff
