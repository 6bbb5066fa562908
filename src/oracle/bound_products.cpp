// The scale kRowMaxProduct. Looks at values of the f64 run only, never at those of a path.
#include <algorithm>
#include <cmath>

#include "oracle/bound.h"

namespace fusediff {
namespace {

// How many leading dims index both shapes alike.
std::size_t dims_in_common(const std::vector<Expr>& output, const std::vector<Expr>& input) {
  const std::size_t rows = output.size() >= 2 ? output.size() - 1 : output.size();
  std::size_t common = 0;
  while (common < std::min(rows, input.size()) && output[common].text() == input[common].text()) ++common;
  return common;
}

double largest_finite(std::span<const double> values) {
  double largest = 0;
  for (const double value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

std::optional<double> attribute(const Call& call, const std::string& name) {
  for (const CallAttr& attr : call.attrs) {
    if (attr.name != name) continue;
    const double* value = std::get_if<double>(&attr.value);
    return value == nullptr ? std::nullopt : std::optional(std::abs(*value));
  }
  return std::nullopt;
}

// The factors of one output, [elements].
struct Factors {
  const Call& call;
  std::size_t output;
  std::span<const std::vector<double>> inputs;
  std::span<const OutputTruth> outputs;

  void multiply_by_rows(const std::vector<Expr>& other, std::span<const double> values,
                        std::vector<double>& product) const {
    const std::size_t common = dims_in_common(call.op->outputs[output].shape, other);
    std::size_t rows = 1;
    for (std::size_t d = 0; d < common; ++d) rows *= static_cast<std::size_t>(call.outputs[output].shape[d]);
    if (rows == 0) return;
    const std::size_t there = values.size() / rows, here = product.size() / rows;
    for (std::size_t row = 0; row < rows; ++row) {
      const double largest = largest_finite(values.subspan(row * there, there));
      for (std::size_t i = row * here; i < (row + 1) * here; ++i) product[i] *= largest;
    }
  }

  void multiply(const std::string& name, std::vector<double>& product) const {
    const Operator& op = *call.op;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      if (op.inputs[i].name == name) return multiply_by_rows(op.inputs[i].shape, inputs[i], product);
    }
    for (std::size_t o = 0; o < op.outputs.size(); ++o) {
      if (op.outputs[o].name == name) return multiply_by_rows(op.outputs[o].shape, outputs[o].value, product);
    }
    const double value = attribute(call, name).value_or(0);
    for (double& one : product) one *= value;
  }
};

}  // namespace

std::vector<double> products_of(const Call& call, std::size_t output, std::span<const std::vector<double>> inputs,
                                std::span<const OutputTruth> outputs) {
  const Tensor& tensor = call.outputs[output];
  std::vector<double> sum(static_cast<std::size_t>(element_count(tensor)));
  const std::optional<BoundRule>& rule = call.op->outputs[output].bound;
  if (!rule) return sum;
  const Factors factors{call, output, inputs, outputs};
  for (const std::vector<std::string>& names : rule->products) {
    std::vector<double> product(sum.size(), 1);
    for (const std::string& name : names) factors.multiply(name, product);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += product[i];
  }
  return sum;
}

}  // namespace fusediff
