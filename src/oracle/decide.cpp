#include "oracle/decide.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "model/expand.h"
#include "model/number_text.h"
#include "oracle/ranks.h"

namespace fusediff {
namespace {

std::int64_t columns_of(const Tensor& tensor) { return tensor.shape.empty() ? 1 : tensor.shape.back(); }

std::int64_t rows_of(const Tensor& tensor) {
  const std::int64_t columns = columns_of(tensor);
  return columns == 0 ? 0 : element_count(tensor) / columns;
}

std::int64_t integer_at(const Tensor& tensor, std::span<const std::byte> bytes, std::int64_t i) {
  return integer_value(tensor.dtype,
                       load_bits(tensor.dtype, bytes.data() + static_cast<std::size_t>(i) * size_of(tensor.dtype)));
}

std::uint64_t bits_at(const Tensor& tensor, std::span<const std::byte> bytes, std::int64_t i) {
  return load_bits(tensor.dtype, bytes.data() + static_cast<std::size_t>(i) * size_of(tensor.dtype));
}

struct Found {
  const Tensor* tensor = nullptr;
  std::span<const std::byte> bytes;
  bool is_input = false;
};

Found find(const Call& call, const std::string& name, std::span<const std::span<const std::byte>> inputs,
           const Execution& e) {
  for (std::size_t o = 0; o < call.outputs.size(); ++o) {
    if (call.outputs[o].name == name) {
      return {&call.outputs[o],
              call.outputs[o].present ? std::span<const std::byte>(e.outputs[o]) : std::span<const std::byte>()};
    }
  }
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i].name == name) {
      return {&call.inputs[i], call.inputs[i].present ? inputs[i] : std::span<const std::byte>(), true};
    }
  }
  return {};
}

bool attr_is_true(const Call& call, const std::string& name) {
  for (const CallAttr& attr : call.attrs) {
    if (attr.name == name && std::holds_alternative<std::int64_t>(attr.value))
      return std::get<std::int64_t>(attr.value) != 0;
  }
  return true;
}

// How the picks of one row relate to its keys.
struct Row {
  std::int64_t worst = INT64_MAX;  // key of the last rank picked
  std::int64_t worst_index = -1;   // the largest index picked with that key
  std::int64_t picked = 0;
  std::int64_t above = 0;  // picks better than the worst
  std::string wrong;       // what is wrong with it, "" when nothing is
};

std::string at_slot(std::int64_t slot) { return "slot " + std::to_string(slot); }

Row read_picks(const Decision& d, std::int64_t row, const std::vector<std::int64_t>& keys) {
  const std::int64_t slots = columns_of(*d.pick);
  const std::int64_t n = static_cast<std::int64_t>(keys.size());
  Row result;
  std::int64_t previous = -1, first_empty = -1;
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    const std::int64_t pick = integer_at(*d.pick, d.pick_bytes, row * slots + slot);
    if (d.rule->has_none && pick == d.rule->none && (pick < 0 || pick >= n)) {
      if (first_empty < 0) first_empty = slot;
      continue;
    }
    if (pick < 0 || pick >= n) {
      result.wrong = at_slot(slot) + " picks " + std::to_string(pick) + " of " + std::to_string(n) + " candidates";
      return result;
    }
    const std::int64_t key = keys[static_cast<std::size_t>(pick)];
    if (key == kNeverPicked) {
      result.wrong = at_slot(slot) + " picks " + std::to_string(pick) + ", which must never be picked";
      return result;
    }
    for (std::int64_t before = 0; before < slot; ++before) {
      if (integer_at(*d.pick, d.pick_bytes, row * slots + before) == pick) {
        result.wrong = std::to_string(pick) + " is picked twice, in slots " + std::to_string(before) + " and " +
                       std::to_string(slot);
        return result;
      }
    }
    if (d.rule->sorted && first_empty >= 0) {
      result.wrong = at_slot(slot) + " holds " + std::to_string(pick) + " behind the empty " + at_slot(first_empty);
      return result;
    }
    if (d.rule->sorted && previous >= 0) {
      const std::int64_t key_before = keys[static_cast<std::size_t>(previous)];
      if (key > key_before || (key == key_before && d.rule->tie_lowest_index && pick < previous)) {
        result.wrong = at_slot(slot) + " holds " + std::to_string(pick) + ", which ranks before " +
                       std::to_string(previous) + " in the slot before it";
        return result;
      }
    }
    previous = pick;
    ++result.picked;
    if (key < result.worst) {
      result.worst = key;
      result.worst_index = pick;
    } else if (key == result.worst) {
      result.worst_index = std::max(result.worst_index, pick);
    }
  }
  return result;
}

