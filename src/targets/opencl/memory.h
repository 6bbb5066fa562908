// Device memory of one context, given out as addresses that may be offset by the caller, as the ABI wants them. Two
// kinds: shared virtual memory, whose addresses the device understands; and buffers, where an address out of a reserved
// range stands for a cl_mem and a distance into it. Not here: who may use what at the same time.
#pragma once

#include <cstddef>
#include <memory>

#include "opencl/device.h"

namespace fusediff::opencl {

// The pointers of one call. Lives until its commands are done.
class PassedPointers {
 public:
  virtual ~PassedPointers() = default;
  // Sets a kernel argument to what lies at `pointer`; null is null.
  virtual void pass(cl_kernel kernel, cl_uint index, void* pointer) = 0;
  // Enqueues what has to be done after the last kernel.
  virtual void bring_back() = 0;
};

class Memory {
 public:
  virtual ~Memory() = default;
  // All throw kit::Failure (FAILED). write and read return when the bytes are there.
  virtual void* alloc(size_t bytes) = 0;
  virtual void release(void* memory) = 0;
  virtual void write(cl_command_queue queue, void* memory, const void* host, size_t bytes) = 0;
  virtual void read(cl_command_queue queue, void* host, const void* memory, size_t bytes) = 0;
  virtual std::unique_ptr<PassedPointers> begin(cl_command_queue queue) = 0;
};

std::unique_ptr<Memory> make_svm_memory(Device& device);
std::unique_ptr<Memory> make_buffer_memory(Device& device);

}  // namespace fusediff::opencl
