// Copies of tensors between device and host.
#include "aclnn/host_copy.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "aclnn/device.h"

namespace fusediff::aclnn {
namespace {

size_t bytes_of(int32_t dtype) {
  switch (dtype) {
    case FUSEDIFF_F64:
    case FUSEDIFF_I64:
      return 8;
    case FUSEDIFF_F32:
    case FUSEDIFF_I32:
      return 4;
    case FUSEDIFF_F16:
    case FUSEDIFF_BF16:
    case FUSEDIFF_I16:
      return 2;
    default:
      return 1;
  }
}

// From the first to behind the last element.
size_t span_of(const fusediff_tensor& tensor) {
  int64_t last = 0;
  for (int32_t d = 0; d < tensor.rank; ++d) {
    last += (tensor.shape[d] - 1) * tensor.stride[d];
  }
  return static_cast<size_t>(last + 1) * bytes_of(tensor.dtype);
}

class HostTensors {
 public:
  HostTensors(Library& library, const fusediff_tensor* tensors, size_t count)
      : library_(library), device_(tensors, tensors + count), host_(device_) {
    for (fusediff_tensor& tensor : host_) {
      memory_.emplace_back();
      if (tensor.data != nullptr) {
        const size_t bytes = span_of(tensor);
        memory_.back().reset(new std::max_align_t[bytes / sizeof(std::max_align_t) + 1]);
        check(library_, library_.memcpy(memory_.back().get(), bytes, tensor.data, bytes, kDeviceToHost), "aclrtMemcpy");
        tensor.data = memory_.back().get();
      }
    }
  }

  const fusediff_tensor* data() const { return host_.data(); }

  void write_back() const {
    for (size_t i = 0; i < host_.size(); ++i) {
      if (host_[i].data != nullptr) {
        const size_t bytes = span_of(host_[i]);
        check(library_, library_.memcpy(device_[i].data, bytes, host_[i].data, bytes, kHostToDevice), "aclrtMemcpy");
      }
    }
  }

 private:
  Library& library_;
  std::vector<fusediff_tensor> device_, host_;
  std::vector<std::unique_ptr<std::max_align_t[]>> memory_;
};

const kit::Path& path_of(const kit::Operator& op, std::string_view name) {
  for (const kit::Path& path : op.paths) {
    if (path.name != nullptr && name == path.name) {
      return path;
    }
  }
  kit::unsupported("the built-in ", op.name, " has no path ", name);
}

}  // namespace

void run_on_host(const kit::Call& call, const kit::Operator& op, std::string_view path) {
  Device& device = call.context<Device>();
  device.bind();
  const HostTensors inputs(device.library(), call.raw().inputs, call.raw().input_count);
  const HostTensors outputs(device.library(), call.raw().outputs, call.raw().output_count);
  fusediff_call raw = call.raw();
  raw.inputs = inputs.data();
  raw.outputs = outputs.data();
  raw.workspace = nullptr;
  raw.workspace_size = 0;
  const kit::Path& chosen = path_of(op, path);
  const size_t bytes = chosen.workspace_bytes == nullptr ? 0 : chosen.workspace_bytes(kit::Call(raw, nullptr));
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  const std::unique_ptr<Line[]> workspace(new Line[bytes / sizeof(Line) + 1]);
  raw.workspace = workspace.get();
  raw.workspace_size = bytes;
  chosen.run(kit::Call(raw, nullptr));
  outputs.write_back();
}

}  // namespace fusediff::aclnn
