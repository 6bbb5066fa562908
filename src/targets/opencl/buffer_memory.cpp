// Memory as cl_mem buffers. A sub-buffer begins at multiples of the device's alignment, a tensor anywhere: where it
// does not fit, the kernels work on a copy of the whole block that is shifted until it does, and which is copied back.
// What stands around a tensor goes with it, so that a kernel that writes outside is seen as with memory of its own.
#include <sys/mman.h>

#include <map>
#include <mutex>
#include <vector>

#include "kit/failure.h"
#include "opencl/memory.h"

namespace fusediff::opencl {
namespace {

constexpr size_t kPage = 4096;

struct Block {
  Buffer buffer;
  void* range = nullptr;
  size_t bytes = 0;
};

// A block and the distance of an address into it.
struct Place {
  const Block* block = nullptr;
  size_t offset = 0;
};

// Blocks by the address range that stands for them; no byte of a range can be touched.
class Ranges {
 public:
  ~Ranges() {
    for (const auto& [address, block] : blocks_) ::munmap(block.range, block.bytes);
  }

  void* add(Buffer buffer, size_t bytes) {
    void* range = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) kit::fail("no address range of ", static_cast<int64_t>(bytes), " bytes is left");
    const std::lock_guard lock(mutex_);
    blocks_[reinterpret_cast<uintptr_t>(range)] = {std::move(buffer), range, bytes};
    return range;
  }

  void remove(void* range) {
    const std::lock_guard lock(mutex_);
    const auto block = blocks_.find(reinterpret_cast<uintptr_t>(range));
    if (block == blocks_.end()) kit::fail("release of memory that is not of this context");
    ::munmap(range, block->second.bytes);
    blocks_.erase(block);
  }

  Place find(const void* pointer) {
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    const std::lock_guard lock(mutex_);
    auto block = blocks_.upper_bound(address);
    if (block == blocks_.begin() || address - (--block)->first >= block->second.bytes) {
      kit::fail("an address is not in memory of this context");
    }
    return {&block->second, address - block->first};
  }

 private:
  std::mutex mutex_;
  std::map<uintptr_t, Block> blocks_;
};

Buffer make_buffer(Device& device, size_t bytes) {
  cl_int code = CL_SUCCESS;
  Buffer made(clCreateBuffer(device.context(), CL_MEM_READ_WRITE, bytes, nullptr, &code));
  succeed(code, "clCreateBuffer");
  return made;
}

class PassedBuffers : public PassedPointers {
 public:
  PassedBuffers(Device& device, Ranges& ranges, cl_command_queue queue)
      : device_(device), ranges_(ranges), queue_(queue) {}

  void pass(cl_kernel kernel, cl_uint index, void* pointer) override {
    cl_mem memory = nullptr;
    if (pointer != nullptr) memory = from(pointer);
    succeed(clSetKernelArg(kernel, index, sizeof(cl_mem), &memory), "clSetKernelArg");
  }

  void bring_back() override {
    for (const Copy& copy : copies_) {
      succeed(clEnqueueCopyBuffer(queue_, copy.buffer.get(), copy.block->buffer.get(), copy.shift, 0, copy.block->bytes,
                                  0, nullptr, nullptr),
              "clEnqueueCopyBuffer");
    }
  }

 private:
  struct Copy {
    const Block* block;
    size_t shift;
    Buffer buffer;
  };

  // The buffer that begins at `pointer`.
  cl_mem from(void* pointer) {
    Buffer& known = parts_[pointer];
    if (known != nullptr) return known.get();
    const Place place = ranges_.find(pointer);
    const size_t align = device_.base_align();
    const size_t shift = (align - place.offset % align) % align;
    cl_mem whole = shift == 0 ? place.block->buffer.get() : shifted(*place.block, shift);
    cl_buffer_region region{place.offset + shift, place.block->bytes - place.offset};
    cl_int code = CL_SUCCESS;
    known.reset(clCreateSubBuffer(whole, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &code));
    succeed(code, "clCreateSubBuffer");
    return known.get();
  }

  cl_mem shifted(const Block& block, size_t shift) {
    for (const Copy& copy : copies_) {
      if (copy.block != &block) continue;
      if (copy.shift != shift) kit::fail("two tensors in one block are aligned differently");
      return copy.buffer.get();
    }
    Buffer buffer = make_buffer(device_, block.bytes + shift);
    succeed(clEnqueueCopyBuffer(queue_, block.buffer.get(), buffer.get(), 0, shift, block.bytes, 0, nullptr, nullptr),
            "clEnqueueCopyBuffer");
    copies_.push_back({&block, shift, std::move(buffer)});
    return copies_.back().buffer.get();
  }

  Device& device_;
  Ranges& ranges_;
  cl_command_queue queue_;
  std::vector<Copy> copies_;
  std::map<void*, Buffer> parts_;  // released before what they are parts of
};

class BufferMemory : public Memory {
 public:
  explicit BufferMemory(Device& device) : device_(device) {}

  void* alloc(size_t bytes) override {
    const size_t whole = (bytes + kPage - 1) / kPage * kPage;
    return ranges_.add(make_buffer(device_, whole), whole);
  }
  void release(void* memory) override { ranges_.remove(memory); }

  void write(cl_command_queue queue, void* memory, const void* host, size_t bytes) override {
    const Place place = ranges_.find(memory);
    succeed(
        clEnqueueWriteBuffer(queue, place.block->buffer.get(), CL_TRUE, place.offset, bytes, host, 0, nullptr, nullptr),
        "clEnqueueWriteBuffer");
  }
  void read(cl_command_queue queue, void* host, const void* memory, size_t bytes) override {
    const Place place = ranges_.find(memory);
    succeed(
        clEnqueueReadBuffer(queue, place.block->buffer.get(), CL_TRUE, place.offset, bytes, host, 0, nullptr, nullptr),
        "clEnqueueReadBuffer");
  }
  std::unique_ptr<PassedPointers> begin(cl_command_queue queue) override {
    return std::make_unique<PassedBuffers>(device_, ranges_, queue);
  }

 private:
  Device& device_;
  Ranges ranges_;
};

}  // namespace

std::unique_ptr<Memory> make_buffer_memory(Device& device) { return std::make_unique<BufferMemory>(device); }

}  // namespace fusediff::opencl
