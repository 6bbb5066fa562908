// Memory as shared virtual memory.
#include "kit/failure.h"
#include "opencl/memory.h"

namespace fusediff::opencl {
namespace {

class PassedAddresses : public PassedPointers {
 public:
  void pass(cl_kernel kernel, cl_uint index, void* pointer) override {
    succeed(clSetKernelArgSVMPointer(kernel, index, pointer), "clSetKernelArgSVMPointer");
  }
  void bring_back() override {}
};

class SvmMemory : public Memory {
 public:
  explicit SvmMemory(Device& device) : device_(device) {}

  void* alloc(size_t bytes) override {
    void* memory = clSVMAlloc(device_.context(), CL_MEM_READ_WRITE, bytes, 0);
    if (memory == nullptr) kit::fail("clSVMAlloc of ", static_cast<int64_t>(bytes), " bytes gives none");
    return memory;
  }
  void release(void* memory) override { clSVMFree(device_.context(), memory); }

  void write(cl_command_queue queue, void* memory, const void* host, size_t bytes) override {
    succeed(clEnqueueSVMMemcpy(queue, CL_TRUE, memory, host, bytes, 0, nullptr, nullptr), "clEnqueueSVMMemcpy");
  }
  void read(cl_command_queue queue, void* host, const void* memory, size_t bytes) override {
    succeed(clEnqueueSVMMemcpy(queue, CL_TRUE, host, memory, bytes, 0, nullptr, nullptr), "clEnqueueSVMMemcpy");
  }
  std::unique_ptr<PassedPointers> begin(cl_command_queue) override { return std::make_unique<PassedAddresses>(); }

 private:
  Device& device_;
};

}  // namespace

std::unique_ptr<Memory> make_svm_memory(Device& device) { return std::make_unique<SvmMemory>(device); }

}  // namespace fusediff::opencl
