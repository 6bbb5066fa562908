// A context of the target `transformer_engine`: the loaded libraries, a device, its memory. No operator stands here.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "transformer_engine/library.h"

namespace fusediff::te {

class Context {
 public:
  // Options, comma separated: library=PATH, cudart=PATH, device=N (0). FAILED, in one line, where a library or a device
  // is missing.
  explicit Context(std::string_view options);

  const Library& library() const { return *library_; }
  // The device of the context is the calling thread's.
  void use_device() const;
  Stream stream() const { return per_thread_stream(); }
  // Returns when the thread's work is done; FAILED where it broke.
  void finish() const;

  void* alloc(size_t bytes) const;
  void release(void* memory) const;
  void write(void* memory, const void* host, size_t bytes) const;
  void read(void* host, const void* memory, size_t bytes) const;

 private:
  std::shared_ptr<const Library> library_;
  int device_ = 0;
};

}  // namespace fusediff::te
