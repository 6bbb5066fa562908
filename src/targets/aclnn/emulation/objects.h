// The emulation of CANN's C ABI on the CPU, for tests of the target aclnn: what stands behind its opaque types. Device
// addresses are host addresses with a bit set, so that whoever reads one on the host is stopped by the processor. Work
// is done in the second stage, on the calling thread. It promises nothing about speed and knows no device limits.
// Compiled twice: with PLANTED_CLEAN as the correct edition, without it as the faulty one (see emulation/README.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "aclnn/acl.h"
#include "aclnn/emulation/scratch.h"
#include "kit/target.h"

#define ACL_ENTRY extern "C" __attribute__((visibility("default")))

struct aclTensor {
  std::vector<int64_t> shape, stride;
  int type = 0;
  std::byte* data = nullptr;  // on the host

  int64_t count() const;
  // The dtype of fusediff; REJECTED where there is none.
  int32_t dtype() const;
};

struct aclScalar {
  double value = 0;
};

struct aclIntArray {
  std::vector<int64_t> values;
};

namespace fusediff::emulated {

using Tensor = ::aclTensor;

// What an AscendCL context owns beside streams.
struct Context {
  Scratch scratch;
};

struct Stream {
  Context* context;
};

// The second stage of a planned call: workspace in host memory.
using Work = std::function<void(void* workspace, Context& context)>;

struct Plan {
  Work work;
  size_t workspace_bytes = 0;
};

// The first stage of `name`: 161001 where a needed tensor or result is null; where `make` throws, `rejected` for a call
// that breaks a rule and 161002 for any other; else 0 with an executor that serves once.
int plan(const char* name, uint64_t* bytes, aclOpExecutor** executor, std::initializer_list<const void*> needed,
         const std::function<Plan()>& make, int rejected = aclnn::kParamInvalid);

// The second stage.
int execute(const char* name, void* workspace, uint64_t bytes, aclOpExecutor* executor, void* stream);

// What aclGetRecentErrMsg says next on this thread.
void note(std::string_view text);

// Executors that were made and neither run nor given back.
size_t live_executors();

std::byte* host_address(const void* device);

}  // namespace fusediff::emulated

// The second stage of an operator: the same for all.
#define ACLNN_SECOND_STAGE(name)                                                               \
  ACL_ENTRY int name(void* workspace, uint64_t bytes, aclOpExecutor* executor, void* stream) { \
    return ::fusediff::emulated::execute(#name, workspace, bytes, executor, stream);           \
  }
