// One call of a path as a list of aclnn operators, each asked in two stages. The same list serves both callers: where
// it only measures, the first stages are asked and their executors given back; where it runs, every first stage is
// asked again (an executor serves once) and its second stage put on the stream. Workspace: temporaries from its front,
// the operator's own at its end. It knows no operator.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "aclnn/device.h"
#include "kit/call.h"

namespace fusediff::aclnn {

// A tensor in device memory: of the call, or a temporary in the workspace.
struct Value {
  aclTensor* handle = nullptr;  // null: absent
  void* data = nullptr;
  int type = kFloat;
  std::vector<int64_t> shape;
};

class Steps {
 public:
  enum class Mode { kMeasure, kRun };

  Steps(const kit::Call& call, Mode mode);
  ~Steps();
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  const kit::Call& call() const { return call_; }

  // An input as it lies, with its strides; absent ones have no handle. UNSUPPORTED for a dtype that CANN lacks here.
  Value input(std::string_view name);
  // An output; one that is not dense is a temporary that done() copies, since aclnn outputs must be dense. `shape`,
  // where given, is another shape of the same elements. Not wanted: no handle.
  Value output(std::string_view name, const std::vector<int64_t>& shape = {});
  // As output(), and a temporary where it is not wanted.
  Value output_or_temporary(std::string_view name, const std::vector<int64_t>& shape = {});
  Value temporary(int type, const std::vector<int64_t>& shape);
  // The same dense memory in another shape, or with other strides.
  Value view(const Value& value, const std::vector<int64_t>& shape, const std::vector<int64_t>& stride = {});
  // A tensor of the call with its last dims exchanged: [a, b] as [b, a].
  Value transposed(const kit::Tensor& tensor);
  const aclScalar* scalar(float value);
  const aclIntArray* ints(std::initializer_list<int64_t> values);

  // Both stages of the operator `name`; args are those of its GetWorkspaceSize, without the last two.
  template <class... Args>
  void step(const std::string& name, Args... args) {
    uint64_t bytes = 0;
    aclOpExecutor* executor = nullptr;
    const std::string first = name + "GetWorkspaceSize";
    const auto ask = library_.function<int(Args..., uint64_t*, aclOpExecutor**)>(first);
    check(library_, ask(args..., &bytes, &executor), first);
    second_stage(name, bytes, executor);
  }

  // Copies outputs that are not dense. Running: returns when all is complete.
  void done();
  // Bytes of workspace; after done().
  size_t bytes() const;

 private:
  aclTensor* create(const std::vector<int64_t>& shape, const std::vector<int64_t>& stride, int type, void* data);
  Value whole(const kit::Tensor& tensor);
  void second_stage(const std::string& name, uint64_t bytes, aclOpExecutor* executor);

  struct Copy {
    Value to, from;
  };

  const kit::Call& call_;
  Device& device_;
  Library& library_;
  Mode mode_;
  AclStream stream_ = nullptr;
  bool queued_ = false;  // something was put on the stream and not waited for
  size_t used_ = 0;      // bytes of temporaries
  size_t largest_ = 0;   // bytes of the largest operator's workspace
  std::vector<Copy> copies_;
  std::vector<aclTensor*> tensors_;
  std::vector<aclScalar*> scalars_;
  std::vector<aclIntArray*> arrays_;
};

// The CANN type of a dtype; UNSUPPORTED where these operators have none.
int type_of(const kit::Tensor& tensor);

// The run and the workspace function of a path whose operators `list` puts into Steps.
template <void (*list)(Steps&)>
void run_steps(const kit::Call& call) {
  Steps steps(call, Steps::Mode::kRun);
  list(steps);
  steps.done();
}

template <void (*list)(Steps&)>
size_t measure_steps(const kit::Call& call) {
  Steps steps(call, Steps::Mode::kMeasure);
  list(steps);
  steps.done();
  return steps.bytes();
}

}  // namespace fusediff::aclnn
