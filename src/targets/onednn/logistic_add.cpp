// logistic_add: y = 1 / (1 + exp(-x)) + b. Fused: the elementwise primitive with a binary post-op; unfused: two
// primitives with a tensor of the storage dtype between.
#include "onednn/functions.h"
#include "onednn/operators.h"

namespace fusediff::onednn {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "logistic_add",
  "paths": ["fused", "unfused", "reference"],
  "dims": {"R": {"range": [0, 64]}, "C": {"range": [0, 1024], "typical": [1, 16, 64, 128, 512]}},
  "inputs": [
    {"name": "x", "shape": ["R", "C"], "dtype": ["f32", "bf16"], "role": "score"},
    {"name": "b", "shape": ["R", "C"], "dtype": "=x", "role": "bias"}],
  "outputs": [
    {"name": "y", "shape": ["R", "C"], "dtype": "=x", "stage": 1,
     "bound": {"ulp": {"f32": "9", "bf16": "2"}, "of": "abs_inputs",
               "why": "S is the truth on absolute values, 1 / (1 + exp(-|x|)) + |b|, at least the logistic function and at least half. exp within 2 ULP, sum and quotient: less than 8 units u of the logistic function; where x is far below zero an exp of x log2(e) in f32 is off by more, but of what is then nearly nothing beside S. The addition one. bf16: that in f32, and at most two roundings, half an ULP of S each. oneDNN documents no accuracy of its own"}}],
  "rows": {"dim": "R", "inputs": ["x", "b"], "outputs": "all"},
  "inplace": [["y", "x"]]
})";

void fused(const Call& call, Plan& plan) {
  const Operand b = plan.input(call, "b");
  dnnl::post_ops add;
  add.append_binary(dnnl::algorithm::binary_add, b.desc);
  const dnnl::eltwise_forward::desc desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::eltwise_logistic,
                                         plan.input(call, "x").desc, 0, 0);
  plan.add(dnnl::eltwise_forward::primitive_desc(desc, plan.attributes(add), engine()),
           {{DNNL_ARG_SRC, plan.input(call, "x")},
            {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, b},
            {DNNL_ARG_DST, plan.output(call, "y")}});
}

void unfused(const Call& call, Plan& plan) {
  const Operand x = plan.input(call, "x");
  const Operand logistic = plan.between(x.dims(), x.desc.data_type());
  add_eltwise(plan, x, logistic, *find_function("logistic"));
  add_binary(plan, dnnl::algorithm::binary_add, logistic, plan.input(call, "b"), plan.output(call, "y"));
}

void reference(const Call& call) {
  Numbers y = numbers(call.input("x"));
  const Numbers b = numbers(call.input("b"));
  apply(y, find_function("logistic"));
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] += b[i];
  }
  store(call.output("y"), y);
}

}  // namespace

constinit const Operator kLogisticAdd = make_operator<fused, unfused, reference>("logistic_add", kSchema);

}  // namespace fusediff::onednn
