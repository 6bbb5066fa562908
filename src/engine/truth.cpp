#include "engine/truth.h"

#include "engine/side.h"

namespace fusediff {
namespace {

bool wants_absolute(const Operator& op) {
  for (const OutputRule& output : op.outputs) {
    if (output.bound && output.bound->of == BoundScale::kAbsInputs) return true;
  }
  return false;
}

std::vector<double> values_of(const Tensor& tensor, const std::vector<std::byte>& bytes) {
  std::vector<double> values(bytes.size() / size_of(tensor.dtype));
  widen(tensor.dtype, bytes, values);
  return values;
}

// The scales kRowMaxProduct.
void put_products(const Call& call, const Call& wide, const std::vector<Bytes>& wide_inputs, Truth& truth) {
  std::vector<std::vector<double>> inputs(wide_inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (wide.inputs[i].present && is_float(wide.inputs[i].dtype)) inputs[i] = values_of(wide.inputs[i], wide_inputs[i]);
  }
  for (std::size_t o = 0; o < truth.outputs.size(); ++o) {
    const std::optional<BoundRule>& bound = call.op->outputs[o].bound;
    if (!bound || bound->of != BoundScale::kRowMaxProduct || truth.outputs[o].value.empty()) continue;
    truth.outputs[o].absolute = products_of(call, o, inputs, truth.outputs);
  }
}

}  // namespace

std::optional<Execution> run_wide(const PathOf& path, const Call& wide, const std::vector<Bytes>& inputs,
                                  Runner& runner) {
  const Operator* op = path.target->schema.find(wide.op->name);
  if (op == nullptr || !op->has_path(path.path)) return std::nullopt;
  Result<Adapted> adapted = adapt(wide, *op, /*outside=*/true);  // f64 is tried whether or not the record lists it
  if (!adapted.ok()) return std::nullopt;
  Execution execution;
  const SideRun side(path, *std::move(adapted), Bank::kSecond, /*keep_context=*/false);
  side.run(runner, {inputs.begin(), inputs.end()}, {kSecondFills, {}, false}, execution);
  if (execution.ending != Ending::kOk) return std::nullopt;
  return execution;
}

Truth compute_truth(const Prepared& prepared, const Comparison& comparison, const CheckOptions& options,
                    Runner& runner) {
  Truth truth;
  truth.outputs.resize(prepared.call.outputs.size());
  const std::optional<std::vector<Bytes>> inputs =
      widened_inputs(prepared, comparison, options, runner, /*absolute=*/false);
  if (!inputs) return truth;
  const Call wide = widened(prepared.call);
  for (const Target* target : {comparison.sides[1].target, comparison.sides[0].target, comparison.fallback}) {
    if (target == nullptr) continue;
    for (const char* path : {"reference", "unfused"}) {
      const std::optional<Execution> run = run_wide({target, path}, wide, *inputs, runner);
      if (!run) continue;
      truth.path = target->name + ":" + path;
      truth.by = {target, path};
      std::optional<Execution> absolute;
      if (wants_absolute(*prepared.call.op)) {
        const std::optional<std::vector<Bytes>> magnitudes =
            widened_inputs(prepared, comparison, options, runner, /*absolute=*/true);
        if (magnitudes) absolute = run_wide({target, path}, wide, *magnitudes, runner);
      }
      for (std::size_t o = 0; o < wide.outputs.size(); ++o) {
        truth.outputs[o].value = values_of(wide.outputs[o], run->outputs[o]);
        if (absolute) truth.outputs[o].absolute = values_of(wide.outputs[o], absolute->outputs[o]);
      }
      put_products(prepared.call, wide, *inputs, truth);
      return truth;
    }
  }
  return truth;
}

}  // namespace fusediff
