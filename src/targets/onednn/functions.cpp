// See functions.h.
#include "onednn/functions.h"

#include <algorithm>
#include <cmath>

namespace fusediff::onednn {
namespace {

using namespace kit;
using dnnl::algorithm;

double logistic(double s) { return s < 0 ? std::exp(s) / (1 + std::exp(s)) : 1 / (1 + std::exp(-s)); }
double soft_relu(double s) { return s > 0 ? s + std::log1p(std::exp(-s)) : std::log1p(std::exp(s)); }

constexpr double kSqrtTwoOverPi = 0.79788456080286535588;
constexpr double kSqrtHalf = 0.70710678118654752440;

const Function kFunctions[] = {
    {"relu", algorithm::eltwise_relu, 0, 0, [](double s) { return s > 0 ? s : 0 * s; }},
    {"leaky_relu", algorithm::eltwise_relu, 0.25F, 0, [](double s) { return s > 0 ? s : 0.25 * s; }},
    {"tanh", algorithm::eltwise_tanh, 0, 0, [](double s) { return std::tanh(s); }},
    {"elu", algorithm::eltwise_elu, 1, 0, [](double s) { return s > 0 ? s : std::expm1(s); }},
    {"square", algorithm::eltwise_square, 0, 0, [](double s) { return s * s; }},
    {"abs", algorithm::eltwise_abs, 0, 0, [](double s) { return std::fabs(s); }},
    {"sqrt", algorithm::eltwise_sqrt, 0, 0, [](double s) { return std::sqrt(s); }},
    {"swish", algorithm::eltwise_swish, 1, 0, [](double s) { return s * logistic(s); }},
    {"three_quarters", algorithm::eltwise_linear, 0.75F, 0, [](double s) { return 0.75 * s; }},
    {"bounded_relu", algorithm::eltwise_bounded_relu, 6, 0, [](double s) { return s > 6   ? 6
                                                                                  : s > 0 ? s
                                                                                          : 0 * s; }},
    {"soft_relu", algorithm::eltwise_soft_relu, 0, 0, soft_relu},
    {"logsigmoid", algorithm::eltwise_logsigmoid, 0, 0, [](double s) { return -soft_relu(-s); }},
    {"mish", algorithm::eltwise_mish, 0, 0, [](double s) { return s * std::tanh(soft_relu(s)); }},
    {"logistic", algorithm::eltwise_logistic, 0, 0, logistic},
    {"exp", algorithm::eltwise_exp, 0, 0, [](double s) { return std::exp(s); }},
    {"gelu_tanh", algorithm::eltwise_gelu_tanh, 0, 0,
     [](double s) { return s * logistic(2 * kSqrtTwoOverPi * (s + 0.044715 * s * s * s)); }},
    {"gelu_erf", algorithm::eltwise_gelu_erf, 0, 0, [](double s) { return 0.5 * s * std::erfc(-s * kSqrtHalf); }},
    {"log", algorithm::eltwise_log, 0, 0, [](double s) { return std::log(s); }},
    {"clip", algorithm::eltwise_clip, -0.5F, 0.75F, [](double s) { return s > 0.75   ? 0.75
                                                                          : s > -0.5 ? s
                                                                                     : -0.5; }},
    {"clip_v2", algorithm::eltwise_clip_v2, -0.5F, 0.75F,
     [](double s) { return s >= 0.75  ? 0.75
                           : s > -0.5 ? s
                                      : -0.5; }},
    {"cube", algorithm::eltwise_pow, 1, 3, [](double s) { return s * s * s; }},
    {"root", algorithm::eltwise_pow, 1, 0.5F, [](double s) { return std::pow(s, 0.5); }},
    {"inverse", algorithm::eltwise_pow, 1, -1, [](double s) { return 1 / s; }},
    {"inverse_root", algorithm::eltwise_pow, 1, -0.5F, [](double s) { return 1 / std::sqrt(s); }},
    {"power_1_5", algorithm::eltwise_pow, 2, 1.5F, [](double s) { return 2 * std::pow(s, 1.5); }},
    {"round", algorithm::eltwise_round, 0, 0, [](double s) { return std::nearbyint(s); }},
    {"hardswish", algorithm::eltwise_hardswish, 0, 0,
     [](double s) { return s > 3    ? s
                           : s > -3 ? s * (s + 3) / 6
                                    : 0.0; }},
};

}  // namespace

const Function* find_function(std::string_view name) {
  if (name == "none") {
    return nullptr;
  }
  const Function* found =
      std::find_if(std::begin(kFunctions), std::end(kFunctions), [&](const Function& one) { return name == one.name; });
  require(found != std::end(kFunctions), "there is no elementwise function ", name);
  return found;
}

void append(dnnl::post_ops& post_ops, const Function* function) {
  if (function != nullptr) {
    post_ops.append_eltwise(1.0F, function->algorithm, function->alpha, function->beta);
  }
}

void add_eltwise(Plan& plan, const Operand& from, const Operand& to, const Function& function,
                 const dnnl::post_ops& post_ops) {
  const dnnl::eltwise_forward::desc desc(dnnl::prop_kind::forward_inference, function.algorithm, from.desc,
                                         function.alpha, function.beta);
  plan.add(dnnl::eltwise_forward::primitive_desc(desc, plan.attributes(post_ops), engine()),
           {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}});
}

void add_linear(Plan& plan, const Operand& from, const Operand& to, float scale, float shift) {
  add_eltwise(plan, from, to, Function{"", algorithm::eltwise_linear, scale, shift, nullptr});
}

void add_binary(Plan& plan, algorithm algorithm, const Operand& a, const Operand& b, const Operand& to) {
  const dnnl::binary::desc desc(algorithm, a.desc, b.desc, to.desc);
  plan.add(dnnl::binary::primitive_desc(desc, plan.attributes(), engine()),
           {{DNNL_ARG_SRC_0, a}, {DNNL_ARG_SRC_1, b}, {DNNL_ARG_DST, to}});
}

void apply(Numbers& values, const Function* function) {
  if (function != nullptr) {
    std::transform(values.begin(), values.end(), values.begin(), function->exact);
  }
}

}  // namespace fusediff::onednn
