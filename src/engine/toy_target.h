// For tests: a target made of lambdas in this process, and a check of one case on it. Nothing here judges.
#pragma once

#include <gtest/gtest.h>

#include <charconv>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/check.h"
#include "model/case_json.h"
#include "model/schema_json.h"

namespace fusediff::toy {

// Element i in logical row-major order, strides honoured.
inline std::int64_t offset_of(const fusediff_tensor& tensor, std::int64_t i) {
  std::int64_t at = 0;
  for (std::int32_t dim = tensor.rank; dim-- > 0;) {
    at += i % tensor.shape[dim] * tensor.stride[dim];
    i /= tensor.shape[dim];
  }
  return at;
}
inline std::int64_t count(const fusediff_tensor& tensor) {
  std::int64_t n = 1;
  for (std::int32_t dim = 0; dim < tensor.rank; ++dim) n *= tensor.shape[dim];
  return n;
}
inline std::byte* element(const fusediff_tensor& tensor, std::int64_t i) {
  return static_cast<std::byte*>(tensor.data) +
         offset_of(tensor, i) * static_cast<std::int64_t>(size_of(static_cast<DType>(tensor.dtype)));
}
inline double get(const fusediff_tensor& tensor, std::int64_t i) {
  const auto dtype = static_cast<DType>(tensor.dtype);
  const std::uint64_t bits = load_bits(dtype, element(tensor, i));
  return is_float(dtype) ? float_value(dtype, bits) : static_cast<double>(integer_value(dtype, bits));
}
inline void set(const fusediff_tensor& tensor, std::int64_t i, double value) {
  const auto dtype = static_cast<DType>(tensor.dtype);
  store_bits(dtype, round_to_bits(dtype, value), element(tensor, i));
}
inline void set_bits(const fusediff_tensor& tensor, std::int64_t i, std::uint64_t bits) {
  store_bits(static_cast<DType>(tensor.dtype), bits, element(tensor, i));
}
inline std::uint64_t bits(const fusediff_tensor& tensor, std::int64_t i) {
  return load_bits(static_cast<DType>(tensor.dtype), element(tensor, i));
}
inline const fusediff_tensor& find(const fusediff_tensor* list, std::size_t n, std::string_view name) {
  for (std::size_t i = 0; i < n; ++i) {
    if (list[i].name == name) return list[i];
  }
  ADD_FAILURE() << "the call has no tensor " << name;
  return list[0];
}
inline const fusediff_tensor& in(const fusediff_call& call, std::string_view name) {
  return find(call.inputs, call.input_count, name);
}
inline const fusediff_tensor& out(const fusediff_call& call, std::string_view name) {
  return find(call.outputs, call.output_count, name);
}
inline double attr(const fusediff_call& call, std::string_view name) {
  for (std::size_t i = 0; i < call.attr_count; ++i) {
    if (call.attrs[i].name == name)
      return call.attrs[i].kind == FUSEDIFF_FLOAT ? call.attrs[i].f : static_cast<double>(call.attrs[i].i);
  }
  ADD_FAILURE() << "the call has no attribute " << name;
  return 0;
}

using Path = std::function<fusediff_status(const fusediff_call&)>;

// y[i] = f(x[i]), whatever the dtype.
inline Path each(std::function<double(double)> f) {
  return [f](const fusediff_call& call) {
    for (std::int64_t i = 0; i < count(call.outputs[0]); ++i) set(call.outputs[0], i, f(get(call.inputs[0], i)));
    return FUSEDIFF_OK;
  };
}

// An operator target whose paths a test may exchange at any time.
class Toy {
 public:
  // operators: the list of the schema, in JSON.
  explicit Toy(const std::string& operators, const std::string& name = "toy") {
    table_.abi_version = FUSEDIFF_ABI_VERSION;
    table_.struct_size = sizeof table_;
    table_.open = [](const char* options, void** context) {
      std::uintptr_t address = 0;
      std::from_chars(options, options + std::strlen(options), address);
      *context = reinterpret_cast<void*>(address);
      Toy& self = *static_cast<Toy*>(*context);
      ++self.opened;
      return self.open ? self.open() : FUSEDIFF_OK;
    };
    table_.close = [](void*) {};
    table_.workspace_bytes = [](void* context, const fusediff_call* call, std::size_t* bytes) {
      Toy& self = *static_cast<Toy*>(context);
      *bytes = self.workspace ? self.workspace(*call) : 0;
      return FUSEDIFF_OK;
    };
    table_.run = [](void* context, const fusediff_call* call) {
      Toy& self = *static_cast<Toy*>(context);
      const auto own = self.paths.find(std::string(call->op) + ":" + call->path);
      const auto at = own != self.paths.end() ? own : self.paths.find(call->path);
      return at == self.paths.end() ? FUSEDIFF_UNSUPPORTED : at->second(*call);
    };
    table_.last_error = [] { return message().c_str(); };
    target.name = name;
    target.abi = &table_;
    target.options = std::to_string(reinterpret_cast<std::uintptr_t>(this));
    message().clear();
    Result<Schema> schema = parse_schema(R"({"fusediff_schema": 1, "operators": [)" + operators + "]}", nullptr);
    if (schema.ok()) {
      target.schema = *std::move(schema);
    } else {
      ADD_FAILURE() << schema.error().what;
    }
  }
  Toy(const Toy&) = delete;
  Toy& operator=(const Toy&) = delete;

