#include "engine/judge.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "model/number_text.h"
#include "oracle/always.h"
#include "oracle/bits.h"
#include "oracle/decide.h"
#include "oracle/memory.h"
#include "oracle/status.h"

namespace fusediff {
namespace {

std::string difference_text(const Difference& d) {
  std::string what = d.output + " differs in " + std::to_string(d.differing) + " of " + std::to_string(d.elements) +
                     (d.elements == 1 ? " element" : " elements");
  if (d.cls == FindingClass::kZeroSign) return what + ", only in the sign of zero";
  if (d.cls == FindingClass::kNanBits) return what + ", only in NaN payload or sign";
  what += d.max_ulp == UINT64_MAX ? ", a NaN against a number among them" : ", by at most " + ulp_words(d.max_ulp);
  if (!d.error || d.cls == FindingClass::kNonFinite) return what;
  return what + "; error against the f64 truth " + short_decimal((*d.error)[0]) + " ULP (target), " +
         short_decimal((*d.error)[1]) + " ULP (against)";
}

// Rows whose picks differ, and the stage of the pick: what comes later differs there as a consequence.
struct OtherPicks {
  FindingClass cls;
  std::optional<int> stage;
  std::string pick;
  std::vector<bool> rows;
};

// Picks that differ by right, because any of equals will do.
struct FreePicks {
  std::string pick, values;
  std::optional<int> stage;    // of the pick
  std::vector<bool> elements;  // of pick and values
  std::vector<bool> rows;
};

// [elements of the output] true where a free pick accounts for any difference: in pick and values themselves, and in
// the same rows of what is computed later. Empty where none does.
std::vector<bool> freed(const std::vector<FreePicks>& picks, const OutputRule& rule, const Tensor& tensor) {
  std::vector<bool> skip;
  for (const FreePicks& pick : picks) {
    const std::size_t n = static_cast<std::size_t>(element_count(tensor));
    if (tensor.name == pick.pick || (tensor.name == pick.values && n == pick.elements.size())) {
      skip.resize(n, false);
      for (std::size_t i = 0; i < n; ++i) skip[i] = skip[i] || pick.elements[i];
    } else if (rule.stage && pick.stage && *rule.stage > *pick.stage) {
      skip.resize(n, false);
      const std::size_t columns = n % pick.rows.size() == 0 ? n / pick.rows.size() : 0;  // 0: it mixes the rows
      for (std::size_t i = 0; i < n; ++i) skip[i] = skip[i] || columns == 0 || pick.rows[i / columns];
    }
  }
  return skip;
}

void judge_picks(const Call& call, std::span<const std::span<const std::byte>> inputs, const Execution& target,
                 const Execution& against, std::vector<FreePicks>& free, std::vector<OtherPicks>& other_picks,
                 Judgement& judgement) {
  for (std::size_t rule = 0; rule < call.op->decide.size(); ++rule) {
    const Decision a = decision_of(call, rule, inputs, target), b = decision_of(call, rule, inputs, against);
    PickJudgement picks = compare_picks(call, a, b);
    if (!picks.free.empty()) {
      const DecideRule& decide = call.op->decide[rule];
      free.push_back({decide.pick, decide.values, call.op->output(decide.pick)->stage, std::move(picks.free),
                      std::move(picks.free_rows)});
    }
    if (picks.evidence) {
      other_picks.push_back(
          {picks.evidence->cls, picks.evidence->stage, picks.evidence->tensor, std::move(picks.rows)});
      judgement.evidence.push_back(std::move(*picks.evidence));
    }
    if (picks.flip) judgement.flips.push_back(std::move(*picks.flip));
  }
}

// The other pick that explains all of this output's differences, if there is one.
const OtherPicks* explained_by(const std::vector<OtherPicks>& picks, const OutputRule& rule, const Tensor& tensor,
                               const Execution& target, const Execution& against, std::size_t output,
                               std::vector<bool> skip) {
  for (const OtherPicks& pick : picks) {
    if (pick.pick == tensor.name) return &pick;
    if (!rule.stage || !pick.stage || *rule.stage <= *pick.stage || tensor.shape.empty()) continue;
    const std::size_t n = static_cast<std::size_t>(element_count(tensor));
    if (pick.rows.empty() || n % pick.rows.size() != 0) return &pick;  // no rows to tell apart: it comes after the pick
    skip.resize(n, false);
    const std::size_t columns = n / pick.rows.size();
    for (std::size_t i = 0; i < n; ++i) {
      if (pick.rows[i / columns]) skip[i] = true;
    }
    if (!compare_output(rule, tensor, target.outputs[output], against.outputs[output], skip)) return &pick;
  }
  return nullptr;
}

std::uint64_t output_bits(const Tensor& tensor, const std::vector<std::byte>& bytes, std::int64_t i) {
  return load_bits(tensor.dtype, bytes.data() + static_cast<std::size_t>(i) * size_of(tensor.dtype));
}

// The row's sum of a float output, rounded once to its dtype (every term and, short of 2^29 terms of f32, the sum is
// exact in double for terms of like size).
double row_sum(const Tensor& tensor, const std::vector<std::byte>& bytes, std::int64_t row) {
  const std::int64_t columns = tensor.shape.back();
  double sum = 0;
  for (std::int64_t i = row * columns; i < (row + 1) * columns; ++i)
    sum += float_value(tensor.dtype, output_bits(tensor, bytes, i));
  return float_value(tensor.dtype, round_to_bits(tensor.dtype, sum));
}

// What fed the rank, and what followed from the pick: the outputs that have the ranked shape, and the picks' shape.
void explain_flip(const Call& call, const Execution& target, const Execution& against,
                  const std::vector<bool>& compared, Flip& flip) {
  const Tensor* by = nullptr;
  const Tensor* pick = nullptr;
  for (const std::vector<Tensor>* tensors : {&call.outputs, &call.inputs}) {
    for (const Tensor& tensor : *tensors) {
      if (tensor.name == flip.by) by = &tensor;
      if (tensor.name == flip.pick) pick = &tensor;
    }
  }
  if (by == nullptr || pick == nullptr || by->shape.empty() || pick->shape.empty()) return;
  const std::array<const Execution*, 2> sides = {&target, &against};
  for (std::size_t o = 0; o < call.outputs.size(); ++o) {
    const Tensor& output = call.outputs[o];
    if (!output.present || !compared[o] || !is_float(output.dtype) || target.outputs[o].empty()) continue;
    if (output.shape == by->shape && flip.by_is_known) {
      Flip::Stage stage{output.name, output.dtype, {}};
      for (const std::size_t s : {0u, 1u}) {
        for (const std::size_t whose : {0u, 1u}) {
          stage.bits[s][whose] =
              output_bits(output, sides[s]->outputs[o], flip.row * by->shape.back() + flip.picked[whose]);
        }
      }
      flip.stages.push_back(stage);
    } else if (output.shape == pick->shape) {
      flip.sums.push_back(
          {output.name, {row_sum(output, target.outputs[o], flip.row), row_sum(output, against.outputs[o], flip.row)}});
    }
  }
}

// Is there a candidate of that index? The ranked tensor has its shape although a side may not give it.
bool is_candidate(const Call& call, const Flip& flip, std::int64_t pick) {
  for (const std::vector<Tensor>* tensors : {&call.outputs, &call.inputs}) {
    for (const Tensor& tensor : *tensors) {
      if (tensor.name == flip.by) return pick >= 0 && pick < (tensor.shape.empty() ? 1 : tensor.shape.back());
    }
  }
  return false;
}

// Where the ranks are not to be had, an earlier stage that differs explains another pick; nothing else could.
void explain_by_earlier_stages(const Call& call, Judgement& judgement) {
  for (Evidence& evidence : judgement.evidence) {
    const bool unknown = std::any_of(judgement.flips.begin(), judgement.flips.end(), [&](const Flip& flip) {
      return !flip.by_is_known && flip.pick == evidence.tensor && evidence.oracle == "decide" && !evidence.accused &&
             is_candidate(call, flip, flip.picked[0]) && is_candidate(call, flip, flip.picked[1]);
    });
    if (!unknown || evidence.cls != FindingClass::kWrongPick) continue;
    const bool explained =
        std::any_of(judgement.differences.begin(), judgement.differences.end(), [&](const Difference& d) {
          return d.stage && evidence.stage && *d.stage < *evidence.stage && d.cls != FindingClass::kNanBits;
        });
    if (explained) evidence.cls = FindingClass::kFlip;
  }
}

void add(std::vector<Evidence> seen, Judgement& judgement) {
  for (Evidence& evidence : seen) judgement.evidence.push_back(std::move(evidence));
}

}  // namespace

void judge_memory_and_ending(const Call& call, const Execution& execution, Side side, bool outside,
                             Judgement& judgement) {
  std::optional<Evidence> ending = judge_ending(execution, side, outside);
  if (ending) judgement.evidence.push_back(std::move(*ending));
  add(judge_memory(call, execution, side), judgement);
}

void judge_own_outputs(const Call& call, std::span<const std::span<const std::byte>> inputs, const Execution& execution,
                       Side side, Judgement& judgement) {
  add(judge_always(call, inputs, execution, side), judgement);
  for (std::size_t rule = 0; rule < call.op->decide.size(); ++rule) {
    add(judge_own_picks(call, decision_of(call, rule, inputs, execution), side), judgement);
  }
}

void judge_outputs(const Call& call, std::span<const std::span<const std::byte>> inputs, const Execution& target,
                   const Execution& against, const std::vector<bool>& compared, const Truth* truth,
                   Judgement& judgement) {
  std::vector<FreePicks> free;
  std::vector<OtherPicks> other_picks;
  judge_picks(call, inputs, target, against, free, other_picks, judgement);
  for (Flip& flip : judgement.flips) explain_flip(call, target, against, compared, flip);
  for (std::size_t o = 0; o < call.outputs.size(); ++o) {
    const Tensor& tensor = call.outputs[o];
    if (!tensor.present || !compared[o]) continue;
    const std::vector<bool> skip = freed(free, call.op->outputs[o], tensor);
    std::optional<Difference> d =
        compare_output(call.op->outputs[o], tensor, target.outputs[o], against.outputs[o], skip);
    if (!d) continue;
    if (d->cls == FindingClass::kNanBits && !call.op->outputs[o].nan_bits) continue;
    const OtherPicks* pick = explained_by(other_picks, call.op->outputs[o], tensor, target, against, o, skip);
    if (pick != nullptr) {
      d->cls = pick->cls;
      d->follows_pick = true;
      d->judged_by = pick->pick == tensor.name ? "by the ranks" : "a consequence of the other pick";
    } else {
      std::optional<Side> accused;
      if (truth != nullptr)
        classify(*d, call, o, target.outputs[o], against.outputs[o], truth->outputs[o], skip, accused);
      judgement.evidence.push_back({d->cls, "bits", tensor.name, d->stage, accused, difference_text(*d)});
    }
    judgement.differences.push_back(std::move(*d));
  }
  explain_by_earlier_stages(call, judgement);
}

void rank_evidence(const Call& call, Judgement& judgement) {
  const auto place = [&](const std::string& tensor) {
    for (std::size_t o = 0; o < call.outputs.size(); ++o) {
      if (call.outputs[o].name == tensor) return o;
    }
    return call.outputs.size();
  };
  std::stable_sort(judgement.evidence.begin(), judgement.evidence.end(), [&](const Evidence& a, const Evidence& b) {
    return std::make_tuple(a.cls, a.stage.value_or(0), place(a.tensor)) <
           std::make_tuple(b.cls, b.stage.value_or(0), place(b.tensor));
  });
  std::stable_sort(judgement.differences.begin(), judgement.differences.end(),
                   [&](const Difference& a, const Difference& b) {
                     return std::make_tuple(a.stage.value_or(0), place(a.output)) <
                            std::make_tuple(b.stage.value_or(0), place(b.output));
                   });
}

std::optional<int> stage_to_blame(const Judgement& judgement) {
  std::optional<int> lowest;
  for (const Difference& d : judgement.differences) {
    if (!d.stage || d.cls == FindingClass::kNanBits)
      continue;  // a pick's own stage is blamed when nothing before it differs
    if (!lowest || *d.stage < *lowest) lowest = d.stage;
  }
  return lowest;
}

}  // namespace fusediff
