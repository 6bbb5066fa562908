// The graph of each operator, as an exporter writes it: one ONNX node for each small operation.
#pragma once

#include <string>

namespace fusediff::onnxruntime {

// The constants of the graphs.
inline constexpr float kSqrt2 = 1.41421354f;
inline constexpr float kEpsilon = 1e-5f;

// Models, made once.
const std::string& gelu_model();
const std::string& bias_gelu_model();
const std::string& layer_norm_model();
const std::string& skip_layer_norm_model();
const std::string& rstd_model();  // the part of layer_norm up to 1 / sqrt(variance + eps)
const std::string& skip_rstd_model();
const std::string& softmax_model();       // from ReduceMax, Sub, Exp, ReduceSum, Div
const std::string& softmax_node_model();  // one Softmax
const std::string& matmul_add_model();
const std::string& silu_model();

}  // namespace fusediff::onnxruntime
