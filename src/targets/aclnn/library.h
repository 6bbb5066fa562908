// The three CANN libraries, opened once a process for each folder and never closed, and their functions by name. It
// knows no operator and no device.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "aclnn/acl.h"

namespace fusediff::aclnn {

class Library {
 public:
  // From `folder`, or, where that is "", by the loader's own search (LD_LIBRARY_PATH). Failures name the library.
  static Library& of(const std::string& folder);

  // A function of any of the libraries; FAILED where none has it.
  template <class F>
  F* function(std::string_view name) {
    return reinterpret_cast<F*>(find(name, true));
  }
  // As above, null where none has it.
  template <class F>
  F* optional(std::string_view name) {
    return reinterpret_cast<F*>(find(name, false));
  }

  // What the library last said on this thread, in one line; "" where it says nothing.
  std::string recent_message();

  int (*set_device)(int32_t device);
  int (*create_context)(AclContext* context, int32_t device);
  int (*destroy_context)(AclContext context);
  int (*set_current_context)(AclContext context);
  int (*create_stream)(AclStream* stream);
  int (*destroy_stream)(AclStream stream);
  int (*synchronize_stream)(AclStream stream);
  int (*malloc)(void** memory, size_t bytes, int policy);
  int (*free)(void* memory);
  int (*memcpy)(void* to, size_t room, const void* from, size_t bytes, int kind);
  aclTensor* (*create_tensor)(const int64_t* shape, uint64_t rank, int type, const int64_t* stride, int64_t offset,
                              int format, const int64_t* storage_shape, uint64_t storage_rank, void* data);
  int (*destroy_tensor)(const aclTensor* tensor);
  aclScalar* (*create_scalar)(void* value, int type);
  int (*destroy_scalar)(const aclScalar* scalar);
  aclIntArray* (*create_int_array)(const int64_t* values, uint64_t count);
  int (*destroy_int_array)(const aclIntArray* array);
  int (*make_repeatable)(aclOpExecutor* executor);  // null where the library has none
  int (*destroy_executor)(aclOpExecutor* executor);

 private:
  explicit Library(const std::string& folder);
  void* find(std::string_view name, bool needed);

  std::vector<void*> handles_;
  std::mutex mutex_;
  std::map<std::string, void*, std::less<>> found_;
};

// FAILED unless `code` is success: "NAME returned CODE: what the library says". REJECTED for codes that the
// documentation gives to calls that break a rule of an operator.
void check(Library& library, int code, std::string_view name);

}  // namespace fusediff::aclnn
