// EXPECT: none op=relu_grad experiment=gradient
// A near miss: at 0 relu has no derivative, and a difference quotient across it is neither of the two that are usual.
#include "planted/planted.h"

namespace fusediff::planted {
namespace {

using namespace kit;

constexpr char kForward[] = R"({
  "name": "relu",
  "paths": ["fused", "unfused"],
  "dims": {"N": {"range": [0, 256], "typical": [1, 8, 16, 64]}},
  "inputs": [{"name": "x", "shape": ["N"], "dtype": "f32", "layout": "any"}],
  "outputs": [{"name": "y", "shape": ["N"], "dtype": "f32", "stage": 1, "layout": "any"}],
  "rows": {"dim": "N", "inputs": ["x"], "outputs": "all"}
})";

constexpr char kBackward[] = R"({
  "name": "relu_grad",
  "paths": ["fused", "unfused"],
  "dims": {"N": {"range": [0, 256], "typical": [1, 8, 16, 64]}},
  "inputs": [
    {"name": "grad_y", "shape": ["N"], "dtype": "f32", "role": "cotangent", "layout": "any"},
    {"name": "x",      "shape": ["N"], "dtype": "f32", "layout": "any"}],
  "outputs": [{"name": "grad_x", "shape": ["N"], "dtype": "f32", "stage": 1, "layout": "any"}],
  "gradient": {"of": "relu", "wrt": {"grad_x": "x"}, "cotangents": {"grad_y": "y"}},
  "rows": {"dim": "N", "inputs": ["grad_y", "x"], "outputs": "all"}
})";

template <class A>
void forward(const Call& call) {
  const auto x = call.input("x").view<const A, 1>();
  const auto y = call.output("y").view<A, 1>();
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    y(i) = x(i) > 0 ? x(i) : x(i) * 0;
  }
}

template <class A>
void backward(const Call& call) {
  const auto grad = call.input("grad_y").view<const A, 1>();
  const auto x = call.input("x").view<const A, 1>();
  const auto to = call.output("grad_x").view<A, 1>();
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    to(i) = x(i) > 0 ? grad(i) : 0;
  }
}

void run_forward(const Call& call) {
  by_dtype<float, double>(call.input("x"), [&](auto type) { forward<typename decltype(type)::type>(call); });
}

void run_backward(const Call& call) {
  by_dtype<float, double>(call.input("x"), [&](auto type) { backward<typename decltype(type)::type>(call); });
}

}  // namespace

constinit const Operator kNearKinkRelu{"relu", kForward, {{"fused", run_forward}, {"unfused", run_forward}}};
constinit const Operator kNearKinkReluGrad{
    "relu_grad", kBackward, {{"fused", run_backward}, {"unfused", run_backward}}};

}  // namespace fusediff::planted

PLANTED_TARGET("near_kink", fusediff::planted::kNearKinkRelu, fusediff::planted::kNearKinkReluGrad);
