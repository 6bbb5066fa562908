#include "engine/saved.h"

#include <algorithm>
#include <optional>
#include <set>

#include "model/case.h"
#include "model/expand.h"

namespace fusediff {
namespace {

struct Producer {
  const Target* target = nullptr;
  const Operator* op = nullptr;
};

std::optional<Producer> find_producer(const std::string& name, const Comparison& comparison) {
  for (const Target* target : {comparison.sides[1].target, comparison.sides[0].target, comparison.fallback}) {
    if (target == nullptr) continue;
    const Operator* op = target->schema.find(name);
    if (op != nullptr && op->has_path("unfused")) return Producer{target, op};
  }
  return std::nullopt;
}

// Dims whose name alone is an entry of a shape are read off that shape.
void read_dims(const std::vector<Expr>& rule, const std::vector<std::int64_t>& shape,
               std::map<std::string, std::int64_t>& dims) {
  if (rule.size() != shape.size()) return;
  for (std::size_t d = 0; d < rule.size(); ++d) {
    const std::set<std::string>& names = rule[d].names();
    if (names.size() == 1 && *names.begin() == rule[d].text()) dims.emplace(rule[d].text(), shape[d]);
  }
}

Case producer_case(const SavedRequest& request, const Operator& op) {
  Case c;
  c.op = op.name;
  for (const auto& [input, name] : request.rule->inputs) {
    const auto source = request.sources->find(name);
    const InputRule* rule = op.input(input);
    if (source == request.sources->end() || rule == nullptr) continue;
    const Tensor& tensor = *source->second.tensor;
    if (!tensor.present) continue;
    read_dims(rule->shape, tensor.shape, c.dims);
    if (rule->dtype.choices.size() > 1 || (rule->dtype.choices.size() == 1 && tensor.dtype != rule->dtype.choices[0])) {
      c.dtypes[input] = tensor.dtype;
    }
    InputValue value;
    value.fill.kind = FillKind::kBits;
    value.fill.bits = std::make_shared<const std::vector<std::byte>>(expanded(tensor, *source->second.bytes));
    c.inputs[input] = std::move(value);
  }
  if (const OutputRule* output = op.output(request.rule->output))
    read_dims(output->shape, request.tensor->shape, c.dims);
  for (std::size_t d = 0; d < request.call->op->dims.size(); ++d) {
    const std::string& name = request.call->op->dims[d].name;
    if (op.dim(name) != nullptr) c.dims.emplace(name, request.call->dims[d]);
  }
  for (const CallAttr& attr : request.call->attrs) {
    const AttrRule* rule = op.attr(attr.name);
    if (rule != nullptr && !rule->derived) c.attrs[attr.name] = attr.value;
  }
  return c;
}

Error failed(const SavedRequest& request, const std::string& why) {
  return user_error("cannot compute the saved tensor " + request.tensor->name + " by " + request.rule->op + ": " + why);
}

}  // namespace

Result<std::vector<std::byte>> compute_saved(const SavedRequest& request, const Comparison& comparison,
                                             const CheckOptions& options, Runner& runner) {
  const std::optional<Producer> producer = find_producer(request.rule->op, comparison);
  if (!producer) return failed(request, "no target here offers it with a path unfused");
  const Case c = producer_case(request, *producer->op);
  // f64 is asked of producers whose record does not list it: the dtype is the caller's, not the case's.
  Case listed = c;
  listed.dtypes.clear();
  for (const auto& [name, dtype] : c.dtypes) {
    const std::vector<DType>& choices = producer->op->input(name)->dtype.choices;
    const bool is_listed = std::find(choices.begin(), choices.end(), dtype) != choices.end();
    if (choices.size() > 1) listed.dtypes[name] = is_listed ? dtype : choices[0];
  }
  Result<Call> call = bind(listed, *producer->op, options.max_bytes);
  if (!call.ok()) return failed(request, call.error().what);
  bool wide = false;
  std::vector<std::span<const std::byte>> inputs;
  for (Tensor& tensor : call->inputs) {
    const auto value = c.inputs.find(tensor.name);
    tensor.present = value != c.inputs.end();
    inputs.push_back(tensor.present ? std::span<const std::byte>(*value->second.fill.bits)
                                    : std::span<const std::byte>());
    if (!tensor.present) continue;
    const Source& source = request.sources->at(request.rule->inputs.at(tensor.name));
    wide = wide || (source.tensor->dtype == DType::kF64 && tensor.dtype != DType::kF64);
    tensor.dtype = source.tensor->dtype;
    tensor.align = std::max(tensor.align, static_cast<std::int64_t>(size_of(tensor.dtype)));
  }
  for (Tensor& tensor : call->outputs) {
    if (!wide || !is_float(tensor.dtype)) continue;
    tensor.dtype = DType::kF64;
    tensor.align = std::max<std::int64_t>(tensor.align, 8);
  }
  const auto at = std::find_if(call->outputs.begin(), call->outputs.end(),
                               [&](const Tensor& t) { return t.name == request.rule->output; });
  if (at == call->outputs.end()) return failed(request, "it has no output " + request.rule->output);
  at->present = true;
  Execution execution;
  RunRequest run;
  run.target = producer->target;
  run.path = "unfused";
  run.call = &*call;
  run.inputs = inputs;
  runner.run(run, execution);
  if (execution.ending != Ending::kOk)
    return failed(request, execution.message.empty() ? "it did not succeed" : execution.message);
  std::vector<std::byte>& bytes = execution.outputs[static_cast<std::size_t>(at - call->outputs.begin())];
  if (at->dtype != request.tensor->dtype || at->shape != request.tensor->shape) {
    return failed(request, "its output " + at->name + " has another dtype or shape");
  }
  return stored(*request.tensor, bytes);
}

}  // namespace fusediff
