// matmul_int8: y = f(scale * sum over K of (x - zero_point) * w), x in u8 or s8, w in s8, y in f32. Fused: the int8
// matmul primitive with zero point and output scale as attributes and f as a post-op; unfused: x and w widened to f32
// (exact), an f32 matmul (exact too: every partial sum is an integer below 2^24), then scale and f.
#include "onednn/functions.h"
#include "onednn/operators.h"

namespace fusediff::onednn {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "matmul_int8",
  "paths": ["fused", "unfused", "reference"],
  "dims": {"M": {"range": [0, 64], "typical": [1, 2, 8, 16, 32]}, "N": {"range": [0, 128], "typical": [1, 8, 16, 64]},
           "K": {"range": [0, 384], "typical": [1, 4, 8, 16, 32, 64, 128]}},
  "attrs": [
    {"name": "zero_point", "int": [0, 128], "default": 0},
    {"name": "scale", "float": [0.001, 1.0], "scale": "log", "default": 1.0},
    {"name": "activation", "choice": ["none", "relu", "leaky_relu", "abs"], "default": "none"}],
  "inputs": [
    {"name": "x", "shape": ["M", "K"], "dtype": ["u8", "i8"]},
    {"name": "w", "shape": ["K", "N"], "dtype": "i8"}],
  "outputs": [
    {"name": "y", "shape": ["M", "N"], "dtype": "f32", "stage": 1,
     "bound": {"ulp": "3", "of": "element",
               "why": "each product is at most 256 * 128 in magnitude and K at most 384, so every partial sum is an integer below 2^24 and exact, in int32 and in f32. Left are the product with scale and that of leaky_relu: half an ULP each, one of them at most doubled"}}]
})";

// The unfused path's own range: beyond it the f32 sums would round.
constexpr int64_t kMaxDepth = 384;

int32_t zero_point(const Call& call) { return static_cast<int32_t>(call.integer("zero_point")); }

float scale(const Call& call) { return static_cast<float>(call.real("scale")); }

void fused(const Call& call, Plan& plan) {
  const Operand x = plan.input(call, "x");
  const Operand w = plan.input(call, "w");
  const Operand y = plan.output(call, "y");
  dnnl::post_ops post_ops;
  append(post_ops, find_function(call.text("activation")));
  dnnl::primitive_attr attributes = plan.attributes(post_ops);
  if (scale(call) != 1) {
    attributes.set_output_scales(0, {scale(call)});
  }
  if (zero_point(call) != 0) {
    attributes.set_zero_points(DNNL_ARG_SRC, 0, {zero_point(call)});
  }
  plan.add(dnnl::matmul::primitive_desc(dnnl::matmul::desc(x.desc, w.desc, y.desc), attributes, engine()),
           {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}});
}

// A copy in f32.
Operand widened(Plan& plan, const Operand& from) {
  const Operand to = plan.between(from.dims(), Type::f32);
  plan.add(dnnl::reorder::primitive_desc(engine(), from.desc, engine(), to.desc, plan.attributes()),
           {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  return to;
}

void unfused(const Call& call, Plan& plan) {
  if (call.input("x").size(1) > kMaxDepth) {
    unsupported("K is above ", kMaxDepth, ": the f32 sums would round");
  }
  const Function* activation = find_function(call.text("activation"));
  const Operand y = plan.output(call, "y");
  Operand x = widened(plan, plan.input(call, "x"));
  const Operand w = widened(plan, plan.input(call, "w"));
  if (zero_point(call) != 0) {
    const Operand shifted = plan.between(x.dims(), Type::f32);
    add_linear(plan, x, shifted, 1, -static_cast<float>(zero_point(call)));
    x = shifted;
  }
  const bool scales = scale(call) != 1;
  Operand now = scales || activation != nullptr ? plan.between(y.dims(), Type::f32) : y;
  plan.add(dnnl::matmul::primitive_desc(dnnl::matmul::desc(x.desc, w.desc, now.desc), plan.attributes(), engine()),
           {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, now}});
  if (scales) {
    const Operand to = activation != nullptr ? plan.between(y.dims(), Type::f32) : y;
    add_linear(plan, now, to, scale(call), 0);
    now = to;
  }
  if (activation != nullptr) {
    add_eltwise(plan, now, y, *activation);
  }
}

void reference(const Call& call) {
  const Tensor x_tensor = call.input("x");
  Numbers x = numbers(x_tensor);
  for (double& value : x) {
    value -= zero_point(call);
  }
  Numbers y =
      multiply(x, numbers(call.input("w")), x_tensor.size(0), x_tensor.size(1), call.output("y").size(1), false);
  for (double& value : y) {
    value *= static_cast<double>(scale(call));
  }
  apply(y, find_function(call.text("activation")));
  store(call.output("y"), y);
}

}  // namespace

constinit const Operator kMatmulInt8 = make_operator<fused, unfused, reference>("matmul_int8", kSchema);

}  // namespace fusediff::onednn
