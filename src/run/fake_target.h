// For tests: a target made of lambdas in this process, and calls for it written by hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "run/runner.h"

namespace fusediff::fake {

// What the functions of the table below do; set by a test, cleared by the fixture.
struct Behaviour {
  std::function<fusediff_status(const fusediff_call&)> run;
  std::function<fusediff_status(const fusediff_call&, std::size_t&)> workspace;
  std::function<fusediff_status(const char*, void**)> open;
  std::function<void(void*)> close;
  int opened = 0;
  int closed = 0;
  const char* last_error = nullptr;
};
inline Behaviour behaviour;

inline fusediff_status open(const char* options, void** context) {
  ++behaviour.opened;
  *context = nullptr;
  return behaviour.open ? behaviour.open(options, context) : FUSEDIFF_OK;
}
inline void close(void* context) {
  ++behaviour.closed;
  if (behaviour.close) behaviour.close(context);
}
inline fusediff_status workspace_bytes(void*, const fusediff_call* call, std::size_t* bytes) {
  *bytes = 0;
  return behaviour.workspace ? behaviour.workspace(*call, *bytes) : FUSEDIFF_OK;
}
inline fusediff_status run(void*, const fusediff_call* call) {
  return behaviour.run ? behaviour.run(*call) : FUSEDIFF_OK;
}
inline const char* last_error() { return behaviour.last_error; }

inline fusediff_target_v1 table() {
  fusediff_target_v1 table{};
  table.abi_version = FUSEDIFF_ABI_VERSION;
  table.struct_size = sizeof(fusediff_target_v1);
  table.name = "fake";
  table.version = "1";
  table.open = open;
  table.close = close;
  table.workspace_bytes = workspace_bytes;
  table.run = run;
  table.last_error = last_error;
  return table;
}

inline Tensor tensor(std::string name, std::vector<std::int64_t> shape, DType dtype = DType::kF32) {
  Tensor made;
  made.name = std::move(name);
  made.dtype = dtype;
  made.stride = dense_strides(shape);
  made.shape = std::move(shape);
  made.align = static_cast<std::int64_t>(size_of(dtype));
  return made;
}

inline std::vector<std::byte> ramp(std::size_t bytes, unsigned start = 1) {
  std::vector<std::byte> made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>(start + i * 7);
  return made;
}

// Index in elements of the n-th logical element.
inline std::int64_t offset_of(const fusediff_tensor& tensor, std::int64_t n) {
  std::int64_t at = 0;
  for (std::int32_t dim = tensor.rank; dim-- > 0;) {
    at += n % tensor.shape[dim] * tensor.stride[dim];
    n /= tensor.shape[dim];
  }
  return at;
}
inline std::int64_t count_of(const fusediff_tensor& tensor) {
  std::int64_t count = 1;
  for (std::int32_t dim = 0; dim < tensor.rank; ++dim) count *= tensor.shape[dim];
  return count;
}

// y[i] = x[i] for the first input and output of equal shape and dtype, strides honoured.
inline fusediff_status copy(const fusediff_call& call) {
  const fusediff_tensor& x = call.inputs[0];
  const fusediff_tensor& y = call.outputs[0];
  const std::size_t element = size_of(static_cast<DType>(x.dtype));
  for (std::int64_t i = 0; i < count_of(y); ++i) {
    std::memmove(static_cast<std::byte*>(y.data) + static_cast<std::size_t>(offset_of(y, i)) * element,
                 static_cast<const std::byte*>(x.data) + static_cast<std::size_t>(offset_of(x, i)) * element, element);
  }
  return FUSEDIFF_OK;
}

// A runner, one call, and the bytes of its inputs.
class Bench {
 public:
  explicit Bench(RunLimits limits = {}, fusediff_target_v1 abi = table()) : abi_(abi), runner(limits) {
    behaviour = {};
    target.abi = &abi_;
    op.name = "fake_op";
    call.op = &op;
  }
  ~Bench() { behaviour = {}; }

  void add_input(const Tensor& made) {
    call.inputs.push_back(made);
    inputs.push_back(made.present ? ramp(stored_bytes(made), 1 + static_cast<unsigned>(inputs.size()) * 31)
                                  : std::vector<std::byte>{});
  }
  void add_output(const Tensor& made) { call.outputs.push_back(made); }
  const Execution& run() {
    spans.assign(inputs.begin(), inputs.end());
    request.target = &target;
    request.path = "fused";
    request.call = &call;
    request.inputs = spans;
    runner.run(request, execution);
    return execution;
  }

 private:
  fusediff_target_v1 abi_;

 public:
  Target target;
  Operator op;
  Call call;
  std::vector<std::vector<std::byte>> inputs;
  std::vector<std::span<const std::byte>> spans;
  RunRequest request;
  Execution execution;
  Runner runner;
};

}  // namespace fusediff::fake
