#include "onnxruntime/graphs.h"

#include "onnxruntime/graph.h"

namespace fusediff::onnxruntime {
namespace {

// y = 0.5 (x (1 + erf(x / sqrt(2)))).
void add_gelu(Graph& graph, std::string_view x) {
  graph.scalar("sqrt2", kSqrt2);
  graph.scalar("one", 1);
  graph.scalar("half", 0.5f);
  graph.node("Div", {x, "sqrt2"}, "scaled");
  graph.node("Erf", {"scaled"}, "erf");
  graph.node("Add", {"erf", "one"}, "shifted");
  graph.node("Mul", {x, "shifted"}, "product");
  graph.node("Mul", {"product", "half"}, "y");
}

// centred = x - mean and deviation = sqrt(variance + eps) over the last dimension.
void add_deviation(Graph& graph, std::string_view x, int64_t keep) {
  graph.scalar("two", 2);
  graph.scalar("eps", kEpsilon);
  graph.node("ReduceMean", {x}, "mean", {{"axes", {-1}}}, "keepdims", 1);
  graph.node("Sub", {x, "mean"}, "centred");
  graph.node("Pow", {"centred", "two"}, "squared");
  graph.node("ReduceMean", {"squared"}, "variance", {{"axes", {-1}}}, "keepdims", keep);
  graph.node("Add", {"variance", "eps"}, "safe");
  graph.node("Sqrt", {"safe"}, "deviation");
}

// y = centred / deviation * gamma + beta.
void add_layer_norm(Graph& graph, std::string_view x) {
  add_deviation(graph, x, 1);
  graph.node("Div", {"centred", "deviation"}, "normal");
  graph.node("Mul", {"normal", "gamma"}, "stretched");
  graph.node("Add", {"stretched", "beta"}, "y");
}

std::string make_gelu() {
  Graph graph;
  graph.input("x", {"R", "C"});
  graph.output("y", {"R", "C"});
  add_gelu(graph, "x");
  return graph.bytes();
}

std::string make_bias_gelu() {
  Graph graph;
  graph.input("x", {"R", "C"});
  graph.input("bias", {"C"});
  graph.output("y", {"R", "C"});
  graph.node("Add", {"x", "bias"}, "sum");
  add_gelu(graph, "sum");
  return graph.bytes();
}

std::string make_layer_norm() {
  Graph graph;
  graph.input("x", {"R", "C"});
  graph.input("gamma", {"C"});
  graph.input("beta", {"C"});
  graph.output("y", {"R", "C"});
  add_layer_norm(graph, "x");
  return graph.bytes();
}

std::string make_skip_layer_norm() {
  Graph graph;
  graph.input("x", {"B", "S", "C"});
  graph.input("skip", {"B", "S", "C"});
  graph.input("gamma", {"C"});
  graph.input("beta", {"C"});
  graph.output("y", {"B", "S", "C"});
  graph.node("Add", {"x", "skip"}, "sum");
  add_layer_norm(graph, "sum");
  return graph.bytes();
}

std::string make_rstd() {
  Graph graph;
  graph.input("x", {"R", "C"});
  graph.output("rstd", {"R"});
  graph.scalar("one", 1);
  add_deviation(graph, "x", 0);
  graph.node("Div", {"one", "deviation"}, "rstd");
  return graph.bytes();
}

std::string make_skip_rstd() {
  Graph graph;
  graph.input("x", {"B", "S", "C"});
  graph.input("skip", {"B", "S", "C"});
  graph.output("rstd", {"B", "S"});
  graph.scalar("one", 1);
  graph.node("Add", {"x", "skip"}, "sum");
  add_deviation(graph, "sum", 0);
  graph.node("Div", {"one", "deviation"}, "rstd");
  return graph.bytes();
}

std::string make_softmax() {
  Graph graph;
  graph.input("x", {"R", "C"});
  graph.output("y", {"R", "C"});
  graph.node("ReduceMax", {"x"}, "largest", {{"axes", {-1}}}, "keepdims", 1);
  graph.node("Sub", {"x", "largest"}, "shifted");
  graph.node("Exp", {"shifted"}, "exponential");
  // From operator set 13 on ReduceSum takes its axes as an input.
  graph.axes("last", {-1});
  graph.node("ReduceSum", {"exponential", "last"}, "sum", {}, "keepdims", 1);
  graph.node("Div", {"exponential", "sum"}, "y");
  return graph.bytes();
}

std::string make_softmax_node() {
  Graph graph;
  graph.input("x", {"R", "C"});
  graph.output("y", {"R", "C"});
  graph.node("Softmax", {"x"}, "y", {}, "axis", -1);
  return graph.bytes();
}

std::string make_matmul_add() {
  Graph graph;
  graph.input("a", {"M", "K"});
  graph.input("b", {"K", "N"});
  graph.input("bias", {"N"});
  graph.output("y", {"M", "N"});
  graph.node("MatMul", {"a", "b"}, "product");
  graph.node("Add", {"product", "bias"}, "y");
  return graph.bytes();
}

std::string make_silu() {
  Graph graph;
  graph.input("x", {"R", "C"});
  graph.output("y", {"R", "C"});
  graph.node("Sigmoid", {"x"}, "gate");
  graph.node("Mul", {"x", "gate"}, "y");
  return graph.bytes();
}

}  // namespace

const std::string& gelu_model() {
  static const std::string model = make_gelu();
  return model;
}

const std::string& bias_gelu_model() {
  static const std::string model = make_bias_gelu();
  return model;
}

const std::string& layer_norm_model() {
  static const std::string model = make_layer_norm();
  return model;
}

const std::string& skip_layer_norm_model() {
  static const std::string model = make_skip_layer_norm();
  return model;
}

const std::string& rstd_model() {
  static const std::string model = make_rstd();
  return model;
}

const std::string& skip_rstd_model() {
  static const std::string model = make_skip_rstd();
  return model;
}

const std::string& softmax_model() {
  static const std::string model = make_softmax();
  return model;
}

const std::string& softmax_node_model() {
  static const std::string model = make_softmax_node();
  return model;
}

const std::string& matmul_add_model() {
  static const std::string model = make_matmul_add();
  return model;
}

const std::string& silu_model() {
  static const std::string model = make_silu();
  return model;
}

}  // namespace fusediff::onnxruntime
