#include "engine/adapt.h"

#include <algorithm>

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

Status adapt_attrs(const Call& original, Call& call) {
  for (const AttrRule& rule : call.op->attrs) {
    const int at = index_by_name(original.attrs, rule.name);
    if (at >= 0) {
      const AttrValue& value = original.attrs[static_cast<std::size_t>(at)].value;
      const std::string* choice = std::get_if<std::string>(&value);
      if (choice != nullptr && std::find(rule.choices.begin(), rule.choices.end(), *choice) == rule.choices.end()) {
        return unknown(*call.op, "does not know " + rule.name + " = " + *choice);
      }
      call.attrs.push_back({rule.name, value});
    } else if (rule.derived) {
      const Result<std::int64_t> value = call.evaluate(*rule.derived);
      if (!value.ok()) return value.error();
      call.attrs.push_back({rule.name, *value});
    } else if (rule.standard) {
      call.attrs.push_back({rule.name, *rule.standard});
    } else {
      return unknown(*call.op, "needs an attribute " + rule.name);
    }
  }
  for (const CallAttr& attr : original.attrs) {
    if (index_by_name(call.op->attrs, attr.name) >= 0) continue;
    const AttrRule* rule = original.op->attr(attr.name);
    if (rule != nullptr && rule->standard && *rule->standard == attr.value) continue;
    return unknown(*call.op, "does not know the attribute " + attr.name);
  }
  return {};
}

Status adapt_inputs(const Call& original, Adapted& adapted) {
  Call& call = adapted.call;
  for (const InputRule& rule : call.op->inputs) {
    const int at = index_by_name(original.inputs, rule.name);
    adapted.input_from.push_back(at);
    if (at >= 0) {
      call.inputs.push_back(original.inputs[static_cast<std::size_t>(at)]);
      continue;
    }
    if (!rule.optional && !rule.condition) return unknown(*call.op, "needs an input " + rule.name);
    Tensor absent;
    absent.name = rule.name;
    absent.present = false;
    call.inputs.push_back(absent);
  }
  for (const Tensor& input : original.inputs) {
    if (input.present && index_by_name(call.op->inputs, input.name) < 0) {
      return unknown(*call.op, "does not know the input " + input.name);
    }
  }
  return {};
}

void adapt_outputs(const Call& original, Adapted& adapted) {
  Call& call = adapted.call;
  for (const Tensor& output : original.outputs)
    adapted.output_from.push_back(index_by_name(call.op->outputs, output.name));
  for (const OutputRule& rule : call.op->outputs) {
    const int at = index_by_name(original.outputs, rule.name);
    Tensor tensor;
    tensor.name = rule.name;
    tensor.present = false;
    if (at >= 0) tensor = original.outputs[static_cast<std::size_t>(at)];
    const auto updates = [&](const InplaceRule& inplace) { return inplace.always && inplace.output == rule.name; };
    if (std::none_of(call.op->inplace.begin(), call.op->inplace.end(), updates)) tensor.on = -1;
    call.outputs.push_back(tensor);
  }
  for (Tensor& output : call.outputs) {
    if (output.on < 0) continue;
    const std::string& input = original.inputs[static_cast<std::size_t>(output.on)].name;
    output.on = index_by_name(call.inputs, input);
  }
}

Status check_offered(const Call& call) {
  const auto check = [&](const auto& rules, const std::vector<Tensor>& tensors) -> Status {
    for (std::size_t i = 0; i < rules.size(); ++i) {
      const std::vector<DType>& choices = rules[i].dtype.choices;
      if (!tensors[i].present || choices.empty()) continue;
      if (std::find(choices.begin(), choices.end(), tensors[i].dtype) != choices.end()) continue;
      return unknown(*call.op, "does not offer " + tensors[i].name + " in " + std::string(name_of(tensors[i].dtype)));
    }
    return {};
  };
  if (Status status = check(call.op->inputs, call.inputs); !status.ok()) return status;
  for (const Expr& rule : call.op->where) {
    const Result<std::int64_t> holds = call.evaluate(rule);
    if (!holds.ok()) return holds.error();
    if (*holds == 0) return unknown(*call.op, "asks for " + rule.text());
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
  adapt_outputs(original, adapted);
  if (!outside) {
    if (Status status = check_offered(adapted.call); !status.ok()) return status.error();
  }
  return adapted;
}

Call widened(const Call& call) {
  Call wide = call;
  for (std::vector<Tensor>* tensors : {&wide.inputs, &wide.outputs, &wide.givens}) {
    for (Tensor& tensor : *tensors) {
      if (is_float(tensor.dtype)) tensor.dtype = DType::kF64;
      tensor.align = static_cast<std::int64_t>(size_of(tensor.dtype));
      tensor.offset = 0;
      tensor.place = Place::kEnd;
    }
  }
  for (Tensor& output : wide.outputs) {
    output.stride = dense_strides(output.shape);
    output.on = -1;
    output.present = true;
  }
  return wide;
}

}  // namespace fusediff
