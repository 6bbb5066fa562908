// eltwise: y = g(f(x)). Fused: the primitive of f with g as a post-op; unfused: two primitives with a tensor of the
// storage dtype between.
#include "onednn/functions.h"
#include "onednn/operators.h"

namespace fusediff::onednn {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "eltwise",
  "paths": ["fused", "unfused", "reference"],
  "dims": {"R": {"range": [0, 64]}, "C": {"range": [0, 1024], "typical": [1, 16, 64, 128, 512]}},
  "attrs": [
    {"name": "first", "choice": ["relu", "leaky_relu", "tanh", "elu", "square", "abs", "sqrt", "swish",
      "three_quarters", "bounded_relu", "soft_relu", "logsigmoid", "mish", "logistic", "exp", "gelu_tanh", "gelu_erf", "log", "clip",
      "clip_v2", "cube", "root", "inverse", "inverse_root", "power_1_5", "round", "hardswish"], "default": "relu"},
    {"name": "then", "choice": ["none", "relu", "leaky_relu", "tanh", "square", "abs", "swish", "three_quarters", "logistic",
      "gelu_tanh", "gelu_erf", "clip"], "default": "none"}],
  "inputs": [{"name": "x", "shape": ["R", "C"], "dtype": ["f32", "bf16"]}],
  "outputs": [{"name": "y", "shape": ["R", "C"], "dtype": "=x", "stage": 1}],
  "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"},
  "inplace": [["y", "x"]]
})";

// Never null. UNSUPPORTED where oneDNN offers it in f32 alone.
const Function* first_function(const Call& call) {
  const Function* first = find_function(call.text("first"));
  require(first != nullptr, "first must be a function");
  if (first->algorithm == dnnl::algorithm::eltwise_round && call.input("x").dtype() != FUSEDIFF_F32) {
    unsupported("round is for f32 alone");
  }
  return first;
}

void fused(const Call& call, Plan& plan) {
  dnnl::post_ops then;
  append(then, find_function(call.text("then")));
  const Function* first = first_function(call);
  add_eltwise(plan, plan.input(call, "x"), plan.output(call, "y"), *first, then);
}

void unfused(const Call& call, Plan& plan) {
  const Operand x = plan.input(call, "x");
  const Operand y = plan.output(call, "y");
  const Function* first = first_function(call);
  const Function* then = find_function(call.text("then"));
  if (then == nullptr) {
    add_eltwise(plan, x, y, *first);
    return;
  }
  const Operand middle = plan.between(x.dims(), x.desc.data_type());
  add_eltwise(plan, x, middle, *first);
  add_eltwise(plan, middle, y, *then);
}

void reference(const Call& call) {
  Numbers y = numbers(call.input("x"));
  apply(y, find_function(call.text("first")));
  apply(y, find_function(call.text("then")));
  store(call.output("y"), y);
}

}  // namespace

constinit const Operator kEltwise = make_operator<fused, unfused, reference>("eltwise", kSchema);

}  // namespace fusediff::onednn
