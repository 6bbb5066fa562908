#include "engine/record.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "engine/company.h"
#include "engine/not_offered.h"
#include "engine/record_parts.h"
#include "engine/relation.h"
#include "engine/side.h"
#include "engine/truth.h"

namespace fusediff {
namespace {

bool lies_on_input(const Call& call) {
  return std::any_of(call.outputs.begin(), call.outputs.end(), [](const Tensor& output) { return output.on >= 0; });
}

std::vector<bool> given_by(const SideRun& side, const Call& call) {
  std::vector<bool> given(call.outputs.size());
  for (std::size_t o = 0; o < given.size(); ++o) given[o] = side.gives(o);
  return given;
}

// Both sides of one call, each in its own spelling.
class TwoSides {
 public:
  explicit TwoSides(const Subject& subject) : subject_(subject), inputs_(subject.prepared.views()) {}

  // An error is that a side does not offer the call.
  Result<std::array<std::unique_ptr<SideRun>, 2>> sides(const Call& call) const {
    std::array<std::unique_ptr<SideRun>, 2> made;
    for (const Side side : kSides) {
      const PathOf& path = subject_.comparison.sides[index_of(side)];
      if (const std::optional<Verdict> missing = not_in_record(path, subject_.c.op)) return user_error(missing->reason);
      const Operator* op = path.target->schema.find(subject_.c.op);
      const Bank bank = side == Side::kTarget ? Bank::kFirst : Bank::kSecond;
      if (side == Side::kTarget || (op == call.op && !lies_on_input(call))) {
        made[index_of(side)] = std::make_unique<SideRun>(path, call, bank, /*keep_context=*/false);
        continue;
      }
      Result<Adapted> adapted = adapt(call, *op, !subject_.prepared.call.broken.empty());
      if (!adapted.ok()) return user_error(adapted.error().what);
      made[index_of(side)] = std::make_unique<SideRun>(path, *std::move(adapted), bank, /*keep_context=*/false);
    }
    return made;
  }

  Execution run(const SideRun& run, Side side) const {
    Execution execution;
    run.run(subject_.runner, inputs_, {side == Side::kTarget ? kFirstFills : kSecondFills, {}, false}, execution);
    return execution;
  }

  Status record_calls(Recording& recording) const {
    const Call& call = subject_.prepared.call;
    Result<std::array<std::unique_ptr<SideRun>, 2>> made = sides(call);
    if (!made.ok()) return made.error();
    const SideRun& target = *(*made)[0];
    RecordedCall first = recorded_call(target.call(), target.path());
    store_inputs(call, inputs_, "", first, recording);
    RecordedCall second = recorded_call((*made)[1]->call(), (*made)[1]->path());
    for (std::size_t i = 0; i < second.inputs.size(); ++i) {
      if (second.inputs[i].present) second.stored[i] = second.inputs[i].name;
    }
    recording.calls[0].push_back(std::move(first));
    recording.calls[1].push_back(std::move(second));
    return {};
  }

  void record_outputs(Recording& recording) const {
    const Call& call = subject_.prepared.call;
    const Result<std::array<std::unique_ptr<SideRun>, 2>> made = sides(call);
    std::array<Execution, 2> seen;
    for (const Side side : kSides) {
      const SideRun& run_of_side = *(*made)[index_of(side)];
      seen[index_of(side)] = run(run_of_side, side);
      if (seen[index_of(side)].ending != Ending::kOk) continue;
      store_outputs(call, seen[index_of(side)].outputs, given_by(run_of_side, call), prefix_of(side), recording);
    }
    record_stages(seen, recording);
  }

