// The operators: their records, and their paths. "fused" runs the graph as the library optimises it, "unfused" node by
// node, and "reference" computes the same formula here in f64, for the truth.
#include "onnxruntime/operators.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "onnxruntime/context.h"
#include "onnxruntime/graphs.h"

namespace fusediff::onnxruntime {
namespace {

using namespace kit;

const std::vector<std::string> kX{"x"};
const std::vector<std::string> kXBias{"x", "bias"};
const std::vector<std::string> kXSkip{"x", "skip"};
const std::vector<std::string> kXAffine{"x", "gamma", "beta"};
const std::vector<std::string> kXSkipAffine{"x", "skip", "gamma", "beta"};
const std::vector<std::string> kMatrices{"a", "b", "bias"};

template <const std::string& (*kModel)(), const std::vector<std::string>& kInputs, bool kOptimised>
void run(const Call& call) {
  call.context<Context>().run(call.raw(), kModel(), kOptimised, kInputs, "y");
}

// Beside y the scale that its bound is stated with, node by node on both sides.
template <const std::string& (*kModel)(), const std::vector<std::string>& kInputs, const std::string& (*kScaleModel)(),
          const std::vector<std::string>& kScaleInputs, bool kOptimised>
void run_norm(const Call& call) {
  run<kModel, kInputs, kOptimised>(call);
  // Not asked for where it is empty: ReduceMean without keepdims keeps all dims of an empty tensor.
  if (call.output("rstd").present()) {
    call.context<Context>().run(call.raw(), kScaleModel(), false, kScaleInputs, "rstd");
  }
}

double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }

// y = f(x, column) for each element.
template <class F>
void each_element(const Call& call, F&& f) {
  const auto x = call.input("x").view<const double, 2>();
  const auto y = call.output("y").view<double, 2>();
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    for (int64_t c = 0; c < x.shape[1]; ++c) y(r, c) = f(x(r, c), c);
  }
}

void gelu_truth(const Call& call) {
  each_element(call, [](double x, int64_t) { return gelu(x); });
}

void bias_gelu_truth(const Call& call) {
  const auto bias = call.input("bias").view<const double, 1>();
  each_element(call, [&](double x, int64_t c) { return gelu(x + bias(c)); });
}

void silu_truth(const Call& call) {
  each_element(call, [](double x, int64_t) { return x / (1 + std::exp(-x)); });
}

void normalise(const std::vector<double>& x, const Row<const double>& gamma, const Row<const double>& beta,
               const Row<double>& y, double* rstd) {
  const auto count = static_cast<double>(x.size());
  double mean = 0;
  for (const double one : x) mean += one / count;
  double variance = 0;
  for (const double one : x) variance += (one - mean) * (one - mean) / count;
  const double deviation = std::sqrt(variance + static_cast<double>(kEpsilon));
  if (rstd != nullptr) *rstd = 1 / deviation;
  for (size_t c = 0; c < x.size(); ++c) {
    const auto at = static_cast<int64_t>(c);
    y(at) = (x[c] - mean) / deviation * gamma(at) + beta(at);
  }
}

void layer_norm_truth(const Call& call) {
  const auto x = call.input("x").view<const double, 2>();
  const auto y = call.output("y").view<double, 2>();
  const auto rstd = call.output("rstd").optional_view<double, 1>();
  const auto gamma = call.input("gamma").view<const double, 1>();
  const auto beta = call.input("beta").view<const double, 1>();
  std::vector<double> row(static_cast<size_t>(x.shape[1]));
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    load(x.at(r), row.data());
    normalise(row, gamma, beta, y.at(r), rstd ? &rstd(r) : nullptr);
  }
}

void skip_layer_norm_truth(const Call& call) {
  const auto x = call.input("x").view<const double, 3>();
  const auto skip = call.input("skip").view<const double, 3>();
  const auto y = call.output("y").view<double, 3>();
  const auto rstd = call.output("rstd").optional_view<double, 2>();
  const auto gamma = call.input("gamma").view<const double, 1>();
  const auto beta = call.input("beta").view<const double, 1>();
  std::vector<double> row(static_cast<size_t>(x.shape[2]));
  for (int64_t b = 0; b < x.shape[0]; ++b) {
    for (int64_t s = 0; s < x.shape[1]; ++s) {
      for (size_t c = 0; c < row.size(); ++c) {
        row[c] = x(b, s, static_cast<int64_t>(c)) + skip(b, s, static_cast<int64_t>(c));
      }
      normalise(row, gamma, beta, y.at(b, s), rstd ? &rstd(b, s) : nullptr);
    }
  }
}

