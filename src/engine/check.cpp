#include "engine/check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>

#include "engine/experiment.h"
#include "engine/features.h"
#include "engine/prepare.h"
#include "engine/record.h"
#include "engine/run_sides.h"
#include "engine/truth.h"
#include "model/expand.h"

namespace fusediff {
namespace {

// Suspicions that were explained, and how often each came again: explained anew at every power of two, so that another
// bug behind the same first look is not hidden for good.
struct Explained {
  Finding finding;
  std::uint64_t seen = 0;
};
constexpr std::size_t kMaxExplained = 4096;

// How near an error comes to its bound: log2 of the smallest ratio of the two, 0 for one outside; 255 without any.
std::uint8_t margin_of(const Finding& finding) {
  constexpr double kMost = 15;
  double smallest = 255;
  for (const Difference& d : finding.differences) {
    if (!d.bound || !d.error) continue;
    const double error = std::max((*d.error)[0], (*d.error)[1]);
    smallest = std::min(smallest, error > 0 ? std::clamp(std::log2(*d.bound / error), 0.0, kMost) : kMost);
  }
  return static_cast<std::uint8_t>(smallest);
}

RunLimits limits_of(const CheckOptions& options) { return {options.seconds, options.max_bytes}; }

}  // namespace

struct Engine::State {
  State(Comparison c, CheckOptions o) : comparison(std::move(c)), options(std::move(o)), runner(limits_of(options)) {}

  CheckResult finish(const ExperimentCheck& experiment, Verdict verdict) {
    CheckResult result;
    result.runs = experiment.budget().runs;
    for (const Bytes& input : prepared->inputs) result.bytes += input.size();
    result.target_nanoseconds = experiment.budget().nanoseconds;
    if (options.feedback && !experiment.compared().empty()) {
      result.features =
          features_of(prepared->call, prepared->views(), executions[0], executions[1], experiment.compared());
    }
    if (verdict.finding) result.features.margin = margin_of(*verdict.finding);
    result.verdict = std::move(verdict);
    return result;
  }

  // The finding of an earlier check with the same first look, when the caller knows it already.
  const Finding* known(const std::string& suspicion) {
    const auto at = explained.find(suspicion);
    if (at == explained.end() || !options.is_known || !options.is_known(signature_of(at->second.finding)))
      return nullptr;
    return std::has_single_bit(++at->second.seen) ? nullptr : &at->second.finding;
  }

