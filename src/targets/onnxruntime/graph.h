// A small ONNX graph and its bytes: the model format is a protocol buffer (onnx.proto), of which this writes the few
// messages that a graph of plain nodes needs. It checks nothing: the library that reads the bytes does.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace fusediff::onnxruntime {

// TensorProto.DataType.
inline constexpr int kOnnxFloat = 1;
inline constexpr int kOnnxInt64 = 7;
inline constexpr int kOnnxDouble = 11;

class Graph {
 public:
  struct Ints {
    std::string_view name;
    std::vector<int64_t> values;
  };

  // Sizes are names: a graph takes any shape. All inputs and outputs are floats.
  void input(std::string_view name, std::initializer_list<std::string_view> shape);
  void output(std::string_view name, std::initializer_list<std::string_view> shape);
  // A constant without dimensions.
  void scalar(std::string_view name, float value);
  // A constant list of int64.
  void axes(std::string_view name, const std::vector<int64_t>& values);
  // ints: attributes that are lists of integers; integer: one that is a single one, where its name is not "".
  void node(std::string_view type, std::initializer_list<std::string_view> inputs, std::string_view output,
            const std::vector<Ints>& ints = {}, std::string_view integer = "", int64_t value = 0);

  // The whole model, for operator set 13 of ONNX.
  std::string bytes() const;

 private:
  std::string nodes_;
  std::string constants_;
  std::string inputs_;
  std::string outputs_;
};

}  // namespace fusediff::onnxruntime
