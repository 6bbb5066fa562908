// layer_norm over the last dimension: y = gamma * (x - mean) / sqrt(variance + eps) + beta, gamma and beta optional, in
// f32. Fused: the layer normalization primitive, as for training (mean and variance are outputs) or inference; unfused:
// two means, difference, square, power and products as primitives of their own, mean and variance in f32 and the rest
// in the storage dtype.
#include <cmath>

#include "onednn/functions.h"
#include "onednn/operators.h"
#include "onednn/reduce.h"

namespace fusediff::onednn {
namespace {

using namespace kit;
using dnnl::algorithm;

constexpr char kSchema[] = R"({
  "name": "layer_norm",
  "paths": ["fused", "unfused", "reference"],
  "dims": {"R": {"range": [0, 64], "typical": [1, 2, 4, 8, 16]},
           "C": {"range": [0, 1024], "typical": [1, 8, 16, 64, 100, 128, 256, 512]}},
  "attrs": [
    {"name": "training", "bool": true, "default": false},
    {"name": "eps", "float": [1e-5, 1e-2], "scale": "log", "default": 1e-5}],
  "where": ["C >= 1 || training == 0"],
  "inputs": [
    {"name": "x",     "shape": ["R", "C"], "dtype": ["f32", "bf16"]},
    {"name": "gamma", "shape": ["C"], "dtype": "f32", "optional": true},
    {"name": "beta",  "shape": ["C"], "dtype": "f32", "optional": true}],
  "outputs": [
    {"name": "mean",     "shape": ["R"], "dtype": "f32", "stage": 1, "optional": true, "if": "training == 1",
     "bound": {"ulp": "C + 2", "of": {"row_max_product": [["x"]]},
               "why": "m = max |x| of the row, u = 2^-24: C - 1 additions and a division, at most (C + 1) u m; one ULP of m is at least u m. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 4.2"}},
    {"name": "variance", "shape": ["R"], "dtype": "f32", "stage": 2, "optional": true, "if": "training == 1",
     "bound": {"ulp": {"f32": "8 * C + 40", "bf16": "8 * C + 40 + 12 * 32768"}, "by": "x",
               "of": {"row_max_product": [["x", "x"]]},
               "why": "d = x - mean is at most 2 m and off by (C + 4) u m, so its square by 4 (C + 4) u m^2, and the mean of squares of at most 4 m^2 by 4 (C + 3) u m^2 more. bf16 between the primitives: d and its square are rounded, 3 units of 2^-9 of 4 m^2"}},
    {"name": "y",        "shape": ["R", "C"], "dtype": "=x", "stage": 3,
     "bound": {"ulp": {"f32": "(C + 4) * (C / 8 + 4) * 634", "bf16": "(C + 4) * (C / 8 + 4) * 634 / 32768 + 4000"},
               "of": {"row_max_product": [["x"], ["x", "gamma"], ["beta"]]},
               "why": "r = 1 / sqrt(variance + eps) is at most 317, as eps is at least 1e-5. d is off by e = (C + 4) u m; that moves d r by e r, and r by a relative e r at most, where |d| r is at most sqrt(C), below C / 8 + 2: together 317 (C + 4) (C / 8 + 3) u m, doubled for products, gamma and beta. bf16: at most six roundings of a y of at most 634 m, half an ULP each. Worst case, so that only gross errors are outside"}}],
  "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"},
  "inplace": [["y", "x"]]
})";

// Mean or variance as a tensor of `dims`: the output where that is wanted, else one that nobody reads.
Operand statistic(const Call& call, Plan& plan, std::string_view name, const Dims& dims) {
  return call.output(name).present() ? plan.output(call, name).as(dims) : plan.between(dims, Type::f32);
}

float eps(const Call& call) { return static_cast<float>(call.real("eps")); }

