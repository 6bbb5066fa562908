// The context of the target: a device of one set of libraries, an AscendCL context on it, and its streams. Calls from
// many threads share it. It knows no operator.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "aclnn/library.h"

namespace fusediff::aclnn {

class Device {
 public:
  // Options, separated by commas: library_path=DIR, device=N, context=own|shared, stream=shared|per_thread. REJECTED
  // for any other, FAILED where the libraries or the device are not to be had.
  explicit Device(std::string_view options);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  Library& library() const { return *library_; }

  // Makes the context the calling thread's. Before any other call on it from this thread.
  void bind();
  // The stream of the calling thread; bind() first.
  AclStream stream();

 private:
  void create();

  Library* library_ = nullptr;
  std::string folder_;
  int32_t device_ = 0;
  bool shared_context_ = false;
  bool stream_per_thread_ = false;
  AclContext context_ = nullptr;
  AclStream stream_ = nullptr;
  std::mutex mutex_;
  std::map<std::thread::id, AclStream> streams_;
};

}  // namespace fusediff::aclnn