  static std::string& message() {
    static std::string text;
    return text;
  }

  std::map<std::string, Path> paths;  // by "fused", or "op:fused" where operators differ
  std::function<std::size_t(const fusediff_call&)> workspace;
  std::function<fusediff_status()> open;
  int opened = 0;
  Target target;

 private:
  fusediff_target_v1 table_{};
};

inline Case case_of(std::string_view json) {
  Result<Case> c = parse_case(json);
  if (!c.ok()) {
    ADD_FAILURE() << c.error().what;
    return {};
  }
  return *std::move(c);
}

inline Comparison fused_against_unfused(const Toy& toy) {
  return {{PathOf{&toy.target, "fused"}, PathOf{&toy.target, "unfused"}}, nullptr};
}

inline CheckOptions quick() {
  CheckOptions options;
  options.seconds = 5;
  options.max_bytes = std::uint64_t{1} << 26;
  return options;
}

inline Verdict verdict_of(Engine& engine, const Case& c) {
  const Result<CheckResult> result = engine.check(c);
  if (!result.ok()) {
    ADD_FAILURE() << result.error().what;
    return {};
  }
  return result->verdict;
}

inline Verdict check(const Comparison& comparison, const Case& c, const CheckOptions& options = quick()) {
  Engine engine(comparison, options);
  return verdict_of(engine, c);
}

inline Verdict check(const Toy& toy, const Case& c, const CheckOptions& options = quick()) {
  return check(fused_against_unfused(toy), c, options);
}

// "damage y", or the kind of a verdict that is no finding.
inline std::string in_short(const Verdict& verdict) {
  if (!verdict.finding) return std::string(name_of(verdict.kind));
  const Finding& f = *verdict.finding;
  return std::string(name_of(f.cls)) + (f.output.empty() ? "" : " " + f.output);
}

inline bool has(const Finding& finding, FindingClass cls) {
  for (const Evidence& evidence : finding.evidence) {
    if (evidence.cls == cls) return true;
  }
  return false;
}

// y [N] from x [N]: the smallest operator. more: further members of output y, each with a comma in front.
inline std::string one_to_one(const std::string& more = "", const std::string& members = "") {
  return R"({"name": "op", "paths": ["fused", "unfused"], "dims": {"N": {"range": [0, 64]}},
             "inputs": [{"name": "x", "shape": ["N"], "dtype": ["f32", "f16"], "layout": "any"}],
             "outputs": [{"name": "y", "shape": ["N"], "dtype": "=x", "layout": "any", "stage": 1)" +
         more + "}]" + members + "}";
}
inline Case ones(std::int64_t n = 8, const std::string& fill = R"({"constant": 1})", const std::string& members = "") {
  return case_of(R"({"fusediff_case": 1, "op": "op", "dims": {"N": )" + std::to_string(n) +
                 R"(}, "dtypes": {"x": "f32"}, "inputs": {"x": {"fill": )" + fill + "}}" + members + "}");
}

}  // namespace fusediff::toy
