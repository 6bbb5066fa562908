#include "engine/adapt.h"

#include <algorithm>
#include <optional>

#include "model/number_text.h"

namespace fusediff {
namespace {

template <typename List>
int index_by_name(const List& list, const std::string& name) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

Error unknown(const Operator& to, const std::string& what) { return user_error(to.name + " here " + what); }

Status adapt_dims(const Call& original, Call& call) {
  for (const DimRule& dim : call.op->dims) {
    const int at = index_by_name(original.op->dims, dim.name);
    if (at < 0) return unknown(*call.op, "needs a dim " + dim.name + " that the case does not have");
    call.dims.push_back(original.dims[static_cast<std::size_t>(at)]);
  }
  return {};
}

bool is_of_kind(const AttrValue& value, AttrKind kind) {
  if (kind == AttrKind::kFloat) return std::holds_alternative<double>(value);
  if (kind == AttrKind::kChoice) return std::holds_alternative<std::string>(value);
  return std::holds_alternative<std::int64_t>(value);
}

std::string text_of(const AttrValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&value)) return short_decimal(*real);
  return std::get<std::string>(value);
}

Status adapt_attrs(const Call& original, Call& call) {
  for (const AttrRule& rule : call.op->attrs) {
    const int at = index_by_name(original.attrs, rule.name);
    const AttrValue* value = at >= 0 ? &original.attrs[static_cast<std::size_t>(at)].value : nullptr;
    std::optional<AttrValue> own;
    if (rule.derived) {
      const Result<std::int64_t> derived = call.evaluate(*rule.derived);
      if (!derived.ok()) return derived.error();
      own = *derived;
    } else if (value == nullptr && rule.standard) {
      own = *rule.standard;
    } else if (value == nullptr) {
      return unknown(*call.op, "needs an attribute " + rule.name);
    }
    const std::string* choice = value == nullptr ? nullptr : std::get_if<std::string>(value);
    const bool is_choice =
        choice == nullptr || std::find(rule.choices.begin(), rule.choices.end(), *choice) != rule.choices.end();
    if (value != nullptr && (!is_of_kind(*value, rule.kind) || !is_choice || (own && *own != *value)))
      return unknown(*call.op, "does not know " + rule.name + " = " + text_of(*value));
    call.attrs.push_back({rule.name, own ? *own : *value});
  }
  for (const CallAttr& attr : original.attrs) {
    if (index_by_name(call.op->attrs, attr.name) >= 0) continue;
    const AttrRule* rule = original.op->attr(attr.name);
    if (rule != nullptr && (rule->derived || (rule->standard && *rule->standard == attr.value))) continue;
    return unknown(*call.op, "does not know the attribute " + attr.name);
  }
  return {};
}

const Tensor* tensor_of(const Call& call, const std::string& name) {
  for (const std::vector<Tensor>* tensors : {&call.inputs, &call.givens, &call.outputs}) {
    const int at = index_by_name(*tensors, name);
    if (at >= 0) return &(*tensors)[static_cast<std::size_t>(at)];
  }
  return nullptr;
}

// The dtype that a tensor of the record has in this call: that of the original where it is there.
DType dtype_here(const Call& original, const Operator& to, const std::string& name, const DTypeRule& rule, int steps) {
  const Tensor* tensor = tensor_of(original, name);
  if (tensor != nullptr) return tensor->dtype;
  if (rule.same_as.empty() || steps == 0) return rule.choices.empty() ? DType::kF32 : rule.choices.front();
  const InputRule* input = to.source(rule.same_as);
  const OutputRule* output = to.output(rule.same_as);
  const DTypeRule& other = input != nullptr ? input->dtype : output != nullptr ? output->dtype : rule;
  return dtype_here(original, to, rule.same_as, other, steps - 1);
}

