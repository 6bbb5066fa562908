// inner_product: y = f(x @ w^T + bias) + residual, w as [N, K]. Fused: the inner product primitive with bias and
// post-ops; unfused: a primitive for each, tensors of the storage dtype between. No output scale: that is documented
// for int8 alone.
#include "onednn/operators.h"
#include "onednn/product.h"

namespace fusediff::onednn {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "inner_product",
  "paths": ["fused", "unfused", "reference"],
  "dims": {"M": {"range": [0, 64], "typical": [1, 2, 8, 16, 32]}, "N": {"range": [0, 128], "typical": [1, 8, 16, 64]},
           "K": {"range": [0, 256], "typical": [1, 8, 16, 32, 64, 128]}},
  "attrs": [
    {"name": "activation", "choice": ["none", "relu", "leaky_relu", "abs"], "default": "none"}],
  "inputs": [
    {"name": "x",    "shape": ["M", "K"], "dtype": ["f32", "bf16"]},
    {"name": "w",    "shape": ["N", "K"], "dtype": "=x"},
    {"name": "bias", "shape": ["N"], "dtype": "=x", "optional": true},
    {"name": "residual", "shape": ["M", "N"], "dtype": "=x", "optional": true}],
  "outputs": [
    {"name": "y", "shape": ["M", "N"], "dtype": "=x", "stage": 1,
     "bound": {"ulp": {"f32": "2 * K + 6", "bf16": "5 + (2 * K + 6) / 32768"}, "of": "abs_inputs",
               "why": "as for matmul, without the scale: S is the truth on absolute values; two ULP of S for each product and addition, two for bias, activation and residual each; bf16 rounds at most four times more, half an ULP of S each. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 4.2"}}]
})";

void add_product(const Call& call, Plan& plan, const Operand& to) {
  const Operand x = plan.input(call, "x");
  const Operand w = plan.input(call, "w");
  const dnnl::inner_product_forward::desc desc(dnnl::prop_kind::forward_inference, x.desc, w.desc, to.desc);
  plan.add(dnnl::inner_product_forward::primitive_desc(desc, plan.attributes(), engine()),
           {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, to}});
}

void fused(const Call& call, Plan& plan) {
  using Forward = dnnl::inner_product_forward;
  const Operand x = plan.input(call, "x");
  const Operand w = plan.input(call, "w");
  const Operand y = plan.output(call, "y");
  const Epilogue epilogue(call, 1);
  std::vector<Argument> arguments{{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}};
  const dnnl::primitive_attr attributes = fused_epilogue(call, plan, epilogue, arguments);
  constexpr dnnl::prop_kind kKind = dnnl::prop_kind::forward_inference;
  Forward::desc desc(kKind, x.desc, w.desc, y.desc);
  if (epilogue.bias) {
    const Operand bias = plan.input(call, "bias");
    arguments.push_back({DNNL_ARG_BIAS, bias});
    desc = Forward::desc(kKind, x.desc, w.desc, bias.desc, y.desc);
  }
  plan.add(Forward::primitive_desc(desc, attributes, engine()), std::move(arguments));
}

void unfused(const Call& call, Plan& plan) {
  add_unfused(call, plan, {call, 1}, [&](const Operand& to) { add_product(call, plan, to); });
}

void reference(const Call& call) {
  const Tensor x = call.input("x");
  finish_reference(
      call, {call, 1},
      multiply(numbers(x), numbers(call.input("w")), x.size(0), x.size(1), call.output("y").size(1), true));
}

}  // namespace

constinit const Operator kInnerProduct = make_operator<fused, unfused, reference>("inner_product", kSchema);

}  // namespace fusediff::onednn
