#include "opencl/context.h"

#include <algorithm>

#include "kit/failure.h"
#include "opencl/launch.h"

namespace fusediff::opencl {
namespace {

std::unique_ptr<Memory> memory_of(Device& device, Options::Memory wanted) {
  if (wanted == Options::Memory::kSvm && !device.has_svm()) {
    kit::reject("option memory is svm, which the device does not have: use memory=buffer");
  }
  const bool svm = wanted == Options::Memory::kSvm || (wanted == Options::Memory::kDefault && device.has_svm());
  return svm ? make_svm_memory(device) : make_buffer_memory(device);
}

// The alignment of scratch arrays: the ABI's for workspace, and what a sub-buffer needs.
size_t scratch_align(const Device& device) { return std::max<size_t>(64, device.base_align()); }

}  // namespace

Context::Context(const Description& description, std::string_view options)
    : description_(description),
      options_(parse_options(options)),
      device_(Device::get(options_.platform, options_.device)),
      memory_(memory_of(device_, options_.memory)) {}

Context::~Context() {
  for (const auto& [thread, queue] : queues_) clFinish(queue.get());
  for (const Scratch& one : shared_) memory_->release(one.memory);
}

cl_command_queue Context::queue() {
  const std::lock_guard lock(mutex_);
  Queue& here = queues_[options_.queue_per_thread ? std::this_thread::get_id() : std::thread::id()];
  if (here == nullptr) {
    cl_int code = CL_SUCCESS;
    here.reset(clCreateCommandQueueWithProperties(device_.context(), device_.id(), nullptr, &code));
    succeed(code, "clCreateCommandQueueWithProperties");
  }
  return here.get();
}

std::byte* Context::shared_scratch(size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (shared_.empty() || shared_.back().bytes < bytes) {
    shared_.push_back({static_cast<std::byte*>(memory_->alloc(bytes)), bytes});
  }
  return shared_.back().memory;
}

size_t Context::workspace_bytes(const fusediff_call& call) const {
  return options_.shared_scratch ? 0 : Launch(description_, call).scratch_bytes(scratch_align(device_));
}

void Context::run(const fusediff_call& call) {
  const Launch launch(description_, call);
  if (launch.uses_f64() && !device_.has_f64()) kit::unsupported("the device has no double");
  const std::string& kernels = options_.kernels.empty() ? description_.kernels : options_.kernels;
  Program& program = device_.program(kernels, options_.build + launch.macros(), options_.contract);
  const size_t align = scratch_align(device_);
  const size_t needed = launch.scratch_bytes(align);
  auto* scratch = static_cast<std::byte*>(call.workspace);
  if (options_.shared_scratch && needed != 0) {
    scratch = shared_scratch(needed);
  } else {
    kit::require(needed <= call.workspace_size, "the workspace is too small");
  }
  launch.run({program, *memory_, queue(), scratch, align, options_.wait_each_step});
}

void Context::write(void* memory, const void* host, size_t bytes) {
  if (bytes != 0) memory_->write(queue(), memory, host, bytes);
}

void Context::read(void* host, const void* memory, size_t bytes) {
  if (bytes != 0) memory_->read(queue(), host, memory, bytes);
}

}  // namespace fusediff::opencl
