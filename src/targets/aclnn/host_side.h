// For tests: the target aclnn on an edition of the emulation, dressed as a target on host memory, so that the rig can
// call it. Tensors are copied to the device with the gaps between their elements, and outputs back.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fusediff_target.h"
#include "kit/rig.h"

namespace fusediff::aclnn {

inline std::string edition_folder(const std::string& edition) {
  return std::string(FUSEDIFF_BIN_DIR) + "/targets/aclnn_emulation/" + edition;
}

// A symbol of bin/targets/FILE, which stays loaded; a test failure and null where there is none.
template <class F>
F* symbol_of(const std::string& file, const char* name) {
  void* library = dlopen((std::string(FUSEDIFF_BIN_DIR) + "/targets/" + file).c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  return library == nullptr ? nullptr : reinterpret_cast<F*>(dlsym(library, name));
}

inline const fusediff_target_v1& device_target() {
  static const fusediff_target_v1* const table =
      symbol_of<const fusediff_target_v1*()>("aclnn.so", "fusediff_target")();
  return *table;
}

namespace detail {

inline std::string options;

// One tensor of a call in device memory, filled byte by byte as the host has it.
struct OnDevice {
  void* context;
  fusediff_tensor tensor;
  void* host;
  size_t bytes = 0;

  OnDevice(void* at, const fusediff_tensor& from) : context(at), tensor(from), host(from.data) {
    if (host != nullptr) {
      int64_t last = 0;
      for (int32_t d = 0; d < from.rank; ++d) {
        last += (from.shape[d] - 1) * from.stride[d];
      }
      bytes = static_cast<size_t>(last + 1) * kit::dtype_bytes(from.dtype);
      tensor.data = device_target().alloc(context, bytes);
      device_target().write(context, tensor.data, host, bytes);
    }
  }
  void back() { EXPECT_EQ(bytes == 0 ? 0 : device_target().read(context, host, tensor.data, bytes), FUSEDIFF_OK); }
  void release() {
    if (bytes > 0) {
      device_target().release(context, tensor.data);
    }
  }
};

inline fusediff_status run(void* context, const fusediff_call* call) {
  std::vector<OnDevice> tensors;
  for (size_t i = 0; i < call->input_count + call->output_count; ++i) {
    const bool input = i < call->input_count;
    tensors.emplace_back(context, input ? call->inputs[i] : call->outputs[i - call->input_count]);
  }
  std::vector<fusediff_tensor> raw;
  for (const OnDevice& one : tensors) {
    raw.push_back(one.tensor);
  }
  fusediff_call moved = *call;
  moved.inputs = raw.data();
  moved.outputs = raw.data() + call->input_count;
  moved.workspace = call->workspace_size == 0 ? nullptr : device_target().alloc(context, call->workspace_size);
  const fusediff_status status = device_target().run(context, &moved);
  for (size_t i = call->input_count; i < tensors.size(); ++i) {
    tensors[i].back();
  }
  for (OnDevice& one : tensors) {
    one.release();
  }
  if (moved.workspace != nullptr) {
    device_target().release(context, moved.workspace);
  }
  return status;
}

}  // namespace detail

// On `edition`, with more options behind its library_path.
inline const fusediff_target_v1& host_target(const std::string& edition, const std::string& more = "") {
  static fusediff_target_v1 table;
  detail::options = "library_path=" + edition_folder(edition) + more;
  table = device_target();
  table.open = [](const char*, void** context) { return device_target().open(detail::options.c_str(), context); };
  table.run = detail::run;
  table.alloc = nullptr;
  table.release = nullptr;
  table.write = nullptr;
  table.read = nullptr;
  return table;
}

}  // namespace fusediff::aclnn
