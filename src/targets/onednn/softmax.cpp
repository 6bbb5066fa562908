// softmax along C of x [R, C, I], or its logarithm. Fused: the softmax primitive; unfused: maximum, difference, exp,
// sum, and quotient (or log and difference) as primitives of their own, tensors of the storage dtype between.
#include <algorithm>
#include <cmath>
#include <limits>

#include "onednn/functions.h"
#include "onednn/operators.h"
#include "onednn/reduce.h"

namespace fusediff::onednn {
namespace {

using namespace kit;
using dnnl::algorithm;

constexpr char kSchema[] = R"({
  "name": "softmax",
  "paths": ["fused", "unfused", "reference"],
  "dims": {"R": {"range": [0, 64], "typical": [1, 2, 4, 8, 16]},
           "C": {"range": [0, 512], "typical": [1, 8, 16, 64, 100, 128, 256]},
           "I": {"range": [0, 32], "typical": [1]}},
  "attrs": [{"name": "log", "bool": true, "default": false}],
  "inputs": [{"name": "x", "shape": ["R", "C", "I"], "dtype": ["f32", "bf16"], "role": "score"}],
  "outputs": [{"name": "y", "shape": ["R", "C", "I"], "dtype": "=x", "stage": 1}],
  "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"},
  "inplace": [["y", "x"]]
})";

void fused(const Call& call, Plan& plan) {
  using Forward = dnnl::softmax_v2_forward;
  const Operand x = plan.input(call, "x");
  const Operand y = plan.output(call, "y");
  const Forward::desc desc(dnnl::prop_kind::forward_inference,
                           call.flag("log") ? algorithm::softmax_log : algorithm::softmax_accurate, x.desc, y.desc, 1);
  plan.add(Forward::primitive_desc(desc, plan.attributes(), engine()), {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}});
}

void unfused(const Call& call, Plan& plan) {
  const Operand x = plan.input(call, "x");
  const Operand y = plan.output(call, "y");
  const Type type = x.desc.data_type();
  const Dims row{x.dims()[0], 1, x.dims()[2]};
  // Along a dimension of one element there is nothing to reduce.
  const bool single = x.dims()[1] == 1;
  Operand max = x;
  if (!single) {
    max = plan.between(row, type);
    add_reduction(plan, algorithm::reduction_max, x, max);
  }
  const Operand shifted = plan.between(x.dims(), type);
  add_binary(plan, algorithm::binary_sub, x, max, shifted);
  const Operand terms = plan.between(x.dims(), type);
  add_eltwise(plan, shifted, terms, *find_function("exp"));
  Operand sum = terms;
  if (!single) {
    sum = plan.between(row, type);
    add_reduction(plan, algorithm::reduction_sum, terms, sum);
  }
  if (!call.flag("log")) {
    add_binary(plan, algorithm::binary_div, terms, sum, y);
    return;
  }
  const Operand log_sum = plan.between(row, type);
  add_eltwise(plan, sum, log_sum, *find_function("log"));
  add_binary(plan, algorithm::binary_sub, shifted, log_sum, y);
}

void reference(const Call& call) {
  const Tensor tensor = call.input("x");
  const Numbers x = numbers(tensor);
  const auto columns = static_cast<size_t>(tensor.size(1));
  const auto inner = static_cast<size_t>(tensor.size(2));
  Numbers y(x.size());
  for (size_t r = 0; r < x.size() / std::max<size_t>(columns, 1); ++r) {
    const auto at = [&](size_t c) { return (r / inner * columns + c) * inner + r % inner; };
    double max = -std::numeric_limits<double>::infinity();
    for (size_t c = 0; c < columns; ++c) {
      max = x[at(c)] > max || std::isnan(x[at(c)]) ? x[at(c)] : max;
    }
    double sum = 0;
    for (size_t c = 0; c < columns; ++c) {
      sum += std::exp(x[at(c)] - max);
    }
    for (size_t c = 0; c < columns; ++c) {
      y[at(c)] = call.flag("log") ? x[at(c)] - max - std::log(sum) : std::exp(x[at(c)] - max) / sum;
    }
  }
  store(call.output("y"), y);
}

}  // namespace

constinit const Operator kSoftmax = make_operator<fused, unfused, reference>("softmax", kSchema);

}  // namespace fusediff::onednn
