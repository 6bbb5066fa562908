// The context of the target `cuda`. See context.h.
#include "cuda/context.h"

#include <charconv>

#include "cuda/device_stream.h"
#include "kit/failure.h"

namespace fusediff::cuda {

void check_cuda(cudaError_t error, const char* call) {
  if (error != cudaSuccess) {
    cudaGetLastError();  // told here; the next launch must not be blamed for it
    kit::fail(call, ": ", cudaGetErrorString(error), " (", cudaGetErrorName(error), ")");
  }
}

DeviceContext::DeviceContext(std::string_view options) {
  while (!options.empty()) {
    const size_t comma = options.find(',');
    const std::string_view option = options.substr(0, comma);
    const size_t equals = option.find('=');
    kit::require(equals != option.npos, "option \"", option,
                 "\" has no value: device=N, stream=per_thread|shared|default");
    read_option(option.substr(0, equals), option.substr(equals + 1));
    options = comma == options.npos ? "" : options.substr(comma + 1);
  }
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess || devices == 0) {
    cudaGetLastError();
    kit::fail("no CUDA device: ", error == cudaSuccess ? "the driver lists none" : cudaGetErrorString(error));
  }
  kit::require(device_ < devices, "option device=", device_, ": there are ", devices, " devices, from 0");
  use_device();
  if (shared_) {
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
}

void DeviceContext::read_option(std::string_view key, std::string_view value) {
  if (key == "device") {
    const char* end = value.data() + value.size();
    const auto [rest, error] = std::from_chars(value.data(), end, device_);
    kit::require(error == std::errc() && rest == end && device_ >= 0, "option device=", value, ": not a number from 0");
  } else if (key == "stream") {
    kit::require(value == "per_thread" || value == "shared" || value == "default", "option stream=", value,
                 ": not per_thread, shared or default");
    shared_ = value == "shared";
    stream_ = value == "default" ? cudaStreamLegacy : cudaStreamPerThread;
  } else {
    kit::reject("unknown option \"", key, "\": device=N, stream=per_thread|shared|default");
  }
}

DeviceContext::~DeviceContext() {
  if (shared_) {
    cudaSetDevice(device_);
    cudaStreamDestroy(stream_);
  }
}

void DeviceContext::use_device() const { check_cuda(cudaSetDevice(device_), "cudaSetDevice"); }

DeviceStream DeviceContext::stream() const {
  use_device();
  return DeviceStream(stream_);
}

// An event, so that a call on a shared stream waits for its own work and not for what others launch behind it.
void DeviceContext::finish() const {
  struct Event {
    cudaEvent_t event = nullptr;
    ~Event() {
      if (event != nullptr) {
        cudaEventDestroy(event);
      }
    }
  } done;
  check_cuda(cudaEventCreateWithFlags(&done.event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  check_cuda(cudaEventRecord(done.event, stream_), "cudaEventRecord");
  check_cuda(cudaEventSynchronize(done.event), "a kernel");
}

void DeviceContext::abandon() const noexcept {
  cudaStreamSynchronize(stream_);
  cudaGetLastError();
}

void* DeviceContext::alloc(size_t bytes) const {
  use_device();
  void* memory = nullptr;
  check_cuda(cudaMalloc(&memory, bytes), "cudaMalloc");
  return memory;
}

void DeviceContext::release(void* memory) const {
  cudaSetDevice(device_);
  cudaFree(memory);
  cudaGetLastError();
}

void DeviceContext::write(void* memory, const void* host, size_t bytes) const {
  use_device();
  check_cuda(cudaMemcpyAsync(memory, host, bytes, cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync to the device");
  check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

void DeviceContext::read(void* host, const void* memory, size_t bytes) const {
  use_device();
  check_cuda(cudaMemcpyAsync(host, memory, bytes, cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync from the device");
  check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

}  // namespace fusediff::cuda
