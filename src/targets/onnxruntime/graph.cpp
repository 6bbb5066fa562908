#include "onnxruntime/graph.h"

#include <bit>

namespace fusediff::onnxruntime {
namespace {

// The wire format of protocol buffers: a key (field number and type), then a varint or a length and bytes.
void put_varint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(0x80 | (value & 0x7f));
  to += static_cast<char>(value);
}

void put_int(std::string& to, uint64_t field, int64_t value) {
  put_varint(to, field << 3);
  put_varint(to, static_cast<uint64_t>(value));
}

void put_bytes(std::string& to, uint64_t field, std::string_view bytes) {
  put_varint(to, field << 3 | 2);
  put_varint(to, bytes.size());
  to += bytes;
}

constexpr int kIrVersion = 7;
constexpr int kOperatorSet = 13;

// AttributeProto.AttributeType.
constexpr int kAttributeInt = 2;
constexpr int kAttributeInts = 7;

// ValueInfoProto: name = 1, type = 2 { tensor_type = 1 { elem_type = 1, shape = 2 { dim = 1 { dim_param = 2 } } } }.
std::string value_info(std::string_view name, std::initializer_list<std::string_view> shape) {
  std::string dims;
  for (const std::string_view size : shape) {
    std::string dim;
    put_bytes(dim, 2, size);
    put_bytes(dims, 1, dim);
  }
  std::string tensor;
  put_int(tensor, 1, kOnnxFloat);
  put_bytes(tensor, 2, dims);
  std::string type;
  put_bytes(type, 1, tensor);
  std::string whole;
  put_bytes(whole, 1, name);
  put_bytes(whole, 2, type);
  return whole;
}

}  // namespace

// GraphProto: node = 1, name = 2, initializer = 5, input = 11, output = 12.
void Graph::input(std::string_view name, std::initializer_list<std::string_view> shape) {
  put_bytes(inputs_, 11, value_info(name, shape));
}

void Graph::output(std::string_view name, std::initializer_list<std::string_view> shape) {
  put_bytes(outputs_, 12, value_info(name, shape));
}

// TensorProto: dims = 1, data_type = 2, name = 8, raw_data = 9.
void Graph::scalar(std::string_view name, float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  std::string raw;
  for (int byte = 0; byte < 4; ++byte) raw += static_cast<char>(bits >> (8 * byte) & 0xff);
  std::string tensor;
  put_int(tensor, 2, kOnnxFloat);
  put_bytes(tensor, 8, name);
  put_bytes(tensor, 9, raw);
  put_bytes(constants_, 5, tensor);
}

void Graph::axes(std::string_view name, const std::vector<int64_t>& values) {
  std::string raw;
  for (const int64_t value : values) {
    for (int byte = 0; byte < 8; ++byte) raw += static_cast<char>(static_cast<uint64_t>(value) >> (8 * byte) & 0xff);
  }
  std::string tensor;
  put_int(tensor, 1, static_cast<int64_t>(values.size()));
  put_int(tensor, 2, kOnnxInt64);
  put_bytes(tensor, 8, name);
  put_bytes(tensor, 9, raw);
  put_bytes(constants_, 5, tensor);
}

// NodeProto: input = 1, output = 2, op_type = 4, attribute = 5. AttributeProto: name = 1, i = 3, ints = 8, type = 20.
void Graph::node(std::string_view type, std::initializer_list<std::string_view> inputs, std::string_view output,
                 const std::vector<Ints>& ints, std::string_view integer, int64_t value) {
  std::string node;
  for (const std::string_view one : inputs) put_bytes(node, 1, one);
  put_bytes(node, 2, output);
  put_bytes(node, 4, type);
  for (const Ints& one : ints) {
    std::string attribute;
    put_bytes(attribute, 1, one.name);
    for (const int64_t element : one.values) put_int(attribute, 8, element);
    put_int(attribute, 20, kAttributeInts);
    put_bytes(node, 5, attribute);
  }
  if (!integer.empty()) {
    std::string attribute;
    put_bytes(attribute, 1, integer);
    put_int(attribute, 3, value);
    put_int(attribute, 20, kAttributeInt);
    put_bytes(node, 5, attribute);
  }
  put_bytes(nodes_, 1, node);
}

// ModelProto: ir_version = 1, producer_name = 2, graph = 7, opset_import = 8 { domain = 1, version = 2 }.
std::string Graph::bytes() const {
  std::string graph = nodes_;
  put_bytes(graph, 2, "fusediff");
  graph += constants_ + inputs_ + outputs_;
  std::string operators;
  put_bytes(operators, 1, "");
  put_int(operators, 2, kOperatorSet);
  std::string model;
  put_int(model, 1, kIrVersion);
  put_bytes(model, 2, "fusediff");
  put_bytes(model, 7, graph);
  put_bytes(model, 8, operators);
  return model;
}

}  // namespace fusediff::onnxruntime
