// sigmoid, add and swiglu. Fused: at::sigmoid, at::add and at::silu * up, straight into the output's memory where there
// is an out-variant. Unfused: the small operators that these stand for, in f32 for the 16-bit dtypes, as code that
// begins with .float() has it.
#include "builtin/operators.h"
#include "torch/aten.h"
#include "torch/operators.h"

#include <ATen/ops/add.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>

namespace fusediff::torch {
namespace {

using namespace kit;

void sigmoid_fused(const Call& call) {
  at::Tensor y = aten(call.output("y"));
  at::sigmoid_out(y, aten(call.input("x")));
}

void sigmoid_unfused(const Call& call) {
  give(call.output("y"), widened(aten(call.input("x"))).neg().exp().add(1).reciprocal());
}

void add_fused(const Call& call) {
  at::Tensor y = aten(call.output("y"));
  at::add_out(y, aten(call.input("a")), aten(call.input("b")));
}

void add_unfused(const Call& call) {
  give(call.output("y"), aten(call.input("a")).contiguous() + aten(call.input("b")).contiguous());
}

struct SwiGlu {
  at::Tensor gate, up;
  bool storage;  // silu is kept in the dtype of gate, not in f32
};

SwiGlu read_swiglu(const Call& call) {
  const std::string_view compute = call.text("compute");
  require(compute == "f32" || compute == "storage", "compute must be f32 or storage, not ", compute);
  const bool storage = compute == "storage";
  if (call.flag("packed")) {
    const at::Tensor x = aten(call.input("x"));
    const int64_t columns = x.size(1) / 2;
    return {x.narrow(1, 0, columns), x.narrow(1, columns, columns), storage};
  }
  return {aten(call.input("gate")), aten(call.input("up")), storage};
}

void finish_swiglu(const Call& call, const SwiGlu& s, const at::Tensor& wide_silu) {
  const at::Tensor silu = s.storage ? wide_silu.to(s.gate.scalar_type()) : wide_silu;
  const at::Tensor y = silu * (s.storage ? s.up : widened(s.up));
  give(call.output("silu"), silu);
  give(call.output("y"), y);
}

// at::silu computes in f32 and rounds once; it has no kernel for f16, which is widened for it.
void swiglu_fused(const Call& call) {
  const SwiGlu s = read_swiglu(call);
  const bool as_stored = s.storage && s.gate.scalar_type() != at::kHalf;
  finish_swiglu(call, s, at::silu(as_stored ? s.gate : widened(s.gate)));
}

void swiglu_unfused(const Call& call) {
  const SwiGlu s = read_swiglu(call);
  const at::Tensor gate = widened(s.gate);
  finish_swiglu(call, s, at::sigmoid(gate) * gate);
}

constexpr char kSigmoidSchema[] = R"({
  "name": "sigmoid", "like": "builtin", "paths": ["fused", "unfused", "reference"],
  "dtype": {"x": ["f32", "bf16", "f64"]}
})";

constexpr char kAddSchema[] = R"({
  "name": "add", "like": "builtin", "paths": ["fused", "unfused", "reference"],
  "dtype": {"a": ["f32", "f16", "bf16", "f64"]}
})";

constexpr char kSwigluSchema[] = R"({
  "name": "swiglu", "like": "builtin", "paths": ["fused", "unfused", "reference"],
  "dtype": {"x": ["f32", "f16", "bf16", "f64"]}
})";

}  // namespace

const Operator kSigmoid{
    "sigmoid",
    kSigmoidSchema,
    {{"fused", in_aten<sigmoid_fused>}, {"unfused", in_aten<sigmoid_unfused>}, reference_of(builtin::kSigmoid)}};

const Operator kAdd{
    "add", kAddSchema, {{"fused", in_aten<add_fused>}, {"unfused", in_aten<add_unfused>}, reference_of(builtin::kAdd)}};

const Operator kSwiglu{
    "swiglu",
    kSwigluSchema,
    {{"fused", in_aten<swiglu_fused>}, {"unfused", in_aten<swiglu_unfused>}, reference_of(builtin::kSwiglu)}};

}  // namespace fusediff::torch