void softmax_truth(const Call& call) {
  const auto x = call.input("x").view<const double, 2>();
  const auto y = call.output("y").view<double, 2>();
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    double largest = -INFINITY;
    for (int64_t c = 0; c < x.shape[1]; ++c) {
      largest = std::isnan(x(r, c)) ? x(r, c) : std::max(x(r, c), largest);
    }
    double sum = 0;
    for (int64_t c = 0; c < x.shape[1]; ++c) sum += y(r, c) = std::exp(x(r, c) - largest);
    for (int64_t c = 0; c < x.shape[1]; ++c) y(r, c) /= sum;
  }
}

void matmul_add_truth(const Call& call) {
  const auto a = call.input("a").view<const double, 2>();
  const auto b = call.input("b").view<const double, 2>();
  const auto bias = call.input("bias").view<const double, 1>();
  const auto y = call.output("y").view<double, 2>();
  for (int64_t m = 0; m < y.shape[0]; ++m) {
    for (int64_t n = 0; n < y.shape[1]; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < a.shape[1]; ++k) sum += a(m, k) * b(k, n);
      y(m, n) = sum + bias(n);
    }
  }
}

constexpr char kGeluSchema[] = R"({
  "name": "gelu", "paths": ["fused", "unfused", "reference"],
  "dims": {"R": {"range": [0, 32]}, "C": {"range": [0, 512], "typical": [1, 8, 64, 128]}},
  "inputs": [{"name": "x", "shape": ["R", "C"], "dtype": "f32"}],
  "outputs": [{"name": "y", "shape": ["R", "C"], "dtype": "f32", "stage": 1}],
  "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"}
})";

constexpr char kBiasGeluSchema[] = R"({
  "name": "bias_gelu", "paths": ["fused", "unfused", "reference"],
  "dims": {"R": {"range": [0, 32]}, "C": {"range": [0, 512], "typical": [1, 8, 64, 128]}},
  "inputs": [
    {"name": "x", "shape": ["R", "C"], "dtype": "f32"},
    {"name": "bias", "shape": ["C"], "dtype": "f32"}],
  "outputs": [{"name": "y", "shape": ["R", "C"], "dtype": "f32", "stage": 1}],
  "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"}
})";

constexpr char kSiluSchema[] = R"({
  "name": "silu", "paths": ["fused", "unfused", "reference"],
  "dims": {"R": {"range": [0, 32]}, "C": {"range": [0, 512], "typical": [1, 8, 64, 128]}},
  "inputs": [{"name": "x", "shape": ["R", "C"], "dtype": "f32"}],
  "outputs": [{"name": "y", "shape": ["R", "C"], "dtype": "f32", "stage": 1}],
  "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"}
})";

constexpr char kLayerNormSchema[] = R"({
  "name": "layer_norm", "paths": ["fused", "unfused", "reference"],
  "dims": {"R": {"range": [0, 32]}, "C": {"range": [1, 512], "typical": [1, 8, 64, 128, 256]}},
  "where": ["C >= 1"],
  "inputs": [
    {"name": "x", "shape": ["R", "C"], "dtype": "f32"},
    {"name": "gamma", "shape": ["C"], "dtype": "f32"},
    {"name": "beta", "shape": ["C"], "dtype": "f32"}],
  "outputs": [
    {"name": "rstd", "shape": ["R"], "dtype": "f32", "stage": 1, "optional": true},
    {"name": "y", "shape": ["R", "C"], "dtype": "f32", "stage": 2,
     "bound": {"ulp": "2 * C + 40", "of": {"row_max_product": [["gamma", "x", "rstd"], ["gamma", "x", "x", "rstd", "rstd"], ["beta"]]},
       "why": "v = 2^-24, X = max abs x, A = X rstd. The mean is off by at most (C + 1) v X, d = x - mean by that and a rounding; rstd by (C / 2 + 8) v + (C + 1) v A / 3 of itself; quotient, product and the addition of beta 4 v: v gamma (A (2 C + 25) + A^2 (2 C + 2) / 3) + v beta; the last rounding is half an ULP of at most twice the scale. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 1.9, 3.1 and 4.2. For two passes over a row: a variance as the difference of two means is off by A^2 and not meant; not where squares overflow f32"}}],
  "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"}
})";

