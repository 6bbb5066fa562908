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
    {"name": "eps", "float": [1e-7, 1e-2], "scale": "log", "default": 1e-5}],
  "inputs": [
    {"name": "x",     "shape": ["R", "C"], "dtype": ["f32", "bf16"]},
    {"name": "gamma", "shape": ["C"], "dtype": "f32", "optional": true},
    {"name": "beta",  "shape": ["C"], "dtype": "f32", "optional": true}],
  "outputs": [
    {"name": "mean",     "shape": ["R"], "dtype": "f32", "stage": 1, "optional": true, "if": "training == 1"},
    {"name": "variance", "shape": ["R"], "dtype": "f32", "stage": 2, "optional": true, "if": "training == 1"},
    {"name": "y",        "shape": ["R", "C"], "dtype": "=x", "stage": 3}],
  "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"},
  "inplace": [["y", "x"]]
})";

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
  const Operand mean = plan.output(call, "mean");
  if (training) {
    arguments.push_back({DNNL_ARG_MEAN, mean});
    arguments.push_back({DNNL_ARG_VARIANCE, plan.output(call, "variance")});
  }
  const Forward::desc desc(training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference, x.desc,
                           mean.desc, eps(call), flags);
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
  const bool training = call.flag("training");
  const bool scales = Plan::has(call, "gamma");
  const bool shifts = Plan::has(call, "beta");
  const Operand y = plan.output(call, "y");
  const Operand mean = training ? plan.output(call, "mean").as(row) : plan.between(row, Type::f32);
  const Operand variance = training ? plan.output(call, "variance").as(row) : plan.between(row, Type::f32);
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
  if (call.flag("training")) {
    store(call.output("mean"), mean);
    store(call.output("variance"), variance);
  }
  store(call.output("y"), y);
}

}  // namespace

constinit const Operator kLayerNorm = make_operator<fused, unfused, reference>("layer_norm", kSchema);

}  // namespace fusediff::onednn
