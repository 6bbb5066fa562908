#include "engine/gradient_forward.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include "engine/adapt.h"
#include "model/expand.h"

namespace fusediff {
namespace {

struct Found {
  const Tensor* tensor = nullptr;
  const Bytes* bytes = nullptr;
};

std::map<std::string, Found> tensors_by_name(const BackwardPoint& at) {
  std::map<std::string, Found> found;
  for (std::size_t i = 0; i < at.inputs.size(); ++i)
    found[at.call->inputs[i].name] = {&at.call->inputs[i], &at.inputs[i]};
  for (std::size_t i = 0; i < at.givens.size(); ++i)
    found[at.call->givens[i].name] = {&at.call->givens[i], &at.givens[i]};
  return found;
}

// The tensor of the backward that is the forward's input of this name.
std::string source_of(const Operator& backward, const std::string& input) {
  for (const InputRule& rule : backward.inputs) {
    if (!rule.saved || rule.saved->op != backward.gradient->of) continue;
    const auto at = rule.saved->inputs.find(input);
    if (at != rule.saved->inputs.end()) return at->second;
  }
  return input;
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

// The case of the forward but for its values, which are laid into the call.
Case forward_case(const Operator& op, const BackwardPoint& at, const std::map<std::string, Found>& found) {
  const Operator& backward = *at.call->op;
  Case c;
  c.op = op.name;
  for (const InputRule& rule : op.inputs) {
    const auto source = found.find(source_of(backward, rule.name));
    if (source == found.end() || !source->second.tensor->present) continue;
    read_dims(rule.shape, source->second.tensor->shape, c.dims);
    if (rule.dtype.choices.size() > 1) {
      const DType dtype = source->second.tensor->dtype;
      const bool listed =
          std::find(rule.dtype.choices.begin(), rule.dtype.choices.end(), dtype) != rule.dtype.choices.end();
      c.dtypes[rule.name] = listed ? dtype : rule.dtype.choices[0];
    }
    c.inputs[rule.name].fill.kind = FillKind::kBits;  // the one way to state a saved tensor
  }
  for (const InputRule& rule : op.given) c.inputs[rule.name].fill.kind = FillKind::kBits;  // never passed
  for (const auto& [input, output] : backward.gradient->cotangents) {
    const OutputRule* rule = op.output(output);
    const auto source = found.find(input);
    if (rule != nullptr && source != found.end()) read_dims(rule->shape, source->second.tensor->shape, c.dims);
  }
  for (std::size_t d = 0; d < backward.dims.size(); ++d) {
    if (op.dim(backward.dims[d].name) != nullptr) c.dims.emplace(backward.dims[d].name, at.call->dims[d]);
  }
  for (const CallAttr& attr : at.call->attrs) {
    const AttrRule* rule = op.attr(attr.name);
    if (rule != nullptr && !rule->derived) c.attrs[attr.name] = attr.value;
  }
  return c;
}

std::vector<double> values_of(DType dtype, const Bytes& bytes) {
  std::vector<double> values(bytes.size() / size_of(dtype));
  widen(dtype, bytes, values);
  return values;
}

Bytes in_f64(const Tensor& tensor, const Bytes& full) {
  if (!is_float(tensor.dtype)) return full;
  const std::vector<double> values = values_of(tensor.dtype, full);
  Bytes wide(values.size() * sizeof(double));
  round_all(DType::kF64, values, wide);
  return wide;
}

}  // namespace

BackwardPoint point_of(const Prepared& prepared) {
  BackwardPoint at{&prepared.call, {}, {}};
  const auto take = [](const std::vector<Tensor>& tensors, const std::vector<Bytes>& bytes, std::vector<Bytes>& to) {
    for (std::size_t i = 0; i < bytes.size(); ++i)
      to.push_back(tensors[i].present ? expanded(tensors[i], bytes[i]) : Bytes{});
  };
  take(prepared.call.inputs, prepared.inputs, at.inputs);
  take(prepared.call.givens, prepared.givens, at.givens);
  return at;
}

std::optional<BackwardPoint> widened_point(const Prepared& prepared, const Call& wide, const Comparison& comparison,
                                           const CheckOptions& options, Runner& runner) {
  std::optional<std::vector<Bytes>> inputs = widened_inputs(prepared, comparison, options, runner, /*absolute=*/false);
  if (!inputs) return std::nullopt;
  BackwardPoint at{&wide, *std::move(inputs), {}};
  for (std::size_t i = 0; i < prepared.givens.size(); ++i) {
    const Tensor& given = prepared.call.givens[i];
    at.givens.push_back(given.present ? in_f64(given, expanded(given, prepared.givens[i])) : Bytes{});
  }
  return at;
}

Result<GradientForward> GradientForward::make(const PathOf& path, const BackwardPoint& at, std::uint64_t max_bytes) {
  GradientForward forward;
  forward.path_ = path;
  forward.backward_ = at.call->op;
  if (Status status = forward.bind_to(at, max_bytes); !status.ok()) return status.error();
  forward.take_cotangents(at);
  return forward;
}

Status GradientForward::bind_to(const BackwardPoint& at, std::uint64_t max_bytes) {
  const Operator* op = path_.target->schema.find(backward_->gradient->of);
  if (op == nullptr || !op->has_path(path_.path)) return user_error("it offers no path " + path_.path);
  const std::map<std::string, Found> found = tensors_by_name(at);
  const Case c = forward_case(*op, at, found);
  Result<Call> call = bind(c, *op, max_bytes);
  if (!call.ok()) return call.error();
  call_ = *std::move(call);
  bool wide = false;
  for (std::size_t i = 0; i < call_.inputs.size(); ++i) {
    Tensor& tensor = call_.inputs[i];
    inputs_.emplace_back();
    points_.emplace_back();
    tensor.present = c.inputs.contains(tensor.name);
    if (!tensor.present) continue;
    const Found& source = found.at(source_of(*backward_, tensor.name));
    if (source.tensor->shape != tensor.shape) return user_error("its input " + tensor.name + " has another shape");
    wide = wide || (source.tensor->dtype == DType::kF64 && tensor.dtype != DType::kF64);
    tensor.dtype = source.tensor->dtype;
    tensor.align = std::max(tensor.align, static_cast<std::int64_t>(size_of(tensor.dtype)));
    inputs_.back() = *source.bytes;
    if (is_float(tensor.dtype)) points_.back() = values_of(tensor.dtype, inputs_.back());
    elements_ += element_count(tensor);
  }
  for (Tensor& tensor : call_.inputs) {
    if (wide && !tensor.present && is_float(tensor.dtype)) tensor.dtype = DType::kF64;  // named all the same
  }
  for (Tensor& tensor : call_.outputs) {
    if (wide && is_float(tensor.dtype)) tensor.dtype = DType::kF64;
    tensor.align = std::max(tensor.align, static_cast<std::int64_t>(size_of(tensor.dtype)));
  }
  for (const auto& [input, output] : backward_->gradient->cotangents) {
    const auto source = found.find(input);
    for (const Tensor& tensor : call_.outputs) {
      if (tensor.name != output || source == found.end() || !source->second.tensor->present) continue;
      if (tensor.shape != source->second.tensor->shape)
        return user_error("its output " + output + " has another shape than " + input);
    }
  }
  return {};
}

// What has no cotangent, or one of zero, is no part of L: there an infinite output is no infinite L.
void GradientForward::take_cotangents(const BackwardPoint& at) {
  term_elements_.resize(call_.outputs.size());
  for (std::size_t o = 0; o < call_.outputs.size(); ++o) {
    bool wanted = !call_.op->outputs[o].optional;
    for (const auto& [name, output] : backward_->gradient->cotangents) {
      for (std::size_t i = 0; i < at.inputs.size() && output == call_.outputs[o].name; ++i) {
        const Tensor& tensor = at.call->inputs[i];
        if (tensor.name != name || !tensor.present || !is_float(tensor.dtype)) continue;
        wanted = true;
        const std::vector<double> values = values_of(tensor.dtype, at.inputs[i]);
        for (std::size_t e = 0; e < values.size(); ++e) {
          if (values[e] == 0) continue;
          term_elements_[o].push_back(static_cast<std::int64_t>(e));
          cotangents_.push_back(values[e]);
        }
      }
    }
    call_.outputs[o].present = wanted;
    if (!term_elements_[o].empty() && is_float(call_.outputs[o].dtype))
      roundoff_ = std::max(roundoff_, float_format(call_.outputs[o].dtype).unit_roundoff);
    if (wanted) elements_ += element_count(call_.outputs[o]);
  }
}

int GradientForward::variable_of(const std::string& gradient) const {
  const auto wrt = backward_->gradient->wrt.find(gradient);
  if (wrt == backward_->gradient->wrt.end()) return -1;
  for (std::size_t i = 0; i < call_.inputs.size(); ++i) {
    if (call_.inputs[i].name == wrt->second && call_.inputs[i].present && is_float(call_.inputs[i].dtype))
      return static_cast<int>(i);
  }
  return -1;
}

double GradientForward::move(int variable, std::int64_t index, double value) {
  const DType dtype = tensor(variable).dtype;
  const std::uint64_t bits = round_to_bits(dtype, value);
  store_bits(dtype, bits,
             inputs_[static_cast<std::size_t>(variable)].data() + static_cast<std::size_t>(index) * size_of(dtype));
  return float_value(dtype, bits);
}

void GradientForward::move_all(int variable, std::vector<double>& values) {
  Bytes& bytes = inputs_[static_cast<std::size_t>(variable)];
  round_all(tensor(variable).dtype, values, bytes);
  widen(tensor(variable).dtype, bytes, values);
}

void GradientForward::move_back(int variable) {
  round_all(tensor(variable).dtype, point(variable), inputs_[static_cast<std::size_t>(variable)]);
}

void GradientForward::jitter(double relative, Rng& rng) {
  for (std::size_t i = 0; i < points_.size(); ++i) {
    if (points_[i].empty()) continue;
    std::vector<double> values = points_[i];
    for (double& value : values) value *= rng.one_in(2) ? 1 + relative : 1 - relative;
    round_all(call_.inputs[i].dtype, values, inputs_[i]);
  }
}

void GradientForward::settle_down() {
  for (std::size_t i = 0; i < points_.size(); ++i) {
    if (!points_[i].empty()) round_all(call_.inputs[i].dtype, points_[i], inputs_[i]);
  }
}

bool GradientForward::run(Runner& runner, Budget& budget, std::vector<double>& outputs, std::string& why) const {
  const std::vector<std::span<const std::byte>> views(inputs_.begin(), inputs_.end());
  RunRequest request;
  request.target = path_.target;
  request.path = path_.path;
  request.call = &call_;
  request.inputs = views;
  request.fills = kSecondFills;
  request.bank = Bank::kSecond;
  Execution execution;
  runner.run(request, execution);
  budget.count(execution);
  if (execution.ending != Ending::kOk) {
    why = execution.message.empty() ? "it did not succeed" : execution.message;
    return false;
  }
  outputs.clear();
  bool finite = true;
  for (std::size_t o = 0; o < call_.outputs.size(); ++o) {
    const DType dtype = call_.outputs[o].dtype;
    for (const std::int64_t e : term_elements_[o]) {
      const std::uint64_t bits =
          load_bits(dtype, execution.outputs[o].data() + static_cast<std::size_t>(e) * size_of(dtype));
      outputs.push_back(is_float(dtype) ? float_value(dtype, bits) : static_cast<double>(integer_value(dtype, bits)));
      finite = finite && std::isfinite(outputs.back());
    }
  }
  if (!finite) why = kNotFinite;
  return finite;
}

}  // namespace fusediff