  Comparison comparison;
  CheckOptions options;
  Runner runner;
  DrawCache draws;
  std::array<Execution, 2> executions;
  std::optional<Prepared> prepared;
  std::unordered_map<std::string, Explained> explained;
};

Engine::Engine(Comparison comparison, CheckOptions options)
    : state_(std::make_unique<State>(std::move(comparison), std::move(options))) {}
Engine::~Engine() = default;

Result<CheckResult> Engine::check(const Case& c, bool anew) {
  State& state = *state_;
  const auto skipped = [](std::string reason) {
    CheckResult result;
    result.verdict = {Verdict::Kind::kSkip, std::move(reason), {}};
    return result;
  };
  state.prepared.reset();
  for (Execution& execution : state.executions) execution.ending = Ending::kUnsupported;  // none of this case yet
  const Operator* op = find(c.op);
  if (op == nullptr) return skipped(state.comparison.sides[0].target->name + " does not offer " + c.op);
  std::variant<Prepared, Unprepared> prepared =
      prepare(c, *op, state.comparison, state.options, state.runner, state.draws);
  if (const Unprepared* failed = std::get_if<Unprepared>(&prepared)) {
    if (failed->skip) return skipped(failed->error.what);
    return failed->error;
  }
  for (std::size_t i = 0; i < c.experiment.calls.size(); ++i) {
    const Case& call = c.experiment.calls[i];
    const Operator* called = find(call.op);
    if (called == nullptr)
      return skipped(state.comparison.sides[0].target->name + " does not offer " + call.op +
                     ", a call of the experiment");
    const Result<Call> bound = bind(call, *called, state.options.max_bytes);
    if (bound.ok()) continue;
    const char* list = c.experiment.kind == ExperimentKind::kThreads ? "/mates/" : "/calls/";
    return Error{bound.error().blame, "/experiment/" + std::string(name_of(c.experiment.kind)) + list +
                                          std::to_string(i) + bound.error().what};
  }
  state.prepared = std::get<Prepared>(std::move(prepared));
  const std::unique_ptr<ExperimentCheck> experiment = make_experiment(
      {c, *state.prepared, state.comparison, state.options, state.runner, state.draws, state.executions});
  if (std::optional<Verdict> verdict = experiment->first_look()) return state.finish(*experiment, std::move(*verdict));
  const std::string suspicion = experiment->suspicion();
  if (const Finding* finding = anew ? nullptr : state.known(suspicion)) {
    return state.finish(*experiment, {Verdict::Kind::kFinding, "", *finding});
  }
  Verdict verdict = experiment->explain();
  if (verdict.finding && state.explained.size() < kMaxExplained) state.explained[suspicion].finding = *verdict.finding;
  return state.finish(*experiment, std::move(verdict));
}

std::vector<Engine::Captured> Engine::captured_inputs() const {
  std::vector<Captured> captured;
  if (!state_->prepared) return captured;
  const Call& call = state_->prepared->call;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.inputs[i].present) continue;
    captured.push_back({call.inputs[i].name, call.inputs[i].dtype, call.inputs[i].shape,
                        expanded(call.inputs[i], state_->prepared->inputs[i])});
  }
  return captured;
}

std::vector<Engine::Captured> Engine::captured_outputs() const {
  std::vector<Captured> captured;
  if (!state_->prepared) return captured;
  const Call& call = state_->prepared->call;
  for (const Side side : kSides) {
    const Execution& execution = state_->executions[index_of(side)];
    if (execution.ending != Ending::kOk) continue;
    for (std::size_t o = 0; o < call.outputs.size(); ++o) {
      if (!call.outputs[o].present || o >= execution.outputs.size()) continue;
      captured.push_back({(side == Side::kTarget ? "target/" : "against/") + call.outputs[o].name,
                          call.outputs[o].dtype, call.outputs[o].shape, execution.outputs[o]});
    }
  }
  return captured;
}

std::optional<std::vector<Engine::Stage>> Engine::stages(const Case& c, Side side,
                                                         const std::vector<std::string>& tensors) {
  State& state = *state_;
  const Operator* op = find(c.op);
  if (op == nullptr) return std::nullopt;
  std::variant<Prepared, Unprepared> made = prepare(c, *op, state.comparison, state.options, state.runner, state.draws);
  Prepared* prepared = std::get_if<Prepared>(&made);
  if (prepared == nullptr) return std::nullopt;
  if (const std::optional<Call> full = fuller_call(c, prepared->call)) {
    for (std::size_t o = 0; o < full->outputs.size(); ++o) {
      Tensor& output = prepared->call.outputs[o];
      if (std::find(tensors.begin(), tensors.end(), output.name) == tensors.end()) continue;
      output.present = full->outputs[o].present;
    }
  }
  const PathOf& path = state.comparison.sides[index_of(side)];
  const Operator* own = path.target->schema.find(c.op);
  if (own == nullptr || !own->has_path(path.path)) return std::nullopt;
  Result<Adapted> adapted = adapt(prepared->call, *own, false);
  if (!adapted.ok()) return std::nullopt;
  Execution execution;
  const SideRun run(path, *std::move(adapted), side == Side::kTarget ? Bank::kFirst : Bank::kSecond, false);
  run.run(state.runner, prepared->views(), {}, execution);
  if (execution.ending != Ending::kOk) return std::nullopt;
  std::vector<Stage> stages;
  const Call& call = prepared->call;
  for (const std::string& name : tensors) {
    for (std::size_t o = 0; o < call.outputs.size(); ++o) {
      if (call.outputs[o].name == name && call.outputs[o].present && run.gives(o))
        stages.push_back({call.outputs[o].dtype, call.outputs[o].shape, execution.outputs[o]});
    }
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      if (call.inputs[i].name != name || !call.inputs[i].present) continue;
      stages.push_back({call.inputs[i].dtype, call.inputs[i].shape, expanded(call.inputs[i], prepared->inputs[i])});
    }
  }
  if (stages.size() != tensors.size()) return std::nullopt;
  return stages;
}