// The tensor as the record describes it: what the target is told of one that the case does not have.
template <typename Rule>
Result<Tensor> described(const Call& original, const Call& call, const Rule& rule) {
  constexpr int kMostSteps = 64;  // a chain of "=x"
  Tensor tensor;
  tensor.name = rule.name;
  tensor.dtype = dtype_here(original, *call.op, rule.name, rule.dtype, kMostSteps);
  tensor.align = std::max(rule.align, static_cast<std::int64_t>(size_of(tensor.dtype)));
  for (const Expr& entry : rule.shape) {
    const Result<std::int64_t> size = call.evaluate(entry);
    if (!size.ok() || *size < 0) return unknown(*call.op, "has no size " + entry.text() + " of " + rule.name);
    tensor.shape.push_back(*size);
  }
  tensor.stride = dense_strides(tensor.shape);
  return tensor;
}

bool layout_fits(const Tensor& tensor, LayoutRule layout) {
  if (layout == LayoutRule::kAny || is_dense(tensor)) return true;
  return layout == LayoutRule::kInnerDense && (tensor.shape.empty() || tensor.stride.back() == 1);
}

// The case's tensor where the record describes the same, aligned as both ask for.
template <typename Rule>
Result<Tensor> taken_over(const Call& original, const Call& call, const Rule& rule, const Tensor& tensor) {
  const Result<Tensor> own = described(original, call, rule);
  if (!own.ok()) return own.error();
  if (own->shape != tensor.shape) return unknown(*call.op, "gives " + rule.name + " another shape");
  if (!layout_fits(tensor, rule.layout)) return unknown(*call.op, "does not take these strides of " + rule.name);
  Tensor taken = tensor;
  taken.align = std::max(tensor.align, own->align);
  if (tensor.offset * static_cast<std::int64_t>(size_of(tensor.dtype)) % taken.align != 0)
    return unknown(*call.op, "asks for " + rule.name + " aligned to " + std::to_string(taken.align) + " bytes");
  return taken;
}

Result<bool> holds(const Call& call, const std::optional<Expr>& condition) {
  if (!condition) return true;
  const Result<std::int64_t> value = call.evaluate(*condition);
  if (!value.ok()) return value.error();
  return *value != 0;
}

Status adapt_inputs(const Call& original, Adapted& adapted) {
  Call& call = adapted.call;
  for (const InputRule& rule : call.op->inputs) {
    const int at = index_by_name(original.inputs, rule.name);
    const bool given = at >= 0 && original.inputs[static_cast<std::size_t>(at)].present;
    const Result<bool> wanted = holds(call, rule.condition);
    if (!wanted.ok()) return wanted.error();
    const bool may_miss = rule.optional && !rule.condition;
    if (!given && *wanted && !may_miss) return unknown(*call.op, "needs an input " + rule.name);
    if (given && !*wanted) return unknown(*call.op, "takes no input " + rule.name + " in this call");
    Result<Tensor> tensor = given ? taken_over(original, call, rule, original.inputs[static_cast<std::size_t>(at)])
                                  : described(original, call, rule);
    if (!tensor.ok()) return tensor.error();
    tensor->present = given;
    call.inputs.push_back(*std::move(tensor));
    adapted.input_from.push_back(given ? at : -1);
  }
  for (const Tensor& input : original.inputs) {
    if (input.present && index_by_name(call.op->inputs, input.name) < 0) {
      return unknown(*call.op, "does not know the input " + input.name);
    }
  }
  return {};
}

// An output that only updates lies on its input whatever the case's layout says; no other does.
Status place_output(const Call& call, const OutputRule& rule, Tensor& output) {
  output.on = -1;
  for (const InplaceRule& inplace : call.op->inplace) {
    if (!inplace.always || inplace.output != rule.name || !output.present) continue;
    const int at = index_by_name(call.inputs, inplace.input);
    if (at < 0 || !call.inputs[static_cast<std::size_t>(at)].present) continue;
    const Tensor& input = call.inputs[static_cast<std::size_t>(at)];
    if (input.shape != output.shape || input.dtype != output.dtype)
      return unknown(*call.op, "updates " + inplace.input + ", which " + rule.name + " does not fit");
    output.stride = input.stride;
    output.offset = input.offset;
    output.place = input.place;
    output.on = at;
  }
  return {};
}