 private:
  // Outputs that the case does not ask for, where asking changes nothing else.
  void record_stages(const std::array<Execution, 2>& seen, Recording& recording) const {
    const bool ok = seen[0].ending == Ending::kOk && seen[1].ending == Ending::kOk;
    const std::optional<Call> full = ok ? fuller_call(subject_.c, subject_.prepared.call) : std::nullopt;
    if (!full) return;
    const Result<std::array<std::unique_ptr<SideRun>, 2>> made = sides(*full);
    if (!made.ok()) return;
    std::array<Execution, 2> more;
    for (const Side side : kSides) more[index_of(side)] = run(*(*made)[index_of(side)], side);
    const Call& call = subject_.prepared.call;
    for (const Side side : kSides) {
      const std::size_t s = index_of(side);
      if (more[s].ending != Ending::kOk) return;
      for (std::size_t o = 0; o < call.outputs.size(); ++o) {
        if (call.outputs[o].present && more[s].outputs[o] != seen[s].outputs[o]) return;
      }
    }
    Call extra = *full;
    for (std::size_t o = 0; o < extra.outputs.size(); ++o)
      extra.outputs[o].present = extra.outputs[o].present && !call.outputs[o].present;
    for (const Side side : kSides) {
      const std::size_t s = index_of(side);
      store_outputs(extra, more[s].outputs, given_by(*(*made)[s], extra), prefix_of(side), recording);
    }
  }

  const Subject& subject_;
  std::vector<std::span<const std::byte>> inputs_;
};

Status record_two_sides(const Subject& subject, bool run, Recording& recording) {
  const TwoSides two(subject);
  if (Status status = two.record_calls(recording); !status.ok()) return status;
  if (run) two.record_outputs(recording);
  return {};
}

// The case and its calls, each by itself. Calls that the target does not offer are left out, as check() does.
Status record_company(const Subject& subject, bool run, Recording& recording) {
  Company company(subject);
  if (const std::optional<Verdict> verdict = company.gather()) return user_error(verdict->reason);
  Budget budget(subject.options.seconds);
  if (run) company.run_alone(budget);
  for (std::size_t m = 0; m < company.members().size(); ++m) {
    const Companion& member = company.members()[m];
    const std::string prefix = m == 0 ? "" : "calls/" + std::to_string(m - 1) + "/";
    RecordedCall call = recorded_call(member.call(), member.path);
    store_inputs(member.call(), member.inputs, prefix, call, recording);
    recording.calls[0].push_back(std::move(call));
    if (run && member.alone.ending == Ending::kOk)
      store_outputs(member.call(), member.alone.outputs, {}, prefix_of(Side::kTarget) + prefix, recording);
  }
  return {};
}

void record_truth(const Call& call, const Truth& truth, Recording& recording) {
  for (std::size_t o = 0; o < truth.outputs.size(); ++o) {
    const std::vector<double>& values = truth.outputs[o].value;
    if (values.empty()) continue;
    StoredTensor tensor{"truth/" + call.outputs[o].name, DType::kF64, call.outputs[o].shape, {}};
    tensor.bytes.resize(values.size() * sizeof(double));
    round_all(DType::kF64, values, tensor.bytes);
    recording.outputs.push_back(std::move(tensor));
  }
}

}  // namespace

Result<Recording> record(const Subject& subject, bool run) {
  Recording recording;
  recording.experiment = subject.c.experiment;
  recording.experiment.calls.clear();
  const ExperimentKind kind = subject.c.experiment.kind;
  if (kind == ExperimentKind::kRelation) {
    RelationCheck relation(subject);
    if (Status status = relation.record(run, recording); !status.ok()) return status.error();
    if (run) record_truth(relation.judged_call(), relation.judged_truth(), recording);
    return recording;
  }
  const bool two = kind == ExperimentKind::kPair || kind == ExperimentKind::kGradient;
  const Status status = two ? record_two_sides(subject, run, recording) : record_company(subject, run, recording);
  if (!status.ok()) return status.error();
  if (run && subject.prepared.call.broken.empty()) {
    const Truth truth = compute_truth(subject.prepared, subject.comparison, subject.options, subject.runner);
    record_truth(subject.prepared.call, truth, recording);
  }
  return recording;
}

}  // namespace fusediff
