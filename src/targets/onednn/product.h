// What matmul, matmul_activation and inner_product share: f(scale * (x @ w + bias)) + residual, as one primitive with
// post-ops or as primitives of their own, and in f64. The product itself is the operator's.
#pragma once

#include <functional>

#include "onednn/functions.h"

namespace fusediff::onednn {

// Read from a call that has the tensors bias [N] and residual [M, N], and the attribute activation.
struct Epilogue {
  bool bias;
  bool residual;
  float scale;
  const Function* activation;

  Epilogue(const kit::Call& call, float by);
};

// Attributes of a fused product: scale, activation and residual in oneDNN's order. `arguments` gets what they need.
dnnl::primitive_attr fused_epilogue(const kit::Call& call, const Plan& plan, const Epilogue& epilogue,
                                    std::vector<Argument>& arguments);

// Adds the product by `product(to)`, then bias, scale, activation and residual as primitives of their own; tensors of
// the dtype of y between.
void add_unfused(const kit::Call& call, Plan& plan, const Epilogue& epilogue,
                 const std::function<void(const Operand& to)>& product);

// The same in f64, to the output y. y: the product.
void finish_reference(const kit::Call& call, const Epilogue& epilogue, Numbers y);

}  // namespace fusediff::onednn