constexpr char kSkipLayerNormSchema[] = R"({
  "name": "skip_layer_norm", "paths": ["fused", "unfused", "reference"],
  "dims": {"B": {"range": [0, 4]}, "S": {"range": [0, 16]},
           "C": {"range": [1, 512], "typical": [1, 8, 64, 128, 256]}},
  "where": ["C >= 1"],
  "inputs": [
    {"name": "x", "shape": ["B", "S", "C"], "dtype": "f32"},
    {"name": "skip", "shape": ["B", "S", "C"], "dtype": "f32"},
    {"name": "gamma", "shape": ["C"], "dtype": "f32"},
    {"name": "beta", "shape": ["C"], "dtype": "f32"}],
  "outputs": [
    {"name": "rstd", "shape": ["B", "S"], "dtype": "f32", "stage": 1, "optional": true},
    {"name": "y", "shape": ["B", "S", "C"], "dtype": "f32", "stage": 2,
     "bound": {"ulp": "4 * C + 96", "of": {"row_max_product": [["gamma", "x", "rstd"], ["gamma", "skip", "rstd"], ["gamma", "x", "x", "rstd", "rstd"],
       ["gamma", "skip", "skip", "rstd", "rstd"], ["beta"]]},
       "why": "as for layer_norm with X = max abs (x + skip) <= max abs x + max abs skip, whose square is at most twice the sum of theirs; the sum x + skip rounds once more, which adds v X to each d. For two passes over a row, and not where squares overflow f32"}}],
  "rows": {"dim": "B", "inputs": ["x", "skip"], "outputs": "all"}
})";

constexpr char kSoftmaxSchema[] = R"({
  "name": "softmax", "paths": ["fused", "unfused", "reference"],
  "dims": {"R": {"range": [0, 32]}, "C": {"range": [1, 512], "typical": [1, 8, 64, 128, 256]}},
  "where": ["C >= 1"],
  "inputs": [{"name": "x", "shape": ["R", "C"], "dtype": "f32", "role": "score"}],
  "outputs": [{"name": "y", "shape": ["R", "C"], "dtype": "f32", "stage": 1}],
  "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"}
})";

constexpr char kMatmulAddSchema[] = R"({
  "name": "matmul_add", "paths": ["fused", "unfused", "reference"],
  "dims": {"M": {"range": [0, 64]}, "K": {"range": [0, 256], "typical": [1, 8, 64, 128]},
           "N": {"range": [0, 128], "typical": [1, 8, 16, 64]}},
  "inputs": [
    {"name": "a", "shape": ["M", "K"], "dtype": "f32"},
    {"name": "b", "shape": ["K", "N"], "dtype": "f32"},
    {"name": "bias", "shape": ["N"], "dtype": "f32", "role": "bias"}],
  "outputs": [{"name": "y", "shape": ["M", "N"], "dtype": "f32", "stage": 1,
    "bound": {"ulp": "K + 2", "of": "abs_inputs",
      "why": "K products and K + 1 sums, in any order, contracted or not: each term passes at most K + 2 roundings of one unit u, and one ULP at the scale of |a| |b| + |bias| is at least u of it; (K + 2) u is below 2^-15 for K up to 256, so that products of roundings stay below half a unit"}}],
  "rows": {"dim": "M", "inputs": ["a"], "outputs": "all"}
})";

}  // namespace

constinit const Operator kGelu{
    "gelu",
    kGeluSchema,
    {{"fused", run<gelu_model, kX, true>}, {"unfused", run<gelu_model, kX, false>}, {"reference", gelu_truth}}};
constinit const Operator kBiasGelu{"bias_gelu",
                                   kBiasGeluSchema,
                                   {{"fused", run<bias_gelu_model, kXBias, true>},
                                    {"unfused", run<bias_gelu_model, kXBias, false>},
                                    {"reference", bias_gelu_truth}}};
constinit const Operator kSilu{
    "silu",
    kSiluSchema,
    {{"fused", run<silu_model, kX, true>}, {"unfused", run<silu_model, kX, false>}, {"reference", silu_truth}}};
constinit const Operator kLayerNorm{"layer_norm",
                                    kLayerNormSchema,
                                    {{"fused", run_norm<layer_norm_model, kXAffine, rstd_model, kX, true>},
                                     {"unfused", run_norm<layer_norm_model, kXAffine, rstd_model, kX, false>},
                                     {"reference", layer_norm_truth}}};
constinit const Operator kSkipLayerNorm{
    "skip_layer_norm",
    kSkipLayerNormSchema,
    {{"fused", run_norm<skip_layer_norm_model, kXSkipAffine, skip_rstd_model, kXSkip, true>},
     {"unfused", run_norm<skip_layer_norm_model, kXSkipAffine, skip_rstd_model, kXSkip, false>},
     {"reference", skip_layer_norm_truth}}};
constinit const Operator kSoftmax{"softmax",
                                  kSoftmaxSchema,
                                  {{"fused", run<softmax_node_model, kX, true>},
                                   {"unfused", run<softmax_model, kX, false>},
                                   {"reference", softmax_truth}}};
constinit const Operator kMatmulAdd{"matmul_add",
                                    kMatmulAddSchema,
                                    {{"fused", run<matmul_add_model, kMatrices, true>},
                                     {"unfused", run<matmul_add_model, kMatrices, false>},
                                     {"reference", matmul_add_truth}}};

}  // namespace fusediff::onnxruntime