void check_left_out(const Decision& d, std::int64_t row, const std::vector<std::int64_t>& keys, Row& result) {
  const std::int64_t n = static_cast<std::int64_t>(keys.size());
  std::int64_t eligible = 0;
  for (const std::int64_t key : keys) eligible += static_cast<std::int64_t>(key != kNeverPicked);
  const std::int64_t wanted = std::min(std::min(d.count, columns_of(*d.pick)), eligible);
  if (result.picked != wanted) {
    result.wrong = "picks " + std::to_string(result.picked) + " where " + std::to_string(wanted) + " must be picked";
    return;
  }
  if (result.picked == 0) return;
  // Better ones left out show in two counts, which run as vectors; only then the one left out is looked for.
  std::int64_t better = 0, equal_before = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    better += static_cast<std::int64_t>(keys[static_cast<std::size_t>(i)] > result.worst);
    equal_before +=
        static_cast<std::int64_t>(keys[static_cast<std::size_t>(i)] == result.worst && i <= result.worst_index);
  }
  const std::int64_t slots = columns_of(*d.pick);
  std::vector<std::int64_t> picks;
  std::int64_t picked_better = 0;
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    const std::int64_t pick = integer_at(*d.pick, d.pick_bytes, row * slots + slot);
    if (pick < 0 || pick >= n) continue;
    picked_better += static_cast<std::int64_t>(keys[static_cast<std::size_t>(pick)] > result.worst);
  }
  const bool tie_broken = d.rule->tie_lowest_index && equal_before != result.picked - picked_better;
  if (better == picked_better && !tie_broken) return;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t key = keys[static_cast<std::size_t>(i)];
    const bool first =
        key > result.worst || (d.rule->tie_lowest_index && key == result.worst && i < result.worst_index);
    if (!first || key == kNeverPicked) continue;
    bool picked = false;
    for (std::int64_t slot = 0; slot < slots && !picked; ++slot)
      picked = integer_at(*d.pick, d.pick_bytes, row * slots + slot) == i;
    if (picked) continue;
    result.wrong = std::to_string(i) + " is left out although it " +
                   (key > result.worst ? "ranks above " : "ties with, and stands before, ") +
                   std::to_string(result.worst_index) + ", which is picked";
    return;
  }
}

Row judge_row(const Decision& d, std::int64_t row, std::vector<std::int64_t>& keys) {
  rank_keys(d, row, keys);
  Row result = read_picks(d, row, keys);
  if (result.wrong.empty()) check_left_out(d, row, keys, result);
  return result;
}

bool can_judge(const Decision& d) {
  return d.by != nullptr && d.pick != nullptr && !d.by_bytes.empty() && !d.pick_bytes.empty() &&
         !is_float(d.pick->dtype) && rows_of(*d.by) == rows_of(*d.pick);
}

void judge_values(const Call& call, const Decision& d, Side side, std::vector<Evidence>& seen) {
  if (d.values == nullptr || d.value_bytes.empty() || d.values->dtype != d.by->dtype) return;
  if (element_count(*d.values) != element_count(*d.pick)) return;
  const std::int64_t slots = columns_of(*d.pick), n = columns_of(*d.by);
  std::optional<Evidence> mildest;
  for (std::int64_t i = 0; i < rows_of(*d.pick) * slots; ++i) {
    const std::int64_t pick = integer_at(*d.pick, d.pick_bytes, i);
    if (pick < 0 || pick >= n) continue;
    const std::uint64_t expected = bits_at(*d.by, d.by_bytes, i / slots * n + pick),
                        got = bits_at(*d.values, d.value_bytes, i);
    if (got == expected || (is_nan(d.by->dtype, got) && is_nan(d.by->dtype, expected))) continue;
    const bool zero = is_zero(d.by->dtype, got) && is_zero(d.by->dtype, expected);
    if (zero && mildest) continue;
    mildest = Evidence{zero ? FindingClass::kZeroSign : FindingClass::kWrongPick,
                       "decide",
                       d.values->name,
                       call.op->output(d.values->name)->stage,
                       side,
                       d.values->name + " holds " + decimal(d.by->dtype, got) + " in row " + std::to_string(i / slots) +
                           ", " + at_slot(i % slots) + ", not the rank " + decimal(d.by->dtype, expected) +
                           " of its pick " + std::to_string(pick)};
    if (!zero) break;
  }
  if (mildest) seen.push_back(std::move(*mildest));
}

std::optional<int> pick_stage(const Call& call, const Decision& d) { return call.op->output(d.pick->name)->stage; }

