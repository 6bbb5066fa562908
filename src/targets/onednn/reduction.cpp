// reduction: x [R, C, I] reduced along C, and along I too where J is 1, then f. Fused: the reduction primitive, its Lp
// norms and f as a post-op; unfused: absolute value, power, sum, eps and root as primitives of their own, then f.
#include <cmath>
#include <limits>

#include "onednn/functions.h"
#include "onednn/operators.h"
#include "onednn/reduce.h"

namespace fusediff::onednn {

void add_reduction(Plan& plan, dnnl::algorithm algorithm, const Operand& from, const Operand& to, float p, float eps,
                   const dnnl::post_ops& post_ops) {
  const dnnl::reduction::desc desc(algorithm, from.desc, to.desc, p, eps);
  plan.add(dnnl::reduction::primitive_desc(desc, plan.attributes(post_ops), engine()),
           {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}});
}

namespace {

using namespace kit;
using dnnl::algorithm;

constexpr char kSchema[] = R"({
  "name": "reduction",
  "paths": ["fused", "unfused", "reference"],
  "dims": {"R": {"range": [0, 32]}, "C": {"range": [0, 512], "typical": [1, 16, 64, 128, 256]},
           "I": {"range": [0, 32], "typical": [1, 4]}, "J": {"range": [0, 32], "typical": [1, 4]}},
  "attrs": [
    {"name": "op", "choice": ["max", "min", "sum", "mul", "mean", "norm_max", "norm_sum", "power_max", "power_sum"],
     "default": "sum"},
    {"name": "p", "int": [1, 3], "default": 2,
     "if": "op == 'norm_max' || op == 'norm_sum' || op == 'power_max' || op == 'power_sum'"},
    {"name": "eps", "float": [1e-6, 1.0], "scale": "log", "default": 1e-6, "also": [0.0],
     "if": "op == 'norm_max' || op == 'norm_sum' || op == 'power_max' || op == 'power_sum'"},
    {"name": "then", "choice": ["none", "relu", "leaky_relu", "abs", "three_quarters"], "default": "none"}],
  "where": ["J == I || J == 1", "C != 1 || J != I"],
  "inputs": [{"name": "x", "shape": ["R", "C", "I"], "dtype": ["f32", "bf16"]}],
  "outputs": [
    {"name": "y", "shape": ["R", "1", "J"], "dtype": "=x", "stage": 1,
     "bound": {"ulp": {"f32": "2 * C * I + 16", "bf16": "6 + (2 * C * I + 16) / 32768"}, "of": "abs_inputs",
               "why": "n = C I terms at most, S the truth on their absolute values. Sum, mean and product: n roundings of partial results of at most S; a power within 4 ULP of each term, the root of the sum halves a relative error and is within 4 ULP itself; eps, quotient and the function one rounding each. Half a unit of S each, at most doubled. bf16: that in f32, whose ULP is 2^-16 of a bf16 one, and a rounding after each of at most six primitives. A product whose partial results leave the normal range is not covered. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 4.2"}}],
  "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"}
})";

struct Operation {
  const char* name;
  algorithm kind;
  bool is_norm;  // with p and eps
  bool max;      // the larger of sum and eps, else their sum
  bool root;     // the p-th root of that
};

constexpr Operation kOperations[] = {{"max", algorithm::reduction_max, false, false, false},
                                     {"min", algorithm::reduction_min, false, false, false},
                                     {"sum", algorithm::reduction_sum, false, false, false},
                                     {"mul", algorithm::reduction_mul, false, false, false},
                                     {"mean", algorithm::reduction_mean, false, false, false},
                                     {"norm_max", algorithm::reduction_norm_lp_max, true, true, true},
                                     {"norm_sum", algorithm::reduction_norm_lp_sum, true, false, true},
                                     {"power_max", algorithm::reduction_norm_lp_power_p_max, true, true, false},
                                     {"power_sum", algorithm::reduction_norm_lp_power_p_sum, true, false, false}};

const Operation& find_operation(const Call& call) {
  for (const Operation& one : kOperations) {
    if (call.text("op") == one.name) {
      return one;
    }
  }
  reject("there is no reduction ", call.text("op"));
}

