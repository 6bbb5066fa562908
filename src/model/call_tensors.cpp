// Tensors of a call: which there are, of what shape and dtype.
#include <algorithm>

#include "model/call_bind.h"
#include "model/quote.h"

namespace fusediff {

namespace {

// Sizes other than 0 multiply to at most this, so that no stride of an empty tensor overflows.
constexpr std::int64_t kMaxProduct = std::int64_t{1} << 62;

Error no_tensor(const Call& call, std::string_view section, std::string_view name, std::string_view kind,
                const std::vector<std::string>& legal) {
  return at_name(section, name, not_one_of(name, std::string(kind) + " of " + call.op->name, legal));
}

std::string shape_text(const Tensor& tensor) {
  std::string text;
  for (const std::int64_t size : tensor.shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

template <typename Rule>
Status bind_shape(const Rule& rule, const Call& call, Tensor& tensor) {
  tensor.shape.reserve(rule.shape.size());
  std::int64_t product = 1;
  bool empty = false;
  bool large = false;
  for (const Expr& expr : rule.shape) {
    const Result<std::int64_t> size = call.evaluate(expr);
    if (!size.ok()) return user_error("/dims: shape of " + quote(rule.name) + ": " + size.error().what);
    if (*size < 0) {
      return user_error("/dims: " + quote(rule.name) + " would have the size " + std::to_string(*size) + ", " +
                        quote(expr.text()) + " (" + values_of(call, expr) + "); a size is not negative");
    }
    tensor.shape.push_back(*size);
    empty = empty || *size == 0;
    if (*size > 0) large = large || __builtin_mul_overflow(product, *size, &product) || product > kMaxProduct;
  }
  if (!large && (empty || product <= kMaxElements)) return {};
  return user_error("/dims: " + quote(rule.name) + " of shape " + shape_text(tensor) +
                    " has too many elements; at most 2^31");
}

// The rule of the tensor whose dtype is asked for, and where the case may choose it.
const DTypeRule* dtype_rule(const Operator& op, std::string_view name) {
  if (const InputRule* input = op.source(name)) return &input->dtype;
  const OutputRule* output = op.output(name);
  return output == nullptr ? nullptr : &output->dtype;
}

std::vector<std::string> dtype_names(const std::vector<DType>& dtypes) {
  std::vector<std::string> names;
  for (const DType dtype : dtypes) names.emplace_back(name_of(dtype));
  return names;
}

Result<DType> bind_dtype(std::string_view tensor, const DTypeRule& own, const Case& c, const Operator& op) {
  const DTypeRule* rule = &own;
  std::string_view name = tensor;
  // The schema was checked for circles; a hand-made one must not hang either.
  for (std::size_t steps = op.inputs.size() + op.given.size() + op.outputs.size(); !rule->same_as.empty(); --steps) {
    name = rule->same_as;
    rule = dtype_rule(op, name);
    if (rule == nullptr || steps == 0)
      return our_error("the schema of " + op.name + " gives " + std::string(tensor) + " no dtype");
  }
  const auto stated = c.dtypes.find(std::string(name));
  if (stated == c.dtypes.end()) {
    if (rule->choices.size() == 1) return rule->choices.front();
    return user_error("/dtypes: " + quote(name) + " is missing; legal: " + list_of(dtype_names(rule->choices)));
  }
  if (std::find(rule->choices.begin(), rule->choices.end(), stated->second) != rule->choices.end())
    return stated->second;
  return at_name("dtypes", name,
                 not_one_of(name_of(stated->second), "a dtype that it may have", dtype_names(rule->choices)));
}

// Only tensors with a choice of their own stand under "dtypes".
Status check_dtypes(const Case& c, const Call& call) {
  const Operator& op = *call.op;
  for (const auto& [name, dtype] : c.dtypes) {
    const DTypeRule* rule = dtype_rule(op, name);
    if (rule == nullptr) {
      std::vector<std::string> legal = names_in(op.inputs);
      for (const auto& given : op.given) legal.push_back(given.name);
      for (const auto& output : op.outputs) legal.push_back(output.name);
      return no_tensor(call, "dtypes", name, "a tensor", legal);
    }
    if (!rule->same_as.empty())
      return at_name("dtypes", name, "has the dtype of " + quote(rule->same_as) + " and does not stand here");
  }
  return {};
}

// Does the condition hold? No condition holds.
Result<bool> holds(const std::optional<Expr>& condition, const Call& call, std::string_view tensor) {
  if (!condition) return true;
  const Result<std::int64_t> value = call.evaluate(*condition);
  if (!value.ok()) return user_error("/dims: \"if\" of " + quote(tensor) + ": " + value.error().what);
  return *value != 0;
}

Status bind_presence(const InputRule& rule, const InputValue* value, const Call& call, Tensor& tensor) {
  const Result<bool> condition = holds(rule.condition, call, rule.name);
  if (!condition.ok()) return condition.error();
  const bool saved = rule.saved.has_value();
  const bool may_miss = rule.optional && !rule.condition;
  tensor.present = *condition && (value != nullptr || saved || !may_miss);
  if (value == nullptr && tensor.present && !saved) {
    return user_error("/inputs: " + quote(rule.name) + " is missing; it needs at least a fill");
  }
  if (value != nullptr && !*condition) {
    return at_name("inputs", rule.name,
                   "is absent where " + quote(rule.condition->text()) + " does not hold (" +
                       values_of(call, *rule.condition) + ")");
  }
  if (value != nullptr && saved && (value->fill.kind != FillKind::kBits || !value->patches.empty())) {
    return at_name("inputs", rule.name, "is computed by " + quote(rule.saved->op) + "; only bits may override it");
  }
  return {};
}

// A file says the dtype of its bits.
Status check_file_dtypes(const InputValue& value, const Tensor& tensor) {
  const auto fits = [&tensor](const Fill& fill) {
    return fill.kind != FillKind::kBits || !fill.bits_dtype || *fill.bits_dtype == tensor.dtype;
  };
  const auto wrong = [&tensor](const Fill& fill, const std::string& below) {
    return at_name("inputs", tensor.name,
                   quote(fill.bits_file) + " holds " + std::string(name_of(*fill.bits_dtype)) + ", the tensor is " +
                       std::string(name_of(tensor.dtype)),
                   below);
  };
  if (!fits(value.fill)) return wrong(value.fill, "/fill/bits");
  for (std::size_t i = 0; i < value.patches.size(); ++i) {
    if (!fits(value.patches[i].fill))
      return wrong(value.patches[i].fill, "/patches/" + std::to_string(i) + "/fill/bits");
  }
  return {};
}

template <typename Rule>
Status bind_tensor(const Rule& rule, const Case& c, const Call& call, Tensor& tensor) {
  tensor.name = rule.name;
  const Result<DType> dtype = bind_dtype(rule.name, rule.dtype, c, *call.op);
  if (!dtype.ok()) return dtype.error();
  tensor.dtype = *dtype;
  tensor.align = std::max(rule.align, static_cast<std::int64_t>(size_of(tensor.dtype)));
  Status shape = bind_shape(rule, call, tensor);
  if (shape.ok()) tensor.stride = dense_strides(tensor.shape);
  return shape;
}

// found: counts the entries of c.inputs that belong to a tensor.
Status bind_inputs(const std::vector<InputRule>& rules, const Case& c, const Call& call, std::vector<Tensor>& tensors,
                   std::size_t& found) {
  tensors.reserve(rules.size());
  for (const InputRule& rule : rules) {
    Tensor& tensor = tensors.emplace_back();
    Status status = bind_tensor(rule, c, call, tensor);
    if (!status.ok()) return status;
    const auto stated = c.inputs.find(rule.name);
    const InputValue* value = stated == c.inputs.end() ? nullptr : &stated->second;
    status = bind_presence(rule, value, call, tensor);
    if (status.ok() && value != nullptr) status = check_file_dtypes(*value, tensor);
    if (!status.ok()) return status;
    found += value != nullptr ? 1 : 0;
  }
  return {};
}

Status bind_outputs(const Case& c, Call& call) {
  call.outputs.reserve(call.op->outputs.size());
  for (const OutputRule& rule : call.op->outputs) {
    Tensor& tensor = call.outputs.emplace_back();
    Status status = bind_tensor(rule, c, call, tensor);
    if (!status.ok()) return status;
    const Result<bool> condition = holds(rule.condition, call, rule.name);
    if (!condition.ok()) return condition.error();
    tensor.present = *condition;
  }
  for (std::size_t i = 0; i < c.unwanted.size(); ++i) {
    const std::string& name = c.unwanted[i];
    const OutputRule* rule = call.op->output(name);
    const auto before = c.unwanted.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(c.unwanted.begin(), before, name) != before) {
      return at_name("unwanted", std::to_string(i), quote(name) + " stands twice");
    }
    if (rule == nullptr || !rule->optional) {
      std::vector<std::string> legal;
      for (const OutputRule& output : call.op->outputs) {
        if (output.optional) legal.push_back(output.name);
      }
      const std::string kind = "an optional output of " + call.op->name;
      return at_name("unwanted", std::to_string(i), not_one_of(name, kind, legal));
    }
    call.outputs[static_cast<std::size_t>(rule - call.op->outputs.data())].present = false;
  }
  return {};
}

}  // namespace

Status bind_tensors(const Case& c, Call& call) {
  Status status = check_dtypes(c, call);
  std::size_t found = 0;
  if (status.ok()) status = bind_inputs(call.op->inputs, c, call, call.inputs, found);
  if (status.ok()) status = bind_inputs(call.op->given, c, call, call.givens, found);
  if (status.ok()) status = bind_outputs(c, call);
  if (!status.ok() || found == c.inputs.size()) return status;
  for (const auto& [name, value] : c.inputs) {
    if (call.op->source(name) != nullptr) continue;
    std::vector<std::string> legal = names_in(call.op->inputs);
    for (const InputRule& given : call.op->given) legal.push_back(given.name);
    return no_tensor(call, "inputs", name, "an input", legal);
  }
  return {};
}

}  // namespace fusediff
