#include "engine/investigate.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "base/rng.h"
#include "oracle/agreement.h"
#include "oracle/fills.h"

namespace fusediff {
namespace {

constexpr int kReruns = 16;
constexpr int kRerunsWhenRare = 300;  // sees a fault of 1 in 100 with probability 0.95
constexpr int kConfirmations = 3;     // of what follows a fill
// The same of a path that differs by itself: an element that is one of two values by chance is steady in 17 runs and
// steadily the other in 16 more once in 2^31 times.
constexpr int kConfirmationsWhenFlaky = 16;

Execution run_once(const Scene& scene, Side side, const RunChoice& choice) {
  Execution execution;
  scene.sides[index_of(side)]->run(scene.runner, scene.inputs, choice, execution);
  scene.budget.count(execution);
  return execution;
}

// Runs of each of the fills, mixed: what drifts or has a period must not look as if it followed one of them. A list
// is empty where its fills are not wanted, or a run with them does not succeed.
using FillLists = std::array<std::vector<Execution>, 4>;
FillLists run_mixed(const Scene& scene, Side side, std::array<std::optional<Fills>, 4> fills, int times) {
  FillLists lists;
  std::array<std::size_t, 4> order = {0, 1, 2, 3};
  Rng rng(static_cast<std::uint64_t>(times));
  for (int i = 0; i < times; ++i) {
    for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[rng.below(left)]);
    for (const std::size_t f : order) {
      if (!fills[f]) continue;
      lists[f].push_back(run_once(scene, side, {*fills[f], {}, false}));
      if (lists[f].back().ending == Ending::kOk) continue;
      lists[f].clear();
      fills[f].reset();
    }
  }
  return lists;
}

bool is_steady(const std::vector<Execution>& runs) {
  return std::all_of(runs.begin(), runs.end(), [&](const Execution& run) { return run.outputs == runs[0].outputs; });
}

std::vector<const Execution*> pointers(const std::vector<Execution>& runs) {
  std::vector<const Execution*> list;
  for (const Execution& run : runs) list.push_back(&run);
  return list;
}

std::string rate_text(const Rate& rate) {
  std::string text = std::to_string(rate.differing) + " of " + std::to_string(rate.runs) + " reruns differ";
  if (rate.pinned_runs > 0) {
    text += " (" + std::to_string(rate.pinned_differing) + " of the " + std::to_string(rate.pinned_runs) +
            " pinned to one CPU)";
  }
  return text;
}

bool sides_differ(const Call& call, const std::vector<bool>& compared, const Execution& target,
                  const Execution& against) {
  if (target.ending != Ending::kOk || against.ending != Ending::kOk) return true;
  for (std::size_t o = 0; o < call.outputs.size(); ++o) {
    if (!compared[o] || !call.outputs[o].present) continue;
    if (!agrees(call.op->outputs[o], call.outputs[o], target.outputs[o], against.outputs[o])) return true;
  }
  return false;
}

}  // namespace

void rerun_in_the_middle(const Scene& scene, Side side, Judgement& judgement) {
  const Execution& first = *scene.first[index_of(side)];
  if (!first.guard_hit || first.guard_hit->tensor.empty()) return;
  const Execution again = run_once(scene, side, {scene.fills[index_of(side)], first.guard_hit->tensor, false});
  if (again.ending == Ending::kGuardHit && again.guard_hit->tensor == first.guard_hit->tensor) return;
  judge_memory_and_ending(scene.sides[index_of(side)]->call(), again, side, false, judgement);
  if (again.ending == Ending::kOk) judge_own_outputs(scene.call, scene.inputs, again, side, judgement);
}

bool fill_comes_back(const Scene& scene, Side side) {
  Fills fills = scene.fills[index_of(side)];
  fills.output = fills.output == kFirstFills.output ? kSecondFills.output : kFirstFills.output;
  const Execution again = run_once(scene, side, {fills, {}, false});
  const Execution& first = *scene.first[index_of(side)];
  return again.ending != first.ending || again.outputs != first.outputs;
}