float power(const Call& call) { return static_cast<float>(call.integer("p")); }
float eps(const Call& call) { return static_cast<float>(call.real("eps")); }

void fused(const Call& call, Plan& plan) {
  dnnl::post_ops then;
  append(then, find_function(call.text("then")));
  add_reduction(plan, find_operation(call).kind, plan.input(call, "x"), plan.output(call, "y"), power(call), eps(call),
                then);
}

// The steps of a norm, each into a tensor of its own; the last one to `to`.
void add_norm(const Call& call, Plan& plan, const Operation& operation, const Operand& to) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Operand x = plan.input(call, "x");
  const Type type = x.desc.data_type();
  const bool takes_root = operation.root && power(call) != 1;
  const Operand magnitude = plan.between(x.dims(), type);
  add_eltwise(plan, x, magnitude, *find_function("abs"));
  Operand terms = magnitude;
  if (power(call) != 1) {
    terms = plan.between(x.dims(), type);
    add_eltwise(plan, magnitude, terms, Function{"", algorithm::eltwise_pow, 1, power(call), nullptr});
  }
  const Operand sum = plan.between(to.dims(), type);
  add_reduction(plan, algorithm::reduction_sum, terms, sum);
  const Operand held = takes_root ? plan.between(to.dims(), type) : to;
  if (operation.max) {
    add_eltwise(plan, sum, held, Function{"", algorithm::eltwise_clip, eps(call), kInfinity, nullptr});
  } else {
    add_linear(plan, sum, held, 1, eps(call));
  }
  if (takes_root) {
    add_eltwise(plan, held, to, Function{"", algorithm::eltwise_pow, 1, 1 / power(call), nullptr});
  }
}

void unfused(const Call& call, Plan& plan) {
  const Operation& operation = find_operation(call);
  const Function* then = find_function(call.text("then"));
  const Operand y = plan.output(call, "y");
  const Operand result = then == nullptr ? y : plan.between(y.dims(), y.desc.data_type());
  if (operation.is_norm) {
    add_norm(call, plan, operation, result);
  } else {
    add_reduction(plan, operation.kind, plan.input(call, "x"), result);
  }
  if (then != nullptr) {
    add_eltwise(plan, result, y, *then);
  }
}

// The neutral element of the operation.
double first_value(algorithm kind) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return kind == algorithm::reduction_max   ? -kInfinity
         : kind == algorithm::reduction_min ? kInfinity
         : kind == algorithm::reduction_mul ? 1
                                            : 0;
}

void include(double& so_far, double x, const Operation& operation, double p) {
  if (operation.kind == algorithm::reduction_max) {
    so_far = x > so_far ? x : so_far;
  } else if (operation.kind == algorithm::reduction_min) {
    so_far = x < so_far ? x : so_far;
  } else if (operation.kind == algorithm::reduction_mul) {
    so_far *= x;
  } else {
    so_far += operation.is_norm ? std::pow(std::fabs(x), p) : x;
  }
}

void reference(const Call& call) {
  const Operation& operation = find_operation(call);
  const Tensor x_tensor = call.input("x");
  const Tensor y_tensor = call.output("y");
  const Numbers x = numbers(x_tensor);
  const auto columns = static_cast<size_t>(x_tensor.size(1));
  const auto inner = static_cast<size_t>(x_tensor.size(2));
  const auto kept = static_cast<size_t>(y_tensor.size(2));
  const double p = static_cast<double>(power(call));
  const double smallest = static_cast<double>(eps(call));
  Numbers y(static_cast<size_t>(y_tensor.count()), first_value(operation.kind));
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t to = i / (columns * inner) * kept + (kept == 1 ? 0 : i % inner);
    include(y[to], x[i], operation, p);
  }
  for (double& value : y) {
    if (operation.kind == algorithm::reduction_mean) {
      value /= static_cast<double>(columns * inner / kept);
    }
    if (operation.is_norm) {
      value = operation.max ? (value > smallest ? value : smallest) : value + smallest;
      value = operation.root ? std::pow(value, 1 / p) : value;
    }
  }
  apply(y, find_function(call.text("then")));
  store(y_tensor, y);
}

}  // namespace

constinit const Operator kReduction = make_operator<fused, unfused, reference>("reduction", kSchema);

}  // namespace fusediff::onednn
