#include "engine/finding_of.h"

#include <bit>
#include <sstream>

#include "model/quote.h"

namespace fusediff {
namespace {

// The dtype that the case chose; "x=f32,y=bf16" when it chose several; the output's where there was no choice.
std::string chosen_dtype(const Case& c, const Call& call, const std::string& output) {
  if (c.dtypes.size() == 1) return std::string(name_of(c.dtypes.begin()->second));
  std::string text;
  for (const auto& [tensor, dtype] : c.dtypes)
    text += (text.empty() ? "" : ",") + tensor + "=" + std::string(name_of(dtype));
  if (!text.empty()) return text;
  for (const std::vector<Tensor>* tensors : {&call.outputs, &call.inputs}) {
    for (const Tensor& tensor : *tensors) {
      if (tensor.name == output) return std::string(name_of(tensor.dtype));
    }
  }
  return "";
}

std::string size_of_difference(const std::vector<Difference>& differences) {
  std::string text;
  for (const Difference& d : differences) {
    if (d.follows_pick) continue;
    text += " " + d.output + " " + std::to_string(std::bit_width(d.max_ulp));
    if (!is_float(d.dtype)) continue;
    for (const std::uint64_t bits : d.worst_bits) text += is_finite(d.dtype, bits) ? " finite" : " not";
    break;
  }
  return text;
}

// Its lines, with a bar between them, as a person may paste them.
std::string on_one_line(const std::string& text) {
  std::string line;
  std::istringstream lines(text);
  for (std::string one; std::getline(lines, one);) {
    if (!one.empty()) line += (line.empty() ? "" : " | ") + printable(one);
  }
  return line;
}

}  // namespace

std::string name_of_side(const PathOf& side) { return side.target->name + ":" + side.path; }

Comparison with_itself(const Comparison& comparison, Side side) {
  Comparison itself = comparison;
  itself.sides[0] = itself.sides[1] = comparison.sides[index_of(side)];
  return itself;
}

Finding finding_of(const Case& c, const Call& call, const Comparison& comparison, const Judgement& judgement) {
  const Evidence& first = judgement.evidence.front();
  Finding finding;
  finding.experiment = name_of(c.experiment.kind);
  finding.oracle = first.oracle;
  finding.op = c.op;
  for (const std::size_t s : {0u, 1u}) {
    finding.targets[s] = comparison.sides[s].target->name;
    finding.paths[s] = comparison.sides[s].path;
  }
  finding.output = first.tensor;
  finding.relation = first.relation;
  finding.dtype = chosen_dtype(c, call, first.tensor);
  finding.cls = first.cls;
  finding.stage = first.cls >= FindingClass::kInvariant ? stage_to_blame(judgement) : std::nullopt;
  if (!finding.stage) finding.stage = first.stage;
  for (const Difference& d : judgement.differences) {
    if (d.stage && d.stage == finding.stage && d.cls != FindingClass::kNanBits)
      finding.stage_outputs.push_back(d.output);
  }
  finding.evidence = judgement.evidence;
  finding.differences = judgement.differences;
  finding.byte_ranges = judgement.byte_ranges;
  finding.flips = judgement.flips;
  return finding;
}

std::string suspicion_of(const Case& c, const Call& call, const Comparison& comparison, Judgement judgement) {
  rank_evidence(call, judgement);
  return signature_of(finding_of(c, call, comparison, judgement)) + size_of_difference(judgement.differences);
}

void add_hashes(const Call& call, std::span<const std::span<const std::byte>> inputs,
                const std::array<const Execution*, 2>& executions, const std::array<std::vector<bool>, 2>& gives,
                Finding& finding) {
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.inputs[i].present) continue;
    const Hash128 hash = hash128(inputs[i]);
    finding.input_hashes.push_back({call.inputs[i].name, {hash, hash}});
  }
  for (std::size_t o = 0; o < call.outputs.size(); ++o) {
    if (!call.outputs[o].present) continue;
    TensorHash hash{call.outputs[o].name, {}};
    for (const Side side : kSides) {
      const std::size_t s = index_of(side);
      const bool given = gives[s].empty() || gives[s][o];
      if (executions[s]->ending == Ending::kOk && given) hash.hash[s] = hash128(executions[s]->outputs[o]);
    }
    finding.output_hashes.push_back(std::move(hash));
  }
}

void add_words(const std::array<const Execution*, 2>& executions, Finding& finding) {
  std::array<std::string, 2> columns;
  for (const std::size_t s : {0u, 1u}) columns[s] = finding.columns[s].empty() ? finding.paths[s] : finding.columns[s];
  if (columns[0] == columns[1]) columns = {"target", "against"};
  const std::string& note = executions[0]->note;
  if (note == executions[1]->note && !note.empty()) {
    finding.notes.push_back("implementation: " + note);
  } else {
    for (const std::size_t s : {0u, 1u}) {
      if (!executions[s]->note.empty())
        finding.notes.push_back("implementation, " + columns[s] + ": " + executions[s]->note);
    }
  }
  for (const std::size_t s : {0u, 1u}) {
    if (!executions[s]->printed.empty())
      finding.notes.push_back(columns[s] + " printed: " + on_one_line(executions[s]->printed));
  }
}

}  // namespace fusediff
