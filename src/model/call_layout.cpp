// Where the elements of a call's tensors lie.
#include <algorithm>
#include <array>

#include "model/call_bind.h"
#include "model/quote.h"

namespace fusediff {

namespace {

constexpr std::size_t kMaxRank = 16;  // as in a schema

bool is_empty(const Tensor& tensor) {
  return std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end();
}

// Elements that differ in some index of a stride other than 0 lie apart: sorted by stride, each step passes all that
// the smaller ones reach. (Interleaved strides that happen not to meet, like 3 and 2 for 2 x 3, are refused too.)
bool lie_apart(const Tensor& tensor) {
  std::array<std::pair<std::int64_t, std::int64_t>, kMaxRank> steps;  // stride, size
  std::size_t count = 0;
  for (std::size_t dim = 0; dim < tensor.shape.size(); ++dim) {
    if (tensor.shape[dim] > 1 && tensor.stride[dim] > 0) steps[count++] = {tensor.stride[dim], tensor.shape[dim]};
  }
  std::sort(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(count));
  std::int64_t reach = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto& [stride, size] = steps[i];
    std::int64_t span = 0;
    if (stride <= reach || __builtin_mul_overflow(stride, size - 1, &span)) return false;
    if (__builtin_add_overflow(reach, span, &reach)) return false;
  }
  return true;
}

// What the schema allows of strides; "" when they are fine. zeros: may a stride be 0 along more than one element?
std::string stride_trouble(const Tensor& tensor, LayoutRule rule, bool zeros) {
  const std::size_t rank = tensor.shape.size();
  if (rank > kMaxRank) return "a rank of " + std::to_string(rank) + " is above 16";
  if (tensor.stride.size() != rank) {
    return "has " + std::to_string(tensor.stride.size()) + " strides for a rank of " + std::to_string(rank);
  }
  if (std::any_of(tensor.stride.begin(), tensor.stride.end(), [](std::int64_t stride) { return stride < 0; })) {
    return "a stride is not negative";
  }
  if (is_empty(tensor)) return "";
  const std::vector<std::int64_t> dense = dense_strides(tensor.shape);
  for (std::size_t dim = 0; dim < rank; ++dim) {
    if (tensor.shape[dim] <= 1) continue;
    if (rule == LayoutRule::kDense && tensor.stride[dim] != dense[dim]) {
      return "only dense strides are allowed here, " + std::to_string(dense[dim]) + " along dimension " +
             std::to_string(dim);
    }
    if (rule == LayoutRule::kInnerDense && dim + 1 == rank && tensor.stride[dim] != 1) {
      return "the stride of the last dimension must be 1 (inner_dense)";
    }
    if (tensor.stride[dim] == 0 && !(zeros && rule == LayoutRule::kAny)) {
      return "stride 0 is allowed only in inputs of layout any that no output lies on";
    }
  }
  return lie_apart(tensor) ? "" : "elements overlap, or may; each stride must pass all that smaller strides reach";
}

// Offset and place; "" when fine.
std::string place_trouble(const Tensor& tensor) {
  if (tensor.offset < 0) return "an offset is not negative";
  if (tensor.offset > 0 && tensor.place == Place::kEnd) return "an offset needs the place start or middle";
  const auto element = static_cast<std::int64_t>(size_of(tensor.dtype));
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(tensor.offset, element, &bytes)) return "the offset is too large";
  if (bytes % tensor.align != 0) {
    return "an offset of " + std::to_string(bytes) + " bytes breaks the alignment to " + std::to_string(tensor.align) +
           " bytes";
  }
  return "";
}

Status apply_choice(const LayoutChoice& choice, LayoutRule rule, bool input, Tensor& tensor) {
  if (choice.stride) tensor.stride = *choice.stride;
  tensor.offset = choice.offset;
  tensor.place = choice.place;
  std::string trouble = stride_trouble(tensor, rule, input);
  if (!trouble.empty()) return at_name("layout", tensor.name, trouble, "/stride");
  trouble = place_trouble(tensor);
  if (!trouble.empty()) return at_name("layout", tensor.name, trouble, "/offset");
  return {};
}

template <typename Rule>
std::size_t index_in(const std::vector<Rule>& rules, std::string_view name) {
  std::size_t at = 0;
  while (at < rules.size() && rules[at].name != name) ++at;
  return at;
}