bool Engine::has_truth(const Case& c) {
  State& state = *state_;
  const Operator* op = find(c.op);
  if (op == nullptr) return false;
  std::variant<Prepared, Unprepared> made = prepare(c, *op, state.comparison, state.options, state.runner, state.draws);
  const Prepared* prepared = std::get_if<Prepared>(&made);
  return prepared != nullptr && !compute_truth(*prepared, state.comparison, state.options, state.runner).path.empty();
}

Result<RanCase> Engine::run_sides(const Case& c, const std::array<bool, 2>& wanted) {
  State& state = *state_;
  const Operator* op = find(c.op);
  if (op == nullptr) return user_error(state.comparison.sides[0].target->name + " does not offer " + c.op);
  std::variant<Prepared, Unprepared> made = prepare(c, *op, state.comparison, state.options, state.runner, state.draws);
  if (const Unprepared* failed = std::get_if<Unprepared>(&made)) return failed->error;
  return fusediff::run_sides(
      {c, std::get<Prepared>(made), state.comparison, state.options, state.runner, state.draws, state.executions},
      wanted);
}

Status Engine::legal(const Case& c) {
  const auto at = [](const Case& whole, std::size_t i, const Error& error) {
    return Error{error.blame, "/experiment/" + std::string(name_of(whole.experiment.kind)) + " call " +
                                  std::to_string(i) + error.what};
  };
  const Operator* op = find(c.op);
  if (op == nullptr) return user_error(state_->comparison.sides[0].target->name + " does not offer " + c.op);
  const Result<Call> call = bind(c, *op, state_->options.max_bytes, state_->options.outside);
  if (!call.ok()) return call.error();
  for (const auto& [rules, tensors] : {std::pair(&op->inputs, &call->inputs), std::pair(&op->given, &call->givens)}) {
    for (std::size_t i = 0; i < rules->size(); ++i) {
      const auto value = c.inputs.find((*rules)[i].name);
      if (!(*tensors)[i].present || value == c.inputs.end()) continue;
      const auto drawn = state_->draws.draw(value->second, (*rules)[i], (*tensors)[i], *call);
      if (!drawn.ok()) return drawn.error();
    }
  }
  for (std::size_t i = 0; i < c.experiment.calls.size(); ++i) {
    if (Status inner = legal(c.experiment.calls[i]); !inner.ok()) return at(c, i, inner.error());
  }
  return {};
}

Result<Recording> Engine::record(const Case& c, bool run) {
  State& state = *state_;
  const Operator* op = find(c.op);
  if (op == nullptr) return user_error(state.comparison.sides[0].target->name + " does not offer " + c.op);
  std::variant<Prepared, Unprepared> made = prepare(c, *op, state.comparison, state.options, state.runner, state.draws);
  if (const Unprepared* failed = std::get_if<Unprepared>(&made)) return failed->error;
  std::array<Execution, 2> executions;
  return fusediff::record(
      {c, std::get<Prepared>(made), state.comparison, state.options, state.runner, state.draws, executions}, run);
}

const Operator* Engine::find(std::string_view op) const { return schema().find(op); }
const Schema& Engine::schema() const { return state_->comparison.sides[0].target->schema; }
std::uint64_t Engine::max_bytes() const { return state_->options.max_bytes; }
bool Engine::tainted() const { return state_->runner.tainted(); }

}  // namespace fusediff
