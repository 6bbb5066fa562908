// A context of the target `cuda`: a device, the stream that a call uses, its memory, and CUDA's errors as one line
// each. No kernel stands here.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string_view>

namespace fusediff::cuda {

class DeviceStream;

// FAILED unless `error` is cudaSuccess: the call, CUDA's name of the error and its text. An error that leaves the
// process without a usable context (an illegal address) comes back from every later call, and so does this.
void check_cuda(cudaError_t error, const char* call);

class DeviceContext {
 public:
  // Options, comma separated: device=N (0), stream=per_thread|shared|default (per_thread). FAILED without a device.
  explicit DeviceContext(std::string_view options);
  ~DeviceContext();
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  // The stream of the calling thread's work, on the context's device.
  DeviceStream stream() const;
  // Returns when the work that this thread launched is done; FAILED where it broke.
  void finish() const;
  // As finish(), after an error: what breaks now is not told.
  void abandon() const noexcept;

  void* alloc(size_t bytes) const;
  void release(void* memory) const;
  void write(void* memory, const void* host, size_t bytes) const;
  void read(void* host, const void* memory, size_t bytes) const;

 private:
  void use_device() const;
  void read_option(std::string_view key, std::string_view value);

  int device_ = 0;
  bool shared_ = false;
  cudaStream_t stream_ = cudaStreamPerThread;
};

}  // namespace fusediff::cuda