// Ranks of both sides at both picks, and what fed them, are filled in by the engine's caller; here the ranks.
Flip flip_at(const Decision& target, const Decision& against, std::int64_t row, std::int64_t slot) {
  const std::int64_t slots = columns_of(*target.pick), n = columns_of(*target.by);
  Flip flip;
  flip.pick = target.pick->name;
  flip.by = target.by->name;
  flip.by_dtype = target.by->dtype;
  flip.row = row;
  flip.slot = slot;
  flip.picked = {integer_at(*target.pick, target.pick_bytes, row * slots + slot),
                 integer_at(*against.pick, against.pick_bytes, row * slots + slot)};
  const std::array<const Decision*, 2> sides = {&target, &against};
  flip.by_is_known = !target.by_bytes.empty() && !against.by_bytes.empty();
  for (const std::int64_t pick : flip.picked) flip.by_is_known = flip.by_is_known && pick >= 0 && pick < n;
  if (!flip.by_is_known) return flip;
  for (const std::size_t s : {0u, 1u}) {
    for (const std::size_t whose : {0u, 1u})
      flip.rank_bits[s][whose] = bits_at(*sides[s]->by, sides[s]->by_bytes, row * n + flip.picked[whose]);
    flip.gap_ulp[s] = ulp_distance(flip.by_dtype, flip.rank_bits[s][0], flip.rank_bits[s][1]);
  }
  return flip;
}

// The first slot from `slot` on where the picks differ and are not equals in both rankings; the number of slots where
// there is none. REQUIRES: any of equals may be picked, slot j is the j-th best, each side follows its own ranking.
std::int64_t first_unequal(const Decision& target, const Decision& against, std::int64_t row, std::int64_t slot) {
  std::vector<std::int64_t> a, b;
  rank_keys(target, row, a);
  rank_keys(against, row, b);
  const std::int64_t slots = columns_of(*target.pick);
  const auto n = static_cast<std::int64_t>(a.size());
  for (; slot < slots; ++slot) {
    const std::int64_t p = integer_at(*target.pick, target.pick_bytes, row * slots + slot);
    const std::int64_t q = integer_at(*against.pick, against.pick_bytes, row * slots + slot);
    if (p == q) continue;
    if (p < 0 || q < 0 || p >= n || q >= n) return slot;
    const auto pick = static_cast<std::size_t>(p), other = static_cast<std::size_t>(q);
    if (a[pick] != a[other] || b[pick] != b[other]) return slot;
  }
  return slots;
}

// By the rule's own words the two rows of picks are equally right: any of equals, or the same picks in any order.
bool is_free_choice(const Decision& target, const Decision& against, std::int64_t row) {
  const std::int64_t slots = columns_of(*target.pick);
  if (!target.rule->tie_lowest_index) {
    std::vector<std::int64_t> a, b;
    rank_keys(target, row, a);
    rank_keys(against, row, b);
    if (a == b) return true;
    if (target.rule->sorted) return first_unequal(target, against, row, 0) == slots;
  }
  if (target.rule->sorted) return false;
  std::vector<std::int64_t> a, b;
  for (std::int64_t i = row * slots; i < (row + 1) * slots; ++i) {
    a.push_back(integer_at(*target.pick, target.pick_bytes, i));
    b.push_back(integer_at(*against.pick, against.pick_bytes, i));
  }
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}

std::string picks_text(const Flip& flip) {
  return "row " + std::to_string(flip.row) + ", " + at_slot(flip.slot) + ": target picks " +
         std::to_string(flip.picked[0]) + ", against picks " + std::to_string(flip.picked[1]);
}

std::string gaps_text(const Flip& flip) {
  const auto gap = [&](std::size_t side) {
    return flip.gap_ulp[side] == 0 ? std::string("equal") : ulp_words(flip.gap_ulp[side]) + " apart";
  };
  return "the two ranks are " + gap(0) + " on the target side and " + gap(1) + " on the against side";
}

}  // namespace

Decision decision_of(const Call& call, std::size_t rule_index, std::span<const std::span<const std::byte>> inputs,
                     const Execution& execution) {
  const DecideRule& rule = call.op->decide[rule_index];
  Decision d;
  d.rule = &rule;
  const Found by = find(call, rule.by, inputs, execution), pick = find(call, rule.pick, inputs, execution);
  d.by = by.tensor;
  d.by_bytes = by.bytes;
  if (by.is_input && by.tensor->present && stored_count(*by.tensor) != element_count(*by.tensor)) {
    d.full = expanded(*by.tensor, by.bytes);
    d.by_bytes = d.full;
  }
  d.pick = pick.tensor;
  d.pick_bytes = pick.bytes;
  if (!rule.values.empty()) {
    const Found values = find(call, rule.values, inputs, execution);
    d.values = values.tensor;
    d.value_bytes = values.bytes;
  }
  if (!rule.among.empty()) {
    const Found among = find(call, rule.among, inputs, execution);
    d.among = among.tensor;
    d.among_bytes = among.bytes;
  }
  const Result<std::int64_t> count = call.evaluate(rule.count);
  d.count = count.ok() ? *count : 0;
  d.largest = rule.order == Order::kLargest || (rule.order == Order::kByAttr && attr_is_true(call, rule.order_attr));
  return d;
}

