// binary: y = f((scale_a * a) op (scale_b * b)), b repeated along the dimensions where it is 1. Fused: the binary
// primitive with its two scales as attributes and f as a post-op; unfused: a primitive for each, tensors of the storage
// dtype between. No scales in a comparison, which jumps where its arguments round, nor in a sum or difference, where
// rounded products cancel, nor in a divisor, whose zero loses its sign in oneDNN's linear function.
#include <cmath>

#include "onednn/functions.h"
#include "onednn/operators.h"

namespace fusediff::onednn {
namespace {

using namespace kit;
using dnnl::algorithm;

constexpr char kSchema[] = R"({
  "name": "binary",
  "paths": ["fused", "unfused", "reference"],
  "dims": {"R": {"range": [0, 64]}, "C": {"range": [0, 512], "typical": [1, 16, 64, 128]},
           "P": {"range": [0, 64]}, "Q": {"range": [0, 512], "typical": [1, 16, 64, 128]}},
  "attrs": [
    {"name": "op", "choice": ["add", "mul", "max", "min", "div", "sub", "ge", "gt", "le", "lt", "eq", "ne"],
     "default": "add"},
    {"name": "scale_a", "float": [0.25, 4.0], "default": 1.0, "also": [-1.0],
     "if": "op == 'mul' || op == 'max' || op == 'min' || op == 'div'"},
    {"name": "scale_b", "float": [0.25, 4.0], "default": 1.0, "also": [-1.0],
     "if": "op == 'mul' || op == 'max' || op == 'min'"},
    {"name": "then", "choice": ["none", "relu", "leaky_relu", "tanh", "square", "abs", "swish", "three_quarters", "logistic",
      "gelu_tanh", "gelu_erf", "clip"], "default": "none"}],
  "where": ["P == R || P == 1", "Q == C || Q == 1"],
  "inputs": [
    {"name": "a", "shape": ["R", "C"], "dtype": ["f32", "bf16"]},
    {"name": "b", "shape": ["P", "Q"], "dtype": "=a"}],
  "outputs": [{"name": "y", "shape": ["R", "C"], "dtype": "=a", "stage": 1}]
})";

struct Operation {
  const char* name;
  algorithm kind;
  double (*exact)(double, double);
};

constexpr Operation kOperations[] = {
    {"add", algorithm::binary_add, [](double a, double b) { return a + b; }},
    {"mul", algorithm::binary_mul, [](double a, double b) { return a * b; }},
    {"max", algorithm::binary_max, [](double a, double b) { return a > b ? a : b; }},
    {"min", algorithm::binary_min, [](double a, double b) { return a < b ? a : b; }},
    {"div", algorithm::binary_div, [](double a, double b) { return a / b; }},
    {"sub", algorithm::binary_sub, [](double a, double b) { return a - b; }},
    {"ge", algorithm::binary_ge, [](double a, double b) { return a >= b ? 1.0 : 0.0; }},
    {"gt", algorithm::binary_gt, [](double a, double b) { return a > b ? 1.0 : 0.0; }},
    {"le", algorithm::binary_le, [](double a, double b) { return a <= b ? 1.0 : 0.0; }},
    {"lt", algorithm::binary_lt, [](double a, double b) { return a < b ? 1.0 : 0.0; }},
    {"eq", algorithm::binary_eq, [](double a, double b) { return a == b ? 1.0 : 0.0; }},
    {"ne", algorithm::binary_ne, [](double a, double b) { return a != b ? 1.0 : 0.0; }}};

const Operation& find_operation(const Call& call) {
  for (const Operation& one : kOperations) {
    if (call.text("op") == one.name) {
      return one;
    }
  }
  reject("there is no binary operation ", call.text("op"));
}

// As oneDNN gets it.
float scale(const Call& call, std::string_view name) { return static_cast<float>(call.real(name)); }

void fused(const Call& call, Plan& plan) {
  const Operand a = plan.input(call, "a");
  const Operand b = plan.input(call, "b");
  const Operand y = plan.output(call, "y");
  dnnl::post_ops then;
  append(then, find_function(call.text("then")));
  dnnl::primitive_attr attributes = plan.attributes(then);
  if (scale(call, "scale_a") != 1) {
    attributes.set_scales(DNNL_ARG_SRC_0, 0, {scale(call, "scale_a")});
  }
  if (scale(call, "scale_b") != 1) {
    attributes.set_scales(DNNL_ARG_SRC_1, 0, {scale(call, "scale_b")});
  }
  const dnnl::binary::desc desc(find_operation(call).kind, a.desc, b.desc, y.desc);
  plan.add(dnnl::binary::primitive_desc(desc, attributes, engine()),
           {{DNNL_ARG_SRC_0, a}, {DNNL_ARG_SRC_1, b}, {DNNL_ARG_DST, y}});
}

// The operand times its scale, as a primitive of its own; the operand itself where that is 1.
Operand scaled(const Call& call, Plan& plan, std::string_view operand, std::string_view name) {
  const Operand from = plan.input(call, operand);
  if (scale(call, name) == 1) {
    return from;
  }
  const Operand to = plan.between(from.dims(), from.desc.data_type());
  add_linear(plan, from, to, scale(call, name), 0);
  return to;
}

void unfused(const Call& call, Plan& plan) {
  const Operand a = scaled(call, plan, "a", "scale_a");
  const Operand b = scaled(call, plan, "b", "scale_b");
  const Operand y = plan.output(call, "y");
  const Function* then = find_function(call.text("then"));
  const Operand result = then == nullptr ? y : plan.between(y.dims(), y.desc.data_type());
  add_binary(plan, find_operation(call).kind, a, b, result);
  if (then != nullptr) {
    add_eltwise(plan, result, y, *then);
  }
}

void reference(const Call& call) {
  const Tensor b_tensor = call.input("b");
  const auto columns = static_cast<size_t>(call.output("y").size(1));
  const Numbers b = numbers(b_tensor);
  const double scale_a = static_cast<double>(scale(call, "scale_a"));
  const double scale_b = static_cast<double>(scale(call, "scale_b"));
  Numbers y = numbers(call.input("a"));
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t row = b_tensor.size(0) == 1 ? 0 : i / columns;
    const size_t column = b_tensor.size(1) == 1 ? 0 : i % columns;
    const size_t j = row * static_cast<size_t>(b_tensor.size(1)) + column;
    y[i] = find_operation(call).exact(scale_a * y[i], scale_b * b[j]);
  }
  apply(y, find_function(call.text("then")));
  store(call.output("y"), y);
}

}  // namespace

constinit const Operator kBinary = make_operator<fused, unfused, reference>("binary", kSchema);

}  // namespace fusediff::onednn
