#include "engine/run_sides.h"

#include <span>
#include <utility>

#include "engine/adapt.h"
#include "engine/not_offered.h"
#include "engine/prepare.h"
#include "engine/side.h"

namespace fusediff {
namespace {

Hash128 hash_of(const Prepared& prepared) {
  std::string text;
  for (std::size_t i = 0; i < prepared.inputs.size(); ++i) {
    if (prepared.call.inputs[i].present) text += prepared.call.inputs[i].name + hash128(prepared.inputs[i]).hex();
  }
  return hash128(text);
}

RanSide not_offered(std::string why) { return {"unsupported", std::move(why), true, {}}; }

RanSide run_side(const Subject& subject, Side side) {
  const PathOf& path = subject.comparison.sides[index_of(side)];
  const Call& call = subject.prepared.call;
  if (const auto missing = not_in_record(path, subject.c.op)) return not_offered(missing->reason);
  const Operator* op = path.target->schema.find(subject.c.op);
  const Bank bank = side == Side::kTarget ? Bank::kFirst : Bank::kSecond;
  std::optional<SideRun> run;
  if (side == Side::kTarget) {
    run.emplace(path, call, bank, subject.options.keep_context);
  } else {
    Result<Adapted> adapted = adapt(call, *op, !call.broken.empty());
    if (!adapted.ok()) return not_offered(adapted.error().what);
    run.emplace(path, *std::move(adapted), bank, subject.options.keep_context);
  }
  Execution& execution = subject.executions[index_of(side)];
  run->run(subject.runner, subject.prepared.views(), {}, execution);
  RanSide ran{std::string(name_of(execution.ending)), execution.message, op->is_deterministic(path.path), {}};
  if (execution.ending != Ending::kOk) return ran;
  for (std::size_t o = 0; o < call.outputs.size(); ++o) {
    const Tensor& output = call.outputs[o];
    if (!output.present || !run->gives(o)) continue;
    const OutputRule& rule = call.op->outputs[o];
    ran.outputs.push_back({output.name, output.dtype, output.shape, execution.outputs[o],
                           rule.agree.allowed(output.dtype), rule.nan_bits});
  }
  return ran;
}

}  // namespace

std::string_view name_of(Ending ending) {
  switch (ending) {
    case Ending::kOk:
      return "ok";
    case Ending::kUnsupported:
      return "unsupported";
    case Ending::kRejected:
      return "rejected";
    case Ending::kFailed:
      return "failed";
    case Ending::kBadStatus:
      return "bad status";
    case Ending::kGuardHit:
      return "guard hit";
    case Ending::kSignal:
      return "signal";
    case Ending::kExit:
      return "exit";
    case Ending::kException:
      return "exception";
    case Ending::kHang:
      return "hang";
    case Ending::kMemory:
      return "memory";
  }
  return "unknown";
}

RanCase run_sides(const Subject& subject, const std::array<bool, 2>& wanted) {
  RanCase ran;
  ran.inputs = hash_of(subject.prepared);
  for (const Side side : kSides) {
    if (wanted[index_of(side)]) ran.sides[index_of(side)] = run_side(subject, side);
  }
  return ran;
}

}  // namespace fusediff
