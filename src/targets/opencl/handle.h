// OpenCL objects that release themselves, and error numbers turned into failures.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

#include <memory>
#include <string_view>
#include <type_traits>

namespace fusediff::opencl {

template <auto kRelease>
struct Releaser {
  template <class T>
  void operator()(T* object) const {
    kRelease(object);
  }
};

template <class T, auto kRelease>
using Handle = std::unique_ptr<std::remove_pointer_t<T>, Releaser<kRelease>>;

using Queue = Handle<cl_command_queue, clReleaseCommandQueue>;
using Kernel = Handle<cl_kernel, clReleaseKernel>;
using Buffer = Handle<cl_mem, clReleaseMemObject>;
using Event = Handle<cl_event, clReleaseEvent>;

// Throws kit::Failure (FAILED) "what: NAME (number)" unless code is CL_SUCCESS.
void succeed(cl_int code, std::string_view what);

}  // namespace fusediff::opencl