std::vector<Evidence> judge_own_picks(const Call& call, const Decision& d, Side side) {
  std::vector<Evidence> seen;
  if (!can_judge(d)) return seen;
  std::vector<std::int64_t> keys;
  for (std::int64_t row = 0; row < rows_of(*d.pick); ++row) {
    const Row judged = judge_row(d, row, keys);
    if (judged.wrong.empty()) continue;
    seen.push_back({FindingClass::kWrongPick, "decide", d.pick->name, pick_stage(call, d), side,
                    d.pick->name + " does not follow from the side's own " + d.by->name + ": row " +
                        std::to_string(row) + ", " + judged.wrong});
    break;
  }
  judge_values(call, d, side, seen);
  return seen;
}

PickJudgement compare_picks(const Call& call, const Decision& target, const Decision& against) {
  PickJudgement judgement;
  if (target.pick == nullptr || target.by == nullptr || target.pick_bytes.size() != against.pick_bytes.size() ||
      std::equal(target.pick_bytes.begin(), target.pick_bytes.end(), against.pick_bytes.begin())) {
    return judgement;
  }
  const std::int64_t slots = columns_of(*target.pick), rows = rows_of(*target.pick);
  const bool judged = can_judge(target) && can_judge(against);
  std::vector<std::int64_t> keys;
  std::int64_t flips = 0, wrongs = 0;
  judgement.rows.assign(static_cast<std::size_t>(rows), false);
  std::optional<Flip> first_flip, first_wrong;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t slot = 0;
    const auto differs = [&](std::int64_t s) {
      return integer_at(*target.pick, target.pick_bytes, row * slots + s) !=
             integer_at(*against.pick, against.pick_bytes, row * slots + s);
    };
    while (slot < slots && !differs(slot)) ++slot;
    if (slot == slots) continue;
    const bool follows =
        judged && judge_row(target, row, keys).wrong.empty() && judge_row(against, row, keys).wrong.empty();
    // Each side follows from its own ranking: then either the rankings differ, or equals may be picked freely.
    if (follows && is_free_choice(target, against, row)) {
      judgement.free.resize(static_cast<std::size_t>(rows * slots), false);
      judgement.free_rows.resize(static_cast<std::size_t>(rows), false);
      judgement.free_rows[static_cast<std::size_t>(row)] = true;
      for (std::int64_t s = 0; s < slots; ++s) {
        if (differs(s)) judgement.free[static_cast<std::size_t>(row * slots + s)] = true;
      }
      continue;
    }
    judgement.rows[static_cast<std::size_t>(row)] = true;
    std::optional<Flip>& first = follows ? first_flip : first_wrong;
    ++(follows ? flips : wrongs);
    if (follows && !target.rule->tie_lowest_index && target.rule->sorted)
      slot = first_unequal(target, against, row, slot);
    if (!first) first = flip_at(target, against, row, slot);
  }
  if (flips + wrongs == 0) return judgement;
  judgement.flip = first_flip ? first_flip : first_wrong;
  judgement.flip->rows = flips + wrongs;
  const FindingClass cls = first_flip ? FindingClass::kFlip : FindingClass::kWrongPick;
  std::string what = picks_text(*judgement.flip);
  what +=
      judgement.flip->by_is_known ? "; " + gaps_text(*judgement.flip) : "; the ranks of both sides are not to be had";
  judgement.evidence = Evidence{cls, "decide", target.pick->name, pick_stage(call, target), {}, what};
  return judgement;
}

std::uint8_t smallest_gap(const Decision& d) {
  std::uint64_t smallest = UINT64_MAX;
  if (!can_judge(d)) return 255;
  std::vector<std::int64_t> keys;
  for (std::int64_t row = 0; row < rows_of(*d.pick); ++row) {
    const std::int64_t slots = std::min(columns_of(*d.pick), d.count);
    rank_keys(d, row, keys);
    if (slots <= 0 || slots >= static_cast<std::int64_t>(keys.size())) continue;
    std::nth_element(keys.begin(), keys.begin() + slots, keys.end(), std::greater<>());
    const std::int64_t out = keys[static_cast<std::size_t>(slots)];
    const std::int64_t in = *std::min_element(keys.begin(), keys.begin() + slots);
    if (out == kNeverPicked || in == kNeverPicked) continue;
    smallest = std::min(smallest, static_cast<std::uint64_t>(in) - static_cast<std::uint64_t>(out));
  }
  return smallest == UINT64_MAX ? std::uint8_t{255} : static_cast<std::uint8_t>(std::bit_width(smallest));
}

}  // namespace fusediff