// An output on an input: one memory, so one shape, dtype, stride and place.
Status put_on(const InplaceRule& rule, const LayoutChoice* choice, Call& call) {
  const std::size_t to = index_in(call.op->outputs, rule.output);
  const std::size_t from = index_in(call.op->inputs, rule.input);
  if (to == call.outputs.size() || from == call.inputs.size()) return our_error("the schema's inplace names no tensor");
  Tensor& output = call.outputs[to];
  Tensor& input = call.inputs[from];
  const auto wrong = [&](std::string_view what) {
    return at_name("layout", rule.output, "cannot lie on " + quote(rule.input) + ": " + std::string(what));
  };
  if (!input.present || !output.present) return wrong("one of them is absent");
  if (output.shape != input.shape) return wrong("their shapes differ");
  if (output.dtype != input.dtype) return wrong("their dtypes differ");
  for (const Tensor& other : call.outputs) {
    if (&other != &output && other.on == static_cast<int>(from)) return wrong(quote(other.name) + " lies there");
  }
  if (choice != nullptr && choice->stride && *choice->stride != input.stride) return wrong("its strides are another's");
  if (choice != nullptr && (choice->offset != 0 || choice->place != Place::kEnd))
    return wrong("offset and place are those of the input");
  output.stride = input.stride;
  output.offset = input.offset;
  output.place = input.place;
  output.align = input.align = std::max(output.align, input.align);
  const std::string trouble = stride_trouble(output, call.op->outputs[to].layout, false);
  if (!trouble.empty()) return wrong(trouble);
  const std::string place = place_trouble(output);
  if (!place.empty()) return wrong(place);
  output.on = static_cast<int>(from);
  return {};
}

const LayoutChoice* choice_of(const Case& c, const std::string& name) {
  const auto at = c.layout.find(name);
  return at == c.layout.end() ? nullptr : &at->second;
}

Status bind_output(const Case& c, std::size_t index, const LayoutChoice& choice, Call& call) {
  const OutputRule& rule = call.op->outputs[index];
  if (choice.on.empty()) return apply_choice(choice, rule.layout, false, call.outputs[index]);
  std::vector<std::string> legal;
  for (const InplaceRule& inplace : call.op->inplace) {
    if (inplace.output != rule.name) continue;
    if (inplace.input == choice.on) return put_on(inplace, choice_of(c, rule.name), call);
    legal.push_back(inplace.input);
  }
  return at_name("layout", rule.name, not_one_of(choice.on, "an input that it may lie on", legal), "/on");
}

Status no_layout(const Call& call, const std::string& name) {
  std::vector<std::string> legal = names_in(call.op->inputs);
  for (const OutputRule& output : call.op->outputs) legal.push_back(output.name);
  return at_name("layout", name, not_one_of(name, "an input or output of " + call.op->name, legal));
}

Status bind_input_layouts(const Case& c, Call& call) {
  for (const auto& [name, choice] : c.layout) {
    const std::size_t at = index_in(call.op->inputs, name);
    if (at == call.inputs.size()) {
      if (call.op->output(name) == nullptr) return no_layout(call, name);
      continue;
    }
    if (!call.inputs[at].present) return at_name("layout", name, "the input is absent in this case");
    if (!choice.on.empty()) return at_name("layout", name, "only an output may lie on an input", "/on");
    Status status = apply_choice(choice, call.op->inputs[at].layout, true, call.inputs[at]);
    if (!status.ok()) return status;
  }
  return {};
}

Status bind_output_layouts(const Case& c, Call& call) {
  for (const InplaceRule& rule : call.op->inplace) {
    if (!rule.always) continue;
    const std::size_t output = index_in(call.op->outputs, rule.output);
    const std::size_t input = index_in(call.op->inputs, rule.input);
    const bool there = output < call.outputs.size() && input < call.inputs.size() && call.outputs[output].present &&
                       call.inputs[input].present;
    if (!there) continue;
    const LayoutChoice* choice = choice_of(c, rule.output);
    if (choice != nullptr && !choice->on.empty() && choice->on != rule.input) {
      return at_name("layout", rule.output, "it always lies on " + quote(rule.input), "/on");
    }
    Status status = put_on(rule, choice, call);
    if (!status.ok()) return status;
  }
  for (const auto& [name, choice] : c.layout) {
    const std::size_t at = index_in(call.op->outputs, name);
    if (at == call.outputs.size() || call.outputs[at].on >= 0) continue;
    if (!call.outputs[at].present) return at_name("layout", name, "the output is not asked for in this case");
    Status status = bind_output(c, at, choice, call);
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace

Status bind_layout(const Case& c, Call& call) {
  if (c.layout.empty() && call.op->inplace.empty()) return {};
  Status status = bind_input_layouts(c, call);
  if (!status.ok()) return status;
  return bind_output_layouts(c, call);
}

}  // namespace fusediff