void fused(const Call& call, Plan& plan) {
  using Forward = dnnl::layer_normalization_forward;
  using dnnl::normalization_flags;
  const Operand x = plan.input(call, "x");
  std::vector<Argument> arguments{{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, plan.output(call, "y")}};
  normalization_flags flags = normalization_flags::none;
  if (Plan::has(call, "gamma")) {
    flags |= normalization_flags::use_scale;
    arguments.push_back({DNNL_ARG_SCALE, plan.input(call, "gamma")});
  }
  if (Plan::has(call, "beta")) {
    flags |= normalization_flags::use_shift;
    arguments.push_back({DNNL_ARG_SHIFT, plan.input(call, "beta")});
  }
  const bool training = call.flag("training");
  const Dims rows{x.dims()[0]};
  if (training) {
    arguments.push_back({DNNL_ARG_MEAN, statistic(call, plan, "mean", rows)});
    arguments.push_back({DNNL_ARG_VARIANCE, statistic(call, plan, "variance", rows)});
  }
  const Forward::desc desc(training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference, x.desc,
                           plan.output(call, "mean").desc, eps(call), flags);
  plan.add(Forward::primitive_desc(desc, plan.attributes(), engine()), std::move(arguments));
}

// The mean along the last dimension; a copy where that has one element.
void add_mean(Plan& plan, const Operand& from, const Operand& to) {
  if (from.dims()[1] == 1) {
    plan.add(dnnl::reorder::primitive_desc(engine(), from.desc, engine(), to.desc, plan.attributes()),
             {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  } else {
    add_reduction(plan, algorithm::reduction_mean, from, to);
  }
}

void unfused(const Call& call, Plan& plan) {
  const Operand x = plan.input(call, "x");
  const Type type = x.desc.data_type();
  const Dims row{x.dims()[0], 1};
  const Dims column{1, x.dims()[1]};
  const bool scales = Plan::has(call, "gamma");
  const bool shifts = Plan::has(call, "beta");
  const Operand y = plan.output(call, "y");
  const Operand mean = statistic(call, plan, "mean", row);
  const Operand variance = statistic(call, plan, "variance", row);
  const Operand centered = plan.between(x.dims(), type);
  const Operand squares = plan.between(x.dims(), type);
  const Operand held = plan.between(row, Type::f32);
  const Operand inverse = plan.between(row, Type::f32);
  add_mean(plan, x, mean);
  add_binary(plan, algorithm::binary_sub, x, mean, centered);
  add_eltwise(plan, centered, squares, *find_function("square"));
  add_mean(plan, squares, variance);
  add_linear(plan, variance, held, 1, eps(call));
  add_eltwise(plan, held, inverse, *find_function("inverse_root"));
  Operand now = scales || shifts ? plan.between(x.dims(), type) : y;
  add_binary(plan, algorithm::binary_mul, centered, inverse, now);
  if (scales) {
    const Operand to = shifts ? plan.between(x.dims(), type) : y;
    add_binary(plan, algorithm::binary_mul, now, plan.input(call, "gamma").as(column), to);
    now = to;
  }
  if (shifts) {
    add_binary(plan, algorithm::binary_add, now, plan.input(call, "beta").as(column), y);
  }
}

void reference(const Call& call) {
  const Tensor tensor = call.input("x");
  const Numbers x = numbers(tensor);
  const auto rows = static_cast<size_t>(tensor.size(0));
  const auto columns = static_cast<size_t>(tensor.size(1));
  const Numbers gamma = Plan::has(call, "gamma") ? numbers(call.input("gamma")) : Numbers(columns, 1);
  const Numbers beta = Plan::has(call, "beta") ? numbers(call.input("beta")) : Numbers(columns, 0);
  Numbers mean(rows), variance(rows), y(x.size());
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < columns; ++c) {
      mean[r] += x[r * columns + c];
    }
    mean[r] /= static_cast<double>(columns);
    for (size_t c = 0; c < columns; ++c) {
      const double centered = x[r * columns + c] - mean[r];
      variance[r] += centered * centered;
    }
    variance[r] /= static_cast<double>(columns);
    const double inverse = 1 / std::sqrt(variance[r] + static_cast<double>(eps(call)));
    for (size_t c = 0; c < columns; ++c) {
      y[r * columns + c] = (x[r * columns + c] - mean[r]) * inverse * gamma[c] + beta[c];
    }
  }
  if (call.output("mean").present()) {
    store(call.output("mean"), mean);
  }
  if (call.output("variance").present()) {
    store(call.output("variance"), variance);
  }
  store(call.output("y"), y);
}

}  // namespace

constinit const Operator kLayerNorm = make_operator<fused, unfused, reference>("layer_norm", kSchema);

}  // namespace fusediff::onednn
