#include "run/call_view.h"

namespace fusediff {
namespace {

fusediff_attr attr_view(const CallAttr& attr) {
  fusediff_attr view{};
  view.name = attr.name.c_str();
  if (const auto* integer = std::get_if<std::int64_t>(&attr.value)) {
    view.kind = FUSEDIFF_INT;
    view.i = *integer;
  } else if (const auto* real = std::get_if<double>(&attr.value)) {
    view.kind = FUSEDIFF_FLOAT;
    view.f = *real;
  } else {
    view.kind = FUSEDIFF_STRING;
    view.s = std::get<std::string>(attr.value).c_str();
  }
  return view;
}

void view_tensors(const std::vector<Tensor>& tensors, const std::vector<Buffer>& buffers,
                  std::vector<fusediff_tensor>& views) {
  views.clear();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    views.push_back({tensor.name.c_str(), tensor.shape.data(), tensor.stride.data(), buffers[i].data,
                     static_cast<std::int32_t>(tensor.shape.size()), static_cast<std::int32_t>(tensor.dtype)});
  }
}

}  // namespace

const fusediff_call& CallView::assign(const Call& call, std::string_view path, const std::vector<Buffer>& inputs,
                                      const std::vector<Buffer>& outputs) {
  path_.assign(path);
  attrs_.clear();
  for (const CallAttr& attr : call.attrs) attrs_.push_back(attr_view(attr));
  view_tensors(call.inputs, inputs, inputs_);
  view_tensors(call.outputs, outputs, outputs_);
  call_ = {};
  call_.struct_size = sizeof(fusediff_call);
  call_.op = call.op == nullptr ? "" : call.op->name.c_str();
  call_.path = path_.c_str();
  call_.attrs = attrs_.data();
  call_.attr_count = attrs_.size();
  call_.inputs = inputs_.data();
  call_.input_count = inputs_.size();
  call_.outputs = outputs_.data();
  call_.output_count = outputs_.size();
  return call_;
}

const fusediff_call& CallView::with_workspace(void* workspace, std::size_t bytes) {
  call_.workspace = workspace;
  call_.workspace_size = bytes;
  return call_;
}

}  // namespace fusediff
