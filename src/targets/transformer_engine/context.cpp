// See context.h.
#include "transformer_engine/context.h"

#include <charconv>

#include "kit/failure.h"

namespace fusediff::te {
namespace {

constexpr std::string_view kOptions = "library=PATH, cudart=PATH, device=N";

int number_from(std::string_view value) {
  int number = -1;
  const char* end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, number);
  kit::require(error == std::errc() && rest == end && number >= 0, "option device=", value, ": not a number from 0");
  return number;
}

}  // namespace

Context::Context(std::string_view options) {
  std::string engine, runtime;
  while (!options.empty()) {
    const size_t comma = options.find(',');
    const std::string_view option = options.substr(0, comma);
    const size_t equals = option.find('=');
    kit::require(equals != option.npos, "option \"", option, "\" has no value: ", kOptions);
    const std::string_view key = option.substr(0, equals), value = option.substr(equals + 1);
    if (key == "library") {
      engine = value;
    } else if (key == "cudart") {
      runtime = value;
    } else if (key == "device") {
      device_ = number_from(value);
    } else {
      kit::reject("unknown option \"", key, "\": ", kOptions);
    }
    options = comma == options.npos ? "" : options.substr(comma + 1);
  }
  library_ = std::make_shared<const Library>(engine, runtime);
  const Cuda& cuda = library_->cuda();
  int devices = 0;
  const int error = cuda.get_device_count(&devices);
  if (error != kCudaSuccess || devices == 0) {
    cuda.get_last_error();
    kit::fail("no CUDA device: ", error == kCudaSuccess ? "the driver lists none" : cuda.get_error_string(error));
  }
  kit::require(device_ < devices, "option device=", device_, ": there are ", devices, " devices, from 0");
}

void Context::use_device() const { library_->check(library_->cuda().set_device(device_), "cudaSetDevice"); }

void Context::finish() const {
  library_->check(library_->cuda().get_last_error(), "launch of a kernel");
  library_->check(library_->cuda().stream_synchronize(stream()), "a kernel");
}

void* Context::alloc(size_t bytes) const {
  use_device();
  void* memory = nullptr;
  library_->check(library_->cuda().malloc(&memory, bytes), "cudaMalloc");
  return memory;
}

void Context::release(void* memory) const {
  library_->cuda().set_device(device_);
  library_->cuda().free(memory);
}

void Context::write(void* memory, const void* host, size_t bytes) const {
  use_device();
  library_->check(library_->cuda().memcpy_async(memory, host, bytes, kHostToDevice, stream()), "cudaMemcpyAsync");
  library_->check(library_->cuda().stream_synchronize(stream()), "cudaStreamSynchronize");
}

void Context::read(void* host, const void* memory, size_t bytes) const {
  use_device();
  library_->check(library_->cuda().memcpy_async(host, memory, bytes, kDeviceToHost, stream()), "cudaMemcpyAsync");
  library_->check(library_->cuda().stream_synchronize(stream()), "cudaStreamSynchronize");
}

}  // namespace fusediff::te
