#include "report/text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "model/number_text.h"
#include "report/text_cause.h"
#include "report/text_gradient.h"
#include "report/wrapped.h"

namespace fusediff {
namespace {

std::string accused(const Evidence& evidence, const Finding& f) {
  return evidence.accused ? side_names(f)[index_of(*evidence.accused)] + ": " : "";
}

std::string evidence_line(const Evidence& evidence, const Finding& f) {
  return accused(evidence, f) + in_own_words(evidence.what, f) + " [" + std::string(name_of(evidence.cls)) + "]";
}

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string stage_text(const Finding& f) {
  if (!f.stage) return "";
  std::string text = "stage " + std::to_string(*f.stage);
  if (!f.stage_outputs.empty()) text += " (" + join(f.stage_outputs) + ")";
  return text;
}

std::string case_text(const Case& c) {
  std::string text;
  for (const auto& [dim, size] : c.dims) text += " " + dim + "=" + std::to_string(size);
  for (const auto& [attr, value] : c.attrs) {
    text += " " + attr + "=";
    if (const std::int64_t* i = std::get_if<std::int64_t>(&value)) text += std::to_string(*i);
    if (const double* d = std::get_if<double>(&value)) text += short_decimal(*d);
    if (const std::string* s = std::get_if<std::string>(&value)) text += *s;
  }
  return text;
}

std::string pad(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

// Two columns of picks, a line for each quantity and side: the tie picture.
std::string tie_table(const Flip& flip, const Finding& f) {
  const std::array<std::string, 2> names = side_names(f);
  std::string text;
  const std::string left = "pick of " + names[0] + ": " + std::to_string(flip.picked[0]);
  const std::string right = "pick of " + names[1] + ": " + std::to_string(flip.picked[1]);
  text += "  " + pad("", 30) + pad(left, 26) + right + "\n";
  std::vector<Flip::Stage> stages = flip.stages;
  const bool shown =
      std::any_of(stages.begin(), stages.end(), [&](const Flip::Stage& s) { return s.output == flip.by; });
  if (!shown) stages.push_back({flip.by, flip.by_dtype, flip.rank_bits});
  for (const Flip::Stage& stage : stages) {
    for (const std::size_t s : {1u, 0u}) {
      text += "  " + pad(stage.output + ", " + names[s], 30) + pad(decimal(stage.dtype, stage.bits[s][0]), 26) +
              decimal(stage.dtype, stage.bits[s][1]);
      if (stage.output == flip.by)
        text += flip.gap_ulp[s] == 0 ? "   an exact tie" : "   " + ulp_words(flip.gap_ulp[s]) + " apart";
      if (stage.output != flip.by && s == 0) {
        for (const std::size_t whose : {0u, 1u}) {
          const std::uint64_t distance = ulp_distance(stage.dtype, stage.bits[0][whose], stage.bits[1][whose]);
          if (distance == 0) continue;
          const double difference =
              float_value(stage.dtype, stage.bits[0][whose]) - float_value(stage.dtype, stage.bits[1][whose]);
          text +=
              "   " + std::to_string(flip.picked[whose]) + ": " + ulp_words(distance) + ", " + scientific(difference);
        }
      }
      text += "\n";
    }
  }
  return text;
}

std::string flip_text(const Flip& flip, const Finding& f) {
  const std::array<std::string, 2> names = side_names(f);
  std::string text = "  pick flipped: " + flip.pick + " row " + std::to_string(flip.row) + ", slot " +
                     std::to_string(flip.slot) + ": " + names[0] + " picks " + std::to_string(flip.picked[0]) + ", " +
                     names[1] + " picks " + std::to_string(flip.picked[1]);
  if (flip.rows > 1) text += " (" + std::to_string(flip.rows) + " rows in all)";
  text += "\n";
  if (!flip.by_is_known)
    return text + "  the ranks of both sides are not to be had: add the ranked numbers as an output\n";
  for (const std::size_t s : {1u, 0u}) {
    if (flip.gap_ulp[s] == 0) text += "  the two ranks tie exactly in the " + names[s] + " path\n";
  }
  text += tie_table(flip, f);
  for (const Flip::Sum& sum : flip.sums) {
    text += "  sum of " + pad(sum.output + " in the row", 23) + names[1] + " " + fixed10(sum.value[1]) + ", " +
            names[0] + " " + fixed10(sum.value[0]) + ", difference " + fixed10(std::abs(sum.value[0] - sum.value[1])) +
            "\n";
  }
  return text;
}

std::string gap_text(DType dtype, const std::array<std::uint64_t, 2>& bits) {
  if (!is_float(dtype) || !is_finite(dtype, bits[0]) || !is_finite(dtype, bits[1])) return "";
  return ", difference " + scientific(float_value(dtype, bits[0]) - float_value(dtype, bits[1]));
}

std::string difference_line(const Difference& d, const Finding& f) {
  const std::array<std::string, 2> names = side_names(f);
  std::string text = "  " + (d.stage ? "stage " + std::to_string(*d.stage) + ", " : std::string()) + d.output + " (" +
                     std::string(name_of(d.dtype)) + "): " + std::to_string(d.differing) + " of " +
                     std::to_string(d.elements) + (d.elements == 1 ? " element" : " elements") + " differ";
  if (d.differing == 1) text.pop_back(), text += "rs";
  text += ", at most " + ulp_words(d.max_ulp);
  if (d.differing > 1) text += ", median " + ulp_words(d.median_ulp);
  text += " [" + std::string(name_of(d.cls)) + "]\n";
  const auto element = [&](const char* label, std::int64_t at, const std::array<std::uint64_t, 2>& bits) {
    return "    " + std::string(label) + " index " + std::to_string(at) + ": " + names[0] + " " +
           decimal(d.dtype, bits[0]) + " (" + hex(d.dtype, bits[0]) + "), " + names[1] + " " +
           decimal(d.dtype, bits[1]) + " (" + hex(d.dtype, bits[1]) + ")" + gap_text(d.dtype, bits) + "\n";
  };
  text += element("first at", d.first, d.first_bits);
  if (d.worst != d.first) text += element("worst at", d.worst, d.worst_bits);
  if (is_float(d.dtype) && d.largest > 0) text += "    largest difference " + scientific(d.largest).substr(1) + "\n";
  if (d.error) {
    text += "    error against the f64 truth: " + names[0] + " " + short_decimal((*d.error)[0]) + " ULP, " + names[1] +
            " " + short_decimal((*d.error)[1]) + " ULP\n";
  }
  if (!d.judged_by.empty()) text += wrapped("judged " + d.judged_by, 4);
  return text;
}

std::string byte_line(const ByteRanges& ranges) {
  std::string text =
      "  " + ranges.output + " " + std::to_string(ranges.bytes) + "/" + std::to_string(ranges.total) + " bytes ";
  text += ranges.follows.empty() ? "unwritten" : "follow the " + ranges.follows + " fill";
  text += ":";
  for (const auto& [first, last] : ranges.ranges) text += " " + std::to_string(first) + ".." + std::to_string(last);
  return text + "\n";
}

std::string rate_line(const Finding& f) {
  if (f.cls == FindingClass::kContamination) return shown_line(f);
  std::string text;
  for (const Side side : kSides) {
    const Rate& rate = f.rates[index_of(side)];
    if (rate.runs == 0) continue;
    text += (text.empty() ? "  reruns on fresh contexts: " : "; ") + side_names(f)[index_of(side)] + " ";
    text += rate.differing == 0
                ? "gave the same " + std::to_string(rate.runs) + " of " + std::to_string(rate.runs) + " times"
                : "differs from itself in " + std::to_string(rate.differing) + " of " + std::to_string(rate.runs) +
                      " (" + std::to_string(rate.pinned_differing) + " of " + std::to_string(rate.pinned_runs) +
                      " pinned to one CPU)";
  }
  return text.empty() ? text : text + "\n";
}

std::string hash_lines(const Finding& f) {
  std::string text;
  bool equal = true;
  for (const TensorHash& input : f.input_hashes) equal = equal && input.hash[0] == input.hash[1];
  if (!f.input_hashes.empty()) {
    text += "  inputs: both sides received the same bytes (XXH3-128 of each in finding.json)\n";
    if (!equal) text = "  inputs: the sides received different bytes\n";
  }
  return text;
}

std::string describe_finding(const Finding& f, const Case& c) {
  std::string text = "finding: " + headline(f) + "\n";
  text += "  " + comparison_of(f, c) + "\n";
  if (const std::string experiment = experiment_text(c.experiment); !experiment.empty()) text += wrapped(experiment, 2);
  text += wrapped("meaning: " + meaning_of(f.cls), 2);
  if (f.stage) text += "  blame: " + stage_text(f) + "\n";
  text += cause_lines(f);
  for (const std::string& sentence : f.influence) text += wrapped("influence: " + sentence, 2);
  for (const ByteRanges& ranges : f.byte_ranges) text += byte_line(ranges);
  for (const Flip& flip : f.flips) text += flip_text(flip, f);
  for (const Difference& d : f.differences) {
    const auto is_of = [&](const ByteRanges& ranges) { return ranges.output == d.output; };
    if (std::none_of(f.byte_ranges.begin(), f.byte_ranges.end(), is_of)) text += difference_line(d, f);
  }
  text += gradient_text(f);
  for (std::size_t i = 0; i < f.evidence.size(); ++i) {
    const Evidence& evidence = f.evidence[i];
    if (evidence.oracle == "bits" || evidence.oracle == "fill" || (evidence.oracle == "decide" && !evidence.accused))
      continue;
    text += wrapped((i == 0 ? "evidence: " : "also: ") + evidence_line(evidence, f), 2);
  }
  text += rate_line(f);
  text += hash_lines(f);
  for (const std::string& note : f.notes) text += wrapped("note: " + note, 2);
  text += "  signature: " + signature_of(f) + "\n";
  return text;
}

}  // namespace

std::array<std::string, 2> side_names(const Finding& f) {
  if (!f.columns[0].empty()) return f.columns;
  if (f.paths[0] != f.paths[1]) return f.paths;
  if (f.targets[0] != f.targets[1]) return f.targets;
  return {"target", "against"};
}

// The evidence speaks of target and against; a reader thinks of the paths' names.
std::string in_own_words(std::string text, const Finding& f) {
  const std::array<std::string, 2> names = side_names(f);
  for (const auto& [generic, own] : {std::pair<std::string, std::string>{"(target)", "(" + names[0] + ")"},
                                     {"(against)", "(" + names[1] + ")"},
                                     {"target picks", names[0] + " picks"},
                                     {"against picks", names[1] + " picks"},
                                     {"the target side", "the " + names[0] + " side"},
                                     {"the against side", "the " + names[1] + " side"}}) {
    for (std::size_t at = text.find(generic); at != std::string::npos; at = text.find(generic, at + own.size())) {
      text.replace(at, generic.size(), own);
    }
  }
  return text;
}

std::string headline(const Finding& f) {
  std::string text = std::string(name_of(f.cls)) + " in " + f.op;
  if (!f.output.empty()) text += ", output " + f.output;
  if (f.stage) text += ", " + stage_text(f);
  if (f.evidence.empty()) return text;
  // The cause before the size of its effect, where the accused side is the one that does not follow.
  const bool is_cause = f.cls == FindingClass::kDamage && !f.influence.empty() && f.evidence[0].accused &&
                        f.influence[0].starts_with(f.paths[index_of(*f.evidence[0].accused)] + " ");
  if (is_cause) return text + ": " + f.influence[0];
  return text + ": " + accused(f.evidence[0], f) + in_own_words(f.evidence[0].what, f);
}

std::string comparison_of(const Finding& f, const Case& c) {
  const std::string first = f.targets[0] + ":" + f.paths[0];
  const std::string sides = f.columns[0].empty() ? first + " against " + f.targets[1] + ":" + f.paths[1]
                                                 : first + " " + f.columns[0] + " against " + f.columns[1];
  return sides + ", " + f.op + case_text(c) + (f.dtype.empty() ? "" : " " + f.dtype);
}

std::string blame_of(const Finding& f) { return stage_text(f); }

std::vector<std::string> evidence_of(const Finding& f) {
  std::vector<std::string> lines;
  for (const Evidence& evidence : f.evidence) lines.push_back(evidence_line(evidence, f));
  return lines;
}

std::string describe(const Verdict& verdict, const Case& c) {
  if (verdict.finding) return describe_finding(*verdict.finding, c);
  std::string text =
      verdict.kind == Verdict::Kind::kHarnessError ? "harness error" : std::string(name_of(verdict.kind));
  text += ": " + c.op + case_text(c);
  if (!verdict.reason.empty()) text += ": " + verdict.reason;
  return text + "\n";
}

std::string meaning_of(FindingClass cls) {
  switch (cls) {
    case FindingClass::kHang:
      return "the call did not come back within the time cap";
    case FindingClass::kMemory:
      return "the call took more memory than the cap allows";
    case FindingClass::kOverrun:
      return "it wrote outside a buffer";
    case FindingClass::kOverread:
      return "it read outside a buffer";
    case FindingClass::kCrash:
      return "the call ended in a signal, an exception or an exit";
    case FindingClass::kUnwritten:
      return "it reported success and left output bytes as they were: the result is whatever the buffer held";
    case FindingClass::kDirty:
      return "its result depends on what memory held before the call";
    case FindingClass::kInputChanged:
      return "it changed an input that it may only read";
    case FindingClass::kNondeterminism:
      return "the same call on a fresh context gives other bits";
    case FindingClass::kContamination:
      return "other calls in flight or before it change the result";
    case FindingClass::kUndeclaredLimit:
      return "it refuses a call that its schema allows";
    case FindingClass::kAcceptedIllegal:
      return "it accepts a call that its schema forbids";
    case FindingClass::kInvariant:
      return "a rule that holds for every correct output is broken";
    case FindingClass::kGradient:
      return "the backward is not the derivative of the forward";
    case FindingClass::kNonFinite:
      return "NaN or infinity on one side, where the other side and the truth are finite, or the reverse";
    case FindingClass::kFlip:
      return "another pick, because the ranks differ by rounding where they are equal or nearly so";
    case FindingClass::kWrongPick:
      return "a pick that no ranking of its own explains";
    case FindingClass::kDamage:
      return "the difference is more than rounding explains, or nothing is there to show that it is rounding";
    case FindingClass::kRounding:
      return "the numbers differ, and rounding explains it: no side is outside its bound";
    case FindingClass::kZeroSign:
      return "only the sign of zero differs";
    case FindingClass::kNanBits:
      return "only payload or sign of NaN differs, which this output makes part of its contract";
  }
  return "";
}

}  // namespace fusediff