void rerun_with_other_fills(const Scene& scene, Side side, Judgement& judgement) {
  const Fills base = scene.fills[index_of(side)];
  const Fills& other = base == kFirstFills ? kSecondFills : kFirstFills;
  const auto with = [&](std::byte Fills::*which) {
    Fills fills = base;
    fills.*which = other.*which;
    return fills;
  };
  const bool has_workspace = scene.first[index_of(side)]->workspace_bytes > 0;
  const std::array<std::optional<Fills>, 4> fills = {
      base, with(&Fills::output), has_workspace ? std::optional(with(&Fills::workspace)) : std::nullopt,
      with(&Fills::guard)};
  FillJudgement found;
  // Once to see whether anything follows a fill, then again as often as it takes to believe it.
  for (const int times : {1, kConfirmations, kConfirmationsWhenFlaky}) {
    FillLists lists = run_mixed(scene, side, fills, times);
    auto& [same, output, workspace, guard] = lists;
    same.insert(same.begin(), *scene.first[index_of(side)]);
    found = judge_fills(scene.call, {pointers(same), pointers(output), pointers(workspace), pointers(guard)}, side);
    if (found.evidence.empty()) break;
    const bool steady = is_steady(same) && is_steady(output) && is_steady(workspace) && is_steady(guard);
    if (steady && times > 1) break;
    if (scene.budget.left()) continue;
    // Too little time to tell chance from a fill: only what keeps every fill is certain.
    if (!steady && times < kConfirmationsWhenFlaky) {
      std::erase_if(found.evidence, [](const Evidence& e) { return e.cls != FindingClass::kUnwritten; });
      std::erase_if(found.ranges, [](const ByteRanges& ranges) { return !ranges.follows.empty(); });
    }
    break;
  }
  for (Evidence& evidence : found.evidence) judgement.evidence.push_back(std::move(evidence));
  for (ByteRanges& ranges : found.ranges) judgement.byte_ranges.push_back(std::move(ranges));
}

bool may_run_again(Ending ending) {
  return ending == Ending::kOk || ending == Ending::kRejected || ending == Ending::kFailed ||
         ending == Ending::kUnsupported;
}

Evidence nondeterminism(const Call& call, std::size_t output, Side side, const std::string& path, const Rate& rate) {
  const bool is_output = output < call.outputs.size();
  return {FindingClass::kNondeterminism,
          "self",
          is_output ? call.outputs[output].name : "",
          is_output ? call.op->outputs[output].stage : std::nullopt,
          side,
          path + " disagrees with itself on fresh contexts with nothing else in flight: " + rate_text(rate)};
}

bool rerun_alike(const Scene& scene, const std::vector<bool>& compared, Judgement& judgement,
                 std::array<Rate, 2>& rates) {
  const auto run = [&](Side side, bool pinned) {
    return run_once(scene, side, {scene.fills[index_of(side)], {}, pinned});
  };
  Again again{scene.call, scene.first, {}, {}, run, scene.budget};
  for (const std::size_t s : {0u, 1u}) {
    again.who[s] = scene.sides[s]->path();
    again.deterministic[s] = scene.sides[s]->call().op->is_deterministic(again.who[s]);
  }
  return rerun_alike(again, compared, judgement, rates);
}

bool rerun_alike(const Again& again, const std::vector<bool>& compared, Judgement& judgement,
                 std::array<Rate, 2>& rates) {
  const Call& call = again.call;
  std::array<std::optional<std::size_t>, 2> differing_output;
  std::array<Execution, 2> usual;  // where the first run was the odd one
  std::array<const Execution*, 2> reference = again.first;
  int wanted = kReruns, differed = 0, made = 0;
  for (int i = 0; i < wanted && again.budget.left(); ++i) {
    const bool pinned = again.pin_half && i % 2 == 1;
    std::array<Execution, 2> runs;
    // Now the one side first, now the other: what has a period must not fall on the same side each time.
    const std::array order = {kSides[static_cast<std::size_t>(i / 2 % 2)],
                              kSides[static_cast<std::size_t>(1 - i / 2 % 2)]};
    for (const Side side : order) {
      const std::size_t s = index_of(side);
      runs[s] = again.run(side, pinned);
      const std::optional<std::size_t> output =
          differs_from_itself(call, *reference[s], runs[s], again.deterministic[s]);
      Rate& rate = rates[s];
      if (i == 0 && output) usual[s] = runs[s];
      if (i == 1 && output && rate.differing == 1 &&
          !differs_from_itself(call, usual[s], runs[s], again.deterministic[s])) {
        reference[s] = &usual[s];
        rate = {3, 1, 0, 0};  // the first, which differs from two alike
        continue;
      }
      ++rate.runs;
      rate.differing += output ? 1 : 0;
      rate.pinned_runs += pinned ? 1 : 0;
      rate.pinned_differing += pinned && output ? 1 : 0;
      if (!output) continue;
      const auto stage = [&](std::size_t o) {
        return o < call.outputs.size() ? call.op->outputs[o].stage.value_or(0) : 0;
      };
      if (!differing_output[s] || stage(*output) < stage(*differing_output[s])) differing_output[s] = output;
    }
    // A difference that one rerun does not show is rare: it takes many to state its rate.
    const bool came_back = sides_differ(call, compared, runs[0], runs[1]);
    differed += came_back ? 1 : 0;
    ++made;
    if (i == 0 && !came_back && sides_differ(call, compared, *again.first[0], *again.first[1]))
      wanted = kRerunsWhenRare;
  }
  for (const Side side : kSides) {
    const std::size_t s = index_of(side);
    if (!differing_output[s]) continue;
    judgement.evidence.push_back(nondeterminism(call, *differing_output[s], side, again.who[s], rates[s]));
  }
  return differed == made;
}

}  // namespace fusediff
