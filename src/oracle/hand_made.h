// For tests: a call from a schema written in the test, and executions written by hand. Runs nothing.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/call.h"
#include "model/case.h"
#include "model/execution.h"
#include "model/schema_json.h"

namespace fusediff {

using Bytes = std::vector<std::byte>;

// Each value rounded to the dtype.
inline Bytes elements(DType dtype, const std::vector<double>& values) {
  Bytes bytes(values.size() * size_of(dtype));
  round_all(dtype, values, bytes);
  return bytes;
}

inline Bytes raw_elements(DType dtype, const std::vector<std::uint64_t>& bits) {
  Bytes bytes(bits.size() * size_of(dtype));
  for (std::size_t i = 0; i < bits.size(); ++i) store_bits(dtype, bits[i], bytes.data() + i * size_of(dtype));
  return bytes;
}

// An operator and one call of it. fields: the members of the operator's record without name and paths.
class HandMade {
 public:
  explicit HandMade(const std::string& fields, const std::map<std::string, std::int64_t>& dims,
                    const std::map<std::string, AttrValue>& attrs = {},
                    const std::map<std::string, DType>& dtypes = {}) {
    Result<Schema> read = parse_schema(
        R"({"fusediff_schema": 1, "operators": [{"name": "op", "paths": ["fused", "unfused"], )" + fields + "}]}",
        nullptr);
    if (!read.ok()) {
      ADD_FAILURE() << read.error().what;
      return;
    }
    schema_ = *std::move(read);
    Case c;
    c.op = "op";
    c.dims = dims;
    c.attrs = attrs;
    c.dtypes = dtypes;
    for (const InputRule& input : op().inputs) c.inputs[input.name] = InputValue{};
    Result<Call> bound = bind(c, op(), 1 << 30);
    if (!bound.ok()) {
      ADD_FAILURE() << bound.error().what;
      return;
    }
    call = *std::move(bound);
    for (const Tensor& input : call.inputs) inputs[input.name] = Bytes(stored_bytes(input));
  }
  HandMade(const HandMade&) = delete;
  HandMade& operator=(const HandMade&) = delete;

  const Operator& op() const { return schema_.operators.front(); }

  // What a run gave back; an output that is not named holds zeros.
  Execution gave(const std::map<std::string, Bytes>& outputs, const Fills& fills = kFirstFills) const {
    Execution execution;
    execution.fills = fills;
    for (const Tensor& output : call.outputs) {
      const auto at = outputs.find(output.name);
      const std::size_t size =
          output.present ? static_cast<std::size_t>(element_count(output)) * size_of(output.dtype) : 0;
      execution.outputs.push_back(at == outputs.end() ? Bytes(size) : at->second);
      EXPECT_EQ(execution.outputs.back().size(), size) << output.name;
    }
    return execution;
  }

  std::vector<std::span<const std::byte>> views() const {
    std::vector<std::span<const std::byte>> views;
    for (const Tensor& input : call.inputs) views.emplace_back(inputs.at(input.name));
    return views;
  }

  Call call;
  std::map<std::string, Bytes> inputs;  // by name, stored elements

 private:
  Schema schema_;
};

}  // namespace fusediff
