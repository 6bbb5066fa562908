// matmul and matmul_activation: y = f(scale * (x @ w + bias)) + residual, w as [K, N] or, transposed, as [N, K]. Fused:
// the matmul primitive with bias, output scale and post-ops; unfused: a primitive for each, tensors of the storage
// dtype between. In matmul f is linear on each side of zero, in matmul_activation it grows like its argument: so
// worst-case bounds follow.
#include "onednn/operators.h"
#include "onednn/product.h"

namespace fusediff::onednn {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "matmul",
  "paths": ["fused", "unfused", "reference"],
  "dims": {"M": {"range": [0, 64], "typical": [1, 2, 8, 16, 32]}, "N": {"range": [0, 128], "typical": [1, 8, 16, 64]},
           "K": {"range": [0, 256], "typical": [1, 8, 16, 32, 64, 128]}},
  "attrs": [
    {"name": "transposed", "bool": true, "default": false},
    {"name": "scale", "float": [0.25, 4.0], "default": 1.0},
    {"name": "activation", "choice": ["none", "relu", "leaky_relu", "abs"], "default": "none"}],
  "inputs": [
    {"name": "x",    "shape": ["M", "K"], "dtype": ["f32", "bf16"]},
    {"name": "w",    "shape": ["K", "N"], "dtype": "=x", "optional": true, "if": "transposed == 0"},
    {"name": "w_t",  "shape": ["N", "K"], "dtype": "=x", "optional": true, "if": "transposed == 1"},
    {"name": "bias", "shape": ["N"], "dtype": "=x", "optional": true},
    {"name": "residual", "shape": ["M", "N"], "dtype": "=x", "optional": true}],
  "outputs": [
    {"name": "y", "shape": ["M", "N"], "dtype": "=x", "stage": 1,
     "bound": {"ulp": {"f32": "2 * K + 8", "bf16": "6 + (2 * K + 8) / 32768"}, "of": "abs_inputs",
               "why": "S is the truth on absolute values, residual among them. K products and K additions in any order, with or without fused multiply-add: at most one ULP of S for each pair, two with the growth of partial sums. Bias, scale, activation (slope at most 1, one rounding) and residual: one rounding each, at most one ULP of S each, doubled. bf16 inputs with f32 sums: the same in f32, whose ULP is 2^-16 of a bf16 one, and a rounding to bf16 after each of at most five primitives, half an ULP of at most S each. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 4.2"}}]
})";

constexpr char kActivationSchema[] = R"({
  "name": "matmul_activation",
  "paths": ["fused", "unfused", "reference"],
  "dims": {"M": {"range": [0, 64], "typical": [1, 2, 8, 16, 32]}, "N": {"range": [0, 128], "typical": [1, 8, 16, 64]},
           "K": {"range": [0, 256], "typical": [1, 8, 16, 32, 64, 128]}},
  "attrs": [
    {"name": "transposed", "bool": true, "default": false},
    {"name": "scale", "float": [0.25, 4.0], "default": 1.0},
    {"name": "activation", "choice": ["gelu_tanh", "gelu_erf", "swish", "mish", "hardswish"], "default": "gelu_tanh"}],
  "inputs": [
    {"name": "x",    "shape": ["M", "K"], "dtype": ["f32", "bf16"]},
    {"name": "w",    "shape": ["K", "N"], "dtype": "=x", "optional": true, "if": "transposed == 0"},
    {"name": "w_t",  "shape": ["N", "K"], "dtype": "=x", "optional": true, "if": "transposed == 1"},
    {"name": "bias", "shape": ["N"], "dtype": "=x", "optional": true},
    {"name": "residual", "shape": ["M", "N"], "dtype": "=x", "optional": true}],
  "outputs": [
    {"name": "y", "shape": ["M", "N"], "dtype": "=x", "stage": 1,
     "bound": {"ulp": {"f32": "6 * K + 44", "bf16": "22 + (6 * K + 44) / 32768"}, "of": "abs_inputs",
               "why": "2 K + 8 before the function, as for matmul. Each of these functions has a slope of at most 1.5 and gives at least half of a positive argument, so that the scale is at least S / 2: three times that. Their own error below 20 ULP, for an exp, erf or tanh within 2 ULP and eight more roundings, doubled by the scale; oneDNN documents none. bf16: six roundings at most, times three, and the last"}}]
})";

Epilogue epilogue_of(const Call& call) { return {call, static_cast<float>(call.real("scale"))}; }

bool transposed(const Call& call) { return call.flag("transposed"); }

Operand weights(const Call& call, const Plan& plan) {
  if (!transposed(call)) {
    return plan.input(call, "w");
  }
  Operand w = plan.input(call, "w_t");
  w.desc = w.desc.permute_axes({1, 0});
  return w;
}

void add_product(const Call& call, Plan& plan, const Operand& to) {
  const Operand x = plan.input(call, "x");
  const Operand w = weights(call, plan);
  plan.add(dnnl::matmul::primitive_desc(dnnl::matmul::desc(x.desc, w.desc, to.desc), plan.attributes(), engine()),
           {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, to}});
}

void fused(const Call& call, Plan& plan) {
  const Operand x = plan.input(call, "x");
  const Operand w = weights(call, plan);
  const Operand y = plan.output(call, "y");
  const Epilogue epilogue = epilogue_of(call);
  std::vector<Argument> arguments{{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}};
  const dnnl::primitive_attr attributes = fused_epilogue(call, plan, epilogue, arguments);
  dnnl::matmul::desc desc(x.desc, w.desc, y.desc);
  if (epilogue.bias) {
    const Operand bias = plan.input(call, "bias").as({1, y.dims()[1]});
    arguments.push_back({DNNL_ARG_BIAS, bias});
    desc = dnnl::matmul::desc(x.desc, w.desc, bias.desc, y.desc);
  }
  plan.add(dnnl::matmul::primitive_desc(desc, attributes, engine()), std::move(arguments));
}

void unfused(const Call& call, Plan& plan) {
  add_unfused(call, plan, epilogue_of(call), [&](const Operand& to) { add_product(call, plan, to); });
}

void reference(const Call& call) {
  const Tensor x = call.input("x");
  const Tensor w = call.input(transposed(call) ? "w_t" : "w");
  finish_reference(call, epilogue_of(call),
                   multiply(numbers(x), numbers(w), x.size(0), x.size(1), call.output("y").size(1), transposed(call)));
}

}  // namespace

constinit const Operator kMatmul = make_operator<fused, unfused, reference>("matmul", kSchema);
constinit const Operator kMatmulActivation =
    make_operator<fused, unfused, reference>("matmul_activation", kActivationSchema);

}  // namespace fusediff::onednn