Status adapt_outputs(const Call& original, Adapted& adapted) {
  Call& call = adapted.call;
  for (const Tensor& output : original.outputs)
    adapted.output_from.push_back(index_by_name(call.op->outputs, output.name));
  for (const OutputRule& rule : call.op->outputs) {
    const int at = index_by_name(original.outputs, rule.name);
    const bool given = at >= 0 && original.outputs[static_cast<std::size_t>(at)].present;
    const Result<bool> gives = holds(call, rule.condition);
    if (!gives.ok()) return gives.error();
    Result<Tensor> tensor = given ? taken_over(original, call, rule, original.outputs[static_cast<std::size_t>(at)])
                                  : described(original, call, rule);
    if (!tensor.ok()) return tensor.error();
    tensor->present = *gives && (given || !rule.optional);
    if (Status status = place_output(call, rule, *tensor); !status.ok()) return status;
    call.outputs.push_back(*std::move(tensor));
  }
  for (std::size_t o = 0; o < original.outputs.size(); ++o) {
    int& from = adapted.output_from[o];
    if (from >= 0 && !call.outputs[static_cast<std::size_t>(from)].present) from = -1;
  }
  return {};
}

Status check_offered(const Call& call) {
  const auto check = [&](const auto& rules, const std::vector<Tensor>& tensors) -> Status {
    for (std::size_t i = 0; i < rules.size(); ++i) {
      const DTypeRule& rule = rules[i].dtype;
      if (!tensors[i].present) continue;
      const Tensor* same = rule.same_as.empty() ? nullptr : tensor_of(call, rule.same_as);
      const bool offered = rule.same_as.empty() ? std::find(rule.choices.begin(), rule.choices.end(),
                                                            tensors[i].dtype) != rule.choices.end()
                                                : same == nullptr || same->dtype == tensors[i].dtype;
      if (!offered)
        return unknown(*call.op, "does not offer " + tensors[i].name + " in " + std::string(name_of(tensors[i].dtype)));
    }
    return {};
  };
  if (Status status = check(call.op->inputs, call.inputs); !status.ok()) return status;
  if (Status status = check(call.op->outputs, call.outputs); !status.ok()) return status;
  for (const Expr& rule : call.op->where) {
    const Result<std::int64_t> kept = call.evaluate(rule);
    if (!kept.ok()) return kept.error();
    if (*kept == 0) return unknown(*call.op, "asks for " + rule.text());
  }
  return {};
}

}  // namespace

Result<Adapted> adapt(const Call& original, const Operator& to, bool outside) {
  Adapted adapted;
  adapted.call.op = &to;
  if (Status status = adapt_dims(original, adapted.call); !status.ok()) return status.error();
  if (Status status = adapt_attrs(original, adapted.call); !status.ok()) return status.error();
  if (Status status = adapt_inputs(original, adapted); !status.ok()) return status.error();
  if (Status status = adapt_outputs(original, adapted); !status.ok()) return status.error();
  if (!outside) {
    if (Status status = check_offered(adapted.call); !status.ok()) return status.error();
    return adapted;
  }
  for (const Expr& rule : to.where) {
    const Result<std::int64_t> kept = adapted.call.evaluate(rule);
    if (adapted.call.broken.empty() && (!kept.ok() || *kept == 0)) adapted.call.broken = rule.text();
  }
  return adapted;
}

Call widened(const Call& call) {
  Call wide = call;
  for (std::vector<Tensor>* tensors : {&wide.inputs, &wide.outputs, &wide.givens}) {
    for (Tensor& tensor : *tensors) {
      if (is_float(tensor.dtype)) tensor.dtype = DType::kF64;
      tensor.align = std::max(tensor.align, static_cast<std::int64_t>(size_of(tensor.dtype)));
      tensor.stride = dense_strides(tensor.shape);
      tensor.offset = 0;
      tensor.place = Place::kEnd;
    }
  }
  for (std::size_t o = 0; o < wide.outputs.size(); ++o) {
    const Result<bool> gives = holds(wide, wide.op->outputs[o].condition);
    wide.outputs[o].on = -1;
    wide.outputs[o].present = gives.ok() && *gives;
  }
  return wide;
}

}  // namespace fusediff
