// matmul with bias and activation in f32, and linear in f32 and bf16. Fused: at::addmm, at::linear and the activations
// of ATen. Unfused: at::matmul, add, and the activation out of small operators.
#include "builtin/operators.h"
#include "torch/aten.h"
#include "torch/operators.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>

#include <numbers>

namespace fusediff::torch {
namespace {

using namespace kit;

struct Product {
  at::Tensor x, w, bias;  // w [K, N]; bias undefined where there is none
};

// The record's `if` says which of w and w_t is there.
Product read_product(const Call& call) {
  const bool transposed = call.flag("transposed");
  const at::Tensor w = aten(call.input(transposed ? "w_t" : "w"));
  const Tensor bias = call.input("bias");
  return {aten(call.input("x")), transposed ? w.t() : w, aten_if_present(bias)};
}

void matmul_fused(const Call& call) {
  const Product p = read_product(call);
  const at::Tensor pre = p.bias.defined() ? at::addmm(p.bias, p.x, p.w) : at::mm(p.x, p.w);
  const std::string_view activation = call.text("activation");
  at::Tensor y = pre;
  if (activation == "relu") {
    y = at::relu(pre);
  } else if (activation == "silu") {
    y = at::silu(pre);
  } else if (activation == "gelu_tanh") {
    y = at::gelu(pre, "tanh");
  } else {
    require(activation == "none", "activation must be none, relu, silu or gelu_tanh");
  }
  give(call.output("pre"), pre);
  give(call.output("y"), y);
}

void matmul_unfused(const Call& call) {
  const Product p = read_product(call);
  const at::Tensor product = at::matmul(p.x, p.w);
  const at::Tensor pre = p.bias.defined() ? product + p.bias : product;
  const std::string_view activation = call.text("activation");
  at::Tensor y = pre;
  if (activation == "relu") {
    y = pre.clamp_min(0);
  } else if (activation == "silu") {
    y = pre * pre.sigmoid();
  } else if (activation == "gelu_tanh") {
    const double root = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
    y = pre * 0.5 * (((pre + pre * pre * pre * 0.044715) * root).tanh() + 1);
  } else {
    require(activation == "none", "activation must be none, relu, silu or gelu_tanh");
  }
  give(call.output("pre"), pre);
  give(call.output("y"), y);
}

void linear_fused(const Call& call) {
  const Tensor bias = call.input("bias");
  give(call.output("y"), at::linear(aten(call.input("x")), aten(call.input("w")), aten_if_present(bias)));
}

void linear_unfused(const Call& call) {
  const at::Tensor bias = aten_if_present(call.input("bias"));
  const at::Tensor product = at::matmul(aten(call.input("x")), aten(call.input("w")).t());
  give(call.output("y"), bias.defined() ? product + bias : product);
}

constexpr char kMatmulSchema[] = R"({
  "name": "matmul", "like": "builtin", "paths": ["fused", "unfused", "reference"], "dtype": {"x": ["f32"]}
})";

constexpr char kLinearSchema[] = R"({
  "name": "linear", "paths": ["fused", "unfused"],
  "dims": {"M": {"range": [0, 64], "typical": [1, 2, 8, 16, 32]}, "N": {"range": [0, 128], "typical": [1, 8, 16, 64]},
           "K": {"range": [0, 256], "typical": [1, 8, 16, 32, 64, 128]}},
  "inputs": [
    {"name": "x",    "shape": ["M", "K"], "dtype": ["f32", "bf16"], "layout": "any"},
    {"name": "w",    "shape": ["N", "K"], "dtype": "=x", "layout": "any"},
    {"name": "bias", "shape": ["N"], "dtype": "=x", "optional": true, "layout": "any"}],
  "outputs": [
    {"name": "y", "shape": ["M", "N"], "dtype": "=x", "layout": "any", "stage": 1,
     "bound": {"ulp": {"f32": "2 * K + 2", "bf16": "3 + (2 * K + 2) / 65536"}, "of": "abs_inputs",
               "why": "S is the sum of absolute terms, bias among them. f32: K products and K additions, each off by half an ULP of at most 2 S: 2 K + 1, in any order. bf16 with f32 sums: these in f32, whose ULP is 2^-16 of one of bf16; then half an ULP for the product's last rounding, a whole one for that of its sum with the bias, which is at most 2 S. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 4.2. A path that rounds partial sums to bf16 is off by more"}}],
  "rows": {"dim": "M", "inputs": ["x"], "outputs": "all"}
})";

}  // namespace

const Operator kMatmul{
    "matmul",
    kMatmulSchema,
    {{"fused", in_aten<matmul_fused>}, {"unfused", in_aten<matmul_unfused>}, reference_of(builtin::kMatmul)}};

const Operator kLinear{
    "linear", kLinearSchema, {{"fused", in_aten<linear_fused>}, {"unfused", in_aten<linear_unfused>}}};

}  // namespace fusediff::torch
