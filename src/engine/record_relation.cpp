// What a relation lays beside each other, written down: the runs, and which of their elements must hold the same bits.
// Which those are is learned from the relation itself: its outputs are composed once more from numbered elements.
#include <algorithm>
#include <map>
#include <utility>

#include "engine/not_offered.h"
#include "engine/record_parts.h"
#include "engine/relation.h"

namespace fusediff {
namespace {

constexpr int kLooks = 8;  // at a relation that does not show at once

// Where an element of a composed output comes from.
struct Origin {
  std::uint32_t call = 0;   // of the way
  std::uint32_t index = 0;  // logical, in that call's output
  bool operator==(const Origin&) const = default;
};

// Numbers of elements, a byte of them at a time, so that they fit any dtype.
constexpr std::array kPlanes = {0, 8, 16, 24, -1};  // shift within the index; -1: the call

std::vector<std::vector<Bytes>> plane_of(const Way& way, int shift) {
  std::vector<std::vector<Bytes>> calls;
  for (std::size_t k = 0; k < way.calls.size(); ++k) {
    std::vector<Bytes>& outputs = calls.emplace_back();
    for (const Tensor& tensor : way.calls[k].call.outputs) {
      Bytes& bytes = outputs.emplace_back();
      if (!tensor.present) continue;
      const std::size_t size = size_of(tensor.dtype), count = static_cast<std::size_t>(element_count(tensor));
      bytes.resize(count * size);
      for (std::size_t i = 0; i < count; ++i) {
        const auto digit = static_cast<std::byte>((shift < 0 ? k : i >> shift) & 255);
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(i * size), size, digit);
      }
    }
  }
  return calls;
}

using Origins = std::vector<std::vector<Origin>>;  // [judged.outputs][element]; empty where not compared

Origins origins_of(const Way& way, const Call& judged, const Compose& compose) {
  Origins origins(judged.outputs.size());
  for (const int shift : kPlanes) {
    const std::vector<std::vector<Bytes>> calls = plane_of(way, shift);
    const std::vector<Bytes> composed = compose(calls);
    for (std::size_t o = 0; o < origins.size() && o < composed.size(); ++o) {
      const std::size_t size = size_of(judged.outputs[o].dtype);
      origins[o].resize(composed[o].size() / size);
      for (std::size_t i = 0; i < origins[o].size(); ++i) {
        const auto digit = std::to_integer<std::uint32_t>(composed[o][i * size]);
        (shift < 0 ? origins[o][i].call : origins[o][i].index) |= shift < 0 ? digit : digit << shift;
      }
    }
  }
  return origins;
}

Compose compose_of(const Way& way) {
  if (way.compose) return way.compose;
  return [](std::span<const std::vector<Bytes>> calls) { return calls[0]; };
}

bool counts_up(const std::vector<std::int64_t>& elements, std::int64_t count) {
  if (static_cast<std::int64_t>(elements.size()) != count) return false;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (elements[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

// The elements of one output in both ways, by the pair of calls that they come from. first: [way] index of its first
// call among the recorded ones.
void add_same(const std::string& output, const std::array<const std::vector<Origin>*, 2>& origins,
              const std::array<int, 2>& first, Recording& recording) {
  std::map<std::array<int, 2>, SameBits> by_calls;
  for (std::size_t i = 0; i < origins[0]->size(); ++i) {
    const std::array<Origin, 2> of = {(*origins[0])[i], (*origins[1])[i]};
    const std::array<int, 2> call = {first[0] + static_cast<int>(of[0].call), first[1] + static_cast<int>(of[1].call)};
    if (call[0] == call[1] && of[0].index == of[1].index) continue;
    SameBits& same = by_calls[call];
    same.output = output;
    same.call = call;
    for (const std::size_t w : {0u, 1u}) same.elements[w].push_back(of[w].index);
  }
  for (auto& [call, same] : by_calls) {
    bool all = true;
    for (const std::size_t w : {0u, 1u}) {
      const RecordedCall& made = recording.calls[0][static_cast<std::size_t>(call[w])];
      const auto tensor =
          std::find_if(made.outputs.begin(), made.outputs.end(), [&](const Tensor& t) { return t.name == output; });
      all = all && counts_up(same.elements[w], element_count(*tensor));
    }
    if (all) same.elements = {};
    recording.same.push_back(std::move(same));
  }
}

}  // namespace

void RelationCheck::record_way(const Way& way, Recording& recording) const {
  for (const PathCall& call : way.calls) {
    std::vector<RecordedCall>& calls = recording.calls[0];
    const std::string prefix = calls.empty() ? "" : "calls/" + std::to_string(calls.size() - 1) + "/";
    RecordedCall made = recorded_call(call.call, path_.path);
    made.pinned = call.pinned;
    const std::vector<std::span<const std::byte>> views(call.inputs->begin(), call.inputs->end());
    store_other_inputs(call.call, views, prefix, made, recording);
    calls.push_back(std::move(made));
  }
}

// REQUIRES: the plain way is recorded first, unless the rows of a run are held to themselves.
void RelationCheck::record_odd(std::size_t odd, Recording& recording) const {
  const Question& question = asking_.question;
  const Way& way = question.odd[odd];
  const int first = static_cast<int>(recording.calls[0].size());
  record_way(way, recording);
  if (asking_.even && asking_.blind.empty()) return;  // nobody has found out which rows
  const Origins own = origins_of(way, question.judged, compose_of(way));
  Origins plain = own;
  if (asking_.even) {
    plain = origins_of(way, question.judged, [&](std::span<const std::vector<Bytes>> calls) {
      return levelled(question.judged, calls[0], asking_.blind);
    });
  } else {
    plain = origins_of(question.plain, question.judged, compose_of(question.plain));
  }
  for (std::size_t o = 0; o < question.compared.size(); ++o) {
    if (!question.compared[o]) continue;
    add_same(question.judged.outputs[o].name, {&own[o], &plain[o]}, {first, asking_.even ? first : 0}, recording);
  }
}

void RelationCheck::record_outputs(Recording& recording) {
  const Question& question = asking_.question;
  const auto outputs = [&](std::size_t which) { return seen_[which].together.outputs; };
  for (const std::size_t which : {std::size_t{kOdd}, std::size_t{kPlain}}) {
    if (!seen_[which].ok()) continue;
    store_outputs(question.judged, outputs(which), question.compared, prefix_of(kSides[which]), recording);
  }
  if (subject_.c.unwanted.empty() || asking_.even || !seen_[kOdd].ok() || !seen_[kPlain].ok()) return;
  // The stages that the case does not ask for, where asking changes nothing else.
  const Asking narrow = asking_;
  const std::array<std::vector<Bytes>, 2> before = {outputs(kOdd), outputs(kPlain)};
  Case fuller = subject_.c;
  fuller.unwanted.clear();
  std::variant<Prepared, Unprepared> made = prepare(fuller, *subject_.prepared.call.op, subject_.comparison,
                                                    subject_.options, subject_.runner, subject_.draws);
  Prepared* prepared = std::get_if<Prepared>(&made);
  if (prepared == nullptr) return;
  std::variant<Asking, Verdict> asked = ask_of(fuller, std::make_shared<const Prepared>(std::move(*prepared)));
  Asking* more = std::get_if<Asking>(&asked);
  if (more == nullptr || more->question.odd.size() <= odd_) return;
  asking_ = std::move(*more);
  const std::array<Seen, 2> seen = {run_way(asking_.question.odd[odd_], kOdd, false), run_plain({}, false)};
  bool same = seen[kOdd].ok() && seen[kPlain].ok();
  std::vector<bool> extra = asking_.question.compared;
  for (std::size_t o = 0; o < extra.size() && same; ++o) {
    for (const std::size_t which : {std::size_t{kOdd}, std::size_t{kPlain}})
      same = same && (!narrow.question.compared[o] || seen[which].together.outputs[o] == before[which][o]);
    extra[o] = extra[o] && !narrow.question.compared[o];
  }
  if (same) {
    for (const std::size_t which : {std::size_t{kOdd}, std::size_t{kPlain}})
      store_outputs(asking_.question.judged, seen[which].together.outputs, extra, prefix_of(kSides[which]), recording);
  }
  asking_ = narrow;
}

Status RelationCheck::record(bool run, Recording& recording) {
  if (std::optional<Verdict> missing = not_in_record(path_, subject_.c.op)) return user_error(missing->reason);
  const std::shared_ptr<const Prepared> own(std::shared_ptr<void>(), &subject_.prepared);
  std::variant<Asking, Verdict> asked = ask_of(subject_.c, own);
  if (const Verdict* verdict = std::get_if<Verdict>(&asked)) return user_error(verdict->reason);
  asking_ = std::get<Asking>(std::move(asked));
  const std::size_t ways = asking_.question.odd.size();
  bool shows = false;
  for (int i = 0; run && i < kLooks && !shows && (i == 0 || budget_.left()); ++i) shows = !look();
  odd_ = std::min(odd_, ways - 1);
  if (!asking_.even) record_way(asking_.question.plain, recording);
  if (run) {
    record_odd(odd_, recording);
    record_outputs(recording);
    return {};
  }
  for (std::size_t odd = 0; odd < ways; ++odd) record_odd(odd, recording);
  return {};
}

Truth RelationCheck::judged_truth() {
  Truth truth = compute_truth(*asking_.prepared, subject_.comparison, subject_.options, subject_.runner);
  return asking_.question.truth_of ? asking_.question.truth_of(std::move(truth)) : truth;
}

}  // namespace fusediff
