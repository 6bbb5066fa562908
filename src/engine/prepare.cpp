#include "engine/prepare.h"

#include <algorithm>
#include <cmath>

#include "engine/adapt.h"
#include "engine/saved.h"
#include "model/expand.h"

namespace fusediff {
namespace {

std::map<std::string, Source> sources_of(const Call& call, const std::vector<Bytes>& inputs,
                                         const std::vector<Bytes>& givens) {
  std::map<std::string, Source> sources;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) sources[call.inputs[i].name] = {&call.inputs[i], &inputs[i]};
  for (std::size_t i = 0; i < call.givens.size(); ++i) sources[call.givens[i].name] = {&call.givens[i], &givens[i]};
  return sources;
}

// Draws the tensors of one list; saved ones that the case does not override stay empty.
Status draw_all(const Case& c, const std::vector<InputRule>& rules, const std::vector<Tensor>& tensors,
                const Call& call, DrawCache& cache, std::vector<Bytes>& bytes) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    bytes.emplace_back();
    const auto value = c.inputs.find(rules[i].name);
    if (!tensors[i].present || value == c.inputs.end()) continue;
    Result<Bytes> drawn = cache.draw(value->second, rules[i], tensors[i], call);
    if (!drawn.ok()) return drawn.error();
    bytes.back() = *std::move(drawn);
  }
  return {};
}

// All logical elements, floats in f64.
Bytes widen_bytes(const Tensor& tensor, const Bytes& stored_bytes, bool absolute) {
  if (!tensor.present) return {};
  const Bytes bytes = expanded(tensor, stored_bytes);
  if (!is_float(tensor.dtype)) return bytes;
  std::vector<double> values(bytes.size() / size_of(tensor.dtype));
  widen(tensor.dtype, bytes, values);
  if (absolute) {
    for (double& value : values) value = std::abs(value);
  }
  Bytes wide(values.size() * sizeof(double));
  round_all(DType::kF64, values, wide);
  return wide;
}

}  // namespace

std::vector<std::span<const std::byte>> Prepared::views() const { return {inputs.begin(), inputs.end()}; }

std::variant<Prepared, Unprepared> prepare(const Case& c, const Operator& op, const Comparison& comparison,
                                           const CheckOptions& options, Runner& runner, DrawCache& cache) {
  Result<Call> call = bind(c, op, options.max_bytes, options.outside);
  if (!call.ok()) return Unprepared{false, call.error()};
  Prepared prepared;
  prepared.call = *std::move(call);
  if (Status status = draw_all(c, op.inputs, prepared.call.inputs, prepared.call, cache, prepared.inputs);
      !status.ok()) {
    return Unprepared{false, status.error()};
  }
  if (Status status = draw_all(c, op.given, prepared.call.givens, prepared.call, cache, prepared.givens);
      !status.ok()) {
    return Unprepared{false, status.error()};
  }
  const std::map<std::string, Source> sources = sources_of(prepared.call, prepared.inputs, prepared.givens);
  prepared.computed.assign(op.inputs.size(), false);
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const InputRule& rule = op.inputs[i];
    if (!rule.saved || !prepared.call.inputs[i].present || c.inputs.contains(rule.name)) continue;
    Result<Bytes> bytes =
        compute_saved({&prepared.call, &*rule.saved, &prepared.call.inputs[i], &sources}, comparison, options, runner);
    if (!bytes.ok()) return Unprepared{true, bytes.error()};
    prepared.inputs[i] = *std::move(bytes);
    prepared.computed[i] = true;
  }
  return prepared;
}

std::optional<Call> fuller_call(const Case& c, const Call& call) {
  Call full = call;
  bool more = false;
  for (std::size_t o = 0; o < full.outputs.size(); ++o) {
    Tensor& output = full.outputs[o];
    if (output.present || std::find(c.unwanted.begin(), c.unwanted.end(), output.name) == c.unwanted.end()) continue;
    const std::optional<Expr>& condition = call.op->outputs[o].condition;
    const Result<std::int64_t> holds = condition ? call.evaluate(*condition) : Result<std::int64_t>(1);
    output.present = holds.ok() && *holds != 0;
    more = more || output.present;
  }
  return more ? std::optional(std::move(full)) : std::nullopt;
}

std::optional<std::vector<Bytes>> widened_inputs(const Prepared& prepared, const Comparison& comparison,
                                                 const CheckOptions& options, Runner& runner, bool absolute) {
  const Operator& op = *prepared.call.op;
  const Call wide = widened(prepared.call);
  std::vector<Bytes> inputs, givens;
  for (std::size_t i = 0; i < prepared.inputs.size(); ++i) {
    inputs.push_back(widen_bytes(prepared.call.inputs[i], prepared.inputs[i], absolute));
  }
  for (std::size_t i = 0; i < prepared.givens.size(); ++i) {
    givens.push_back(widen_bytes(prepared.call.givens[i], prepared.givens[i], absolute));
  }
  // Magnitudes measure a sum of terms: there the saved values keep their own, only without sign.
  if (absolute) return inputs;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    if (!prepared.computed[i]) continue;
    const std::map<std::string, Source> sources = sources_of(wide, inputs, givens);
    Result<Bytes> bytes =
        compute_saved({&wide, &*op.inputs[i].saved, &wide.inputs[i], &sources}, comparison, options, runner);
    if (!bytes.ok()) return std::nullopt;
    inputs[i] = *std::move(bytes);
  }
  return inputs;
}

}  // namespace fusediff
