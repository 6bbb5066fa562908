// A call of a built-in operator on tensors of the emulation, built in the first stage and run in the second.
#pragma once

#include <deque>
#include <string>

#include "aclnn/emulation/objects.h"
#include "builtin/operators.h"

namespace fusediff::emulated {

class BuiltinCall {
 public:
  explicit BuiltinCall(const kit::Operator& op) : op_(op) {}
  BuiltinCall(const BuiltinCall&) = delete;
  BuiltinCall& operator=(const BuiltinCall&) = delete;

  // Absent, or not wanted, where `present` is false: then only its shape and dtype count.
  void input(const char* name, Tensor tensor, bool present = true) { add(inputs_, name, std::move(tensor), present); }
  void output(const char* name, Tensor tensor, bool present = true) { add(outputs_, name, std::move(tensor), present); }
  void integer(const char* name, int64_t value) { attrs_.push_back({name, FUSEDIFF_INT, value, 0, ""}); }
  void real(const char* name, double value) { attrs_.push_back({name, FUSEDIFF_FLOAT, 0, value, ""}); }
  void text(const char* name, const char* value) { attrs_.push_back({name, FUSEDIFF_STRING, 0, 0, value}); }

  size_t workspace_bytes() {
    const auto ask = op_.paths[0].workspace_bytes;
    return ask == nullptr ? 0 : ask(kit::Call(raw(nullptr, 0), nullptr));
  }
  void run(void* workspace) { run(op_.paths[0].run, workspace); }
  void run(void (*path)(const kit::Call&), void* workspace) {
    path(kit::Call(raw(workspace, workspace_bytes()), nullptr));
  }
  // The call as a path sees it; valid until the next use.
  kit::Call call(void* workspace) { return kit::Call(raw(workspace, workspace_bytes()), nullptr); }

 private:
  struct Named {
    Tensor tensor;
    const char* name;
    bool present;
  };

  static void add(std::deque<Named>& to, const char* name, Tensor tensor, bool present) {
    to.push_back({std::move(tensor), name, present});
  }

  static std::vector<fusediff_tensor> views(const std::deque<Named>& tensors) {
    std::vector<fusediff_tensor> made;
    for (const Named& one : tensors) {
      void* data = one.present && one.tensor.count() > 0 ? one.tensor.data : nullptr;
      made.push_back({one.name, one.tensor.shape.data(), one.tensor.stride.data(), data,
                      static_cast<int32_t>(one.tensor.shape.size()), one.tensor.dtype()});
    }
    return made;
  }

  const fusediff_call& raw(void* workspace, size_t bytes) {
    in_ = views(inputs_);
    out_ = views(outputs_);
    raw_.struct_size = sizeof(raw_);
    raw_.op = op_.name;
    raw_.path = op_.paths[0].name;
    raw_.attrs = attrs_.data();
    raw_.attr_count = attrs_.size();
    raw_.inputs = in_.data();
    raw_.input_count = in_.size();
    raw_.outputs = out_.data();
    raw_.output_count = out_.size();
    raw_.workspace = workspace;
    raw_.workspace_size = bytes;
    return raw_;
  }

  const kit::Operator& op_;
  std::deque<Named> inputs_, outputs_;
  std::vector<fusediff_attr> attrs_;
  std::vector<fusediff_tensor> in_, out_;
  fusediff_call raw_{};
};

// A dense tensor without memory.
inline Tensor absent(int type, std::vector<int64_t> shape) {
  Tensor made{std::move(shape), {}, type, nullptr};
  made.stride.assign(made.shape.size(), 1);
  for (size_t d = made.shape.size(); d-- > 1;) {
    made.stride[d - 1] = made.stride[d] * made.shape[d];
  }
  return made;
}

}  // namespace fusediff::emulated
