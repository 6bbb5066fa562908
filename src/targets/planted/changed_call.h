// A call with one tensor or attribute exchanged, for paths that hand on to a built-in one. It owns nothing but the
// copied lists: the call that it came from and what is exchanged must outlive it.
#pragma once

#include <string_view>
#include <vector>

#include "builtin/operators.h"
#include "kit/call.h"
#include "kit/target.h"

namespace fusediff::planted {

class ChangedCall {
 public:
  explicit ChangedCall(const kit::Call& call)
      : raw_(call.raw()),
        attrs_(raw_.attrs, raw_.attrs + raw_.attr_count),
        inputs_(raw_.inputs, raw_.inputs + raw_.input_count),
        outputs_(raw_.outputs, raw_.outputs + raw_.output_count) {
    raw_.attrs = attrs_.data();
    raw_.inputs = inputs_.data();
    raw_.outputs = outputs_.data();
  }
  ChangedCall(const ChangedCall&) = delete;
  ChangedCall& operator=(const ChangedCall&) = delete;

  void text(std::string_view name, const char* value) {
    for (fusediff_attr& attr : attrs_) {
      if (name == attr.name) {
        attr.s = value;
      }
    }
  }
  // Dense memory in place of an input or an output; strides are [rank].
  void input(std::string_view name, void* data, const int64_t* stride) { exchange(inputs_, name, data, stride); }
  void output(std::string_view name, void* data, const int64_t* stride) { exchange(outputs_, name, data, stride); }

  // Runs that path of an operator; a failure is thrown on.
  void run(void (*path)(const kit::Call&)) const { path(kit::Call(raw_, nullptr)); }

 private:
  static void exchange(std::vector<fusediff_tensor>& tensors, std::string_view name, void* data,
                       const int64_t* stride) {
    for (fusediff_tensor& tensor : tensors) {
      if (name == tensor.name) {
        tensor.data = data;
        tensor.stride = stride;
      }
    }
  }

  fusediff_call raw_;
  std::vector<fusediff_attr> attrs_;
  std::vector<fusediff_tensor> inputs_;
  std::vector<fusediff_tensor> outputs_;
};

// The fused path of a built-in operator.
inline void run_fused(const kit::Operator& op, const kit::Call& call) { op.paths[0].run(call); }
inline size_t workspace_of_fused(const kit::Operator& op, const kit::Call& call) {
  return op.paths[0].workspace_bytes == nullptr ? 0 : op.paths[0].workspace_bytes(call);
}

// The built-in add, as the operator of a target that is clean by comparison.
inline void add_fused(const kit::Call& call) { run_fused(builtin::kAdd, call); }

}  // namespace fusediff::planted
