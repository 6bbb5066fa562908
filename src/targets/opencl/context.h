// One context of the target: a device, its memory, one queue or one for each thread, and the scratch memory that calls
// share where the options say so. Safe to use from several threads, scratch=shared apart, which is there to be found.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "fusediff_target.h"
#include "opencl/description.h"
#include "opencl/memory.h"
#include "opencl/options.h"

namespace fusediff::opencl {

class Context {
 public:
  // `description` outlives the context. Throws where the options are wrong or there is no such device.
  Context(const Description& description, std::string_view options);
  ~Context();

  size_t workspace_bytes(const fusediff_call& call) const;
  // Returns when the outputs are complete.
  void run(const fusediff_call& call);

  void* alloc(size_t bytes) { return memory_->alloc(bytes); }
  void release(void* memory) { memory_->release(memory); }
  void write(void* memory, const void* host, size_t bytes);
  void read(void* host, const void* memory, size_t bytes);

 private:
  cl_command_queue queue();
  std::byte* shared_scratch(size_t bytes);

  const Description& description_;
  Options options_;
  Device& device_;
  std::unique_ptr<Memory> memory_;
  std::mutex mutex_;
  std::map<std::thread::id, Queue> queues_;
  struct Scratch {
    std::byte* memory;
    size_t bytes;
  };
  std::vector<Scratch> shared_;  // the last is the largest; earlier ones may be in use
};

}  // namespace fusediff::opencl
