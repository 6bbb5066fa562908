// Contexts, streams, memory, tensors and executors of the emulation. No operator stands here.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>

#include "aclnn/emulation/objects.h"

struct aclOpExecutor {
  const char* name;
  fusediff::emulated::Plan plan;
  bool repeatable = false;
};

namespace fusediff::emulated {
namespace {

using namespace aclnn;

constexpr int kParamError = 107000;
constexpr int kContextNull = 107002;
constexpr int kBadAlloc = 207001;
constexpr int kInnerError = 561000;
constexpr uintptr_t kDeviceBit = uintptr_t{1} << 62;

thread_local std::string message;
thread_local Context* current = nullptr;

struct Executors {
  std::mutex mutex;
  std::unordered_set<aclOpExecutor*> live;
};

Executors& executors() {
  static Executors one;
  return one;
}

bool is_device(const void* address) { return (reinterpret_cast<uintptr_t>(address) & kDeviceBit) != 0; }

bool known(aclOpExecutor* executor, bool take) {
  Executors& all = executors();
  const std::lock_guard lock(all.mutex);
  return take ? all.live.erase(executor) == 1 : all.live.count(executor) == 1;
}

int failed(const char* name, int code, const char* text) {
  note(std::string(name) + ": " + text);
  return code;
}

}  // namespace

void note(std::string_view text) { message = text; }

size_t live_executors() {
  Executors& all = executors();
  const std::lock_guard lock(all.mutex);
  return all.live.size();
}

std::byte* host_address(const void* device) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(device) & ~kDeviceBit);
}

int plan(const char* name, uint64_t* bytes, aclOpExecutor** executor, std::initializer_list<const void*> needed,
         const std::function<Plan()>& make, int rejected) {
  for (const void* one : needed) {
    if (one == nullptr) {
      return failed(name, kParamNullptr, "a tensor that is needed is null");
    }
  }
  if (bytes == nullptr || executor == nullptr) {
    return failed(name, kParamNullptr, "workspaceSize or executor is null");
  }
  try {
    std::unique_ptr<aclOpExecutor> made(new aclOpExecutor{name, make(), false});
    *bytes = made->plan.workspace_bytes;
    *executor = made.get();
    Executors& all = executors();
    const std::lock_guard lock(all.mutex);
    all.live.insert(made.release());
    return kSuccess;
  } catch (const kit::Failure& failure) {
    return failed(name, failure.status() == FUSEDIFF_REJECTED ? rejected : kParamInvalid, failure.what());
  } catch (const std::exception& failure) {
    return failed(name, kParamInvalid, failure.what());
  }
}

int execute(const char* name, void* workspace, uint64_t bytes, aclOpExecutor* executor, void* stream) {
  if (stream == nullptr || current == nullptr) {
    return failed(name, kContextNull, "no stream or no context on this thread");
  }
  if (!known(executor, false)) {
    return failed(name, kInnerError, "the executor was used before, or is none");
  }
  const bool repeatable = executor->repeatable;
  if (executor->name != std::string_view(name) || bytes < executor->plan.workspace_bytes ||
      (bytes > 0 && !is_device(workspace))) {
    return failed(name, kInnerError, "the executor or the workspace is that of another call");
  }
  int code = kSuccess;
  try {
    executor->plan.work(bytes == 0 ? nullptr : host_address(workspace), *static_cast<Stream*>(stream)->context);
  } catch (const std::exception& failure) {
    code = failed(name, kInnerError, failure.what());
  }
  if (!repeatable && known(executor, true)) {
    delete executor;
  }
  return code;
}

}  // namespace fusediff::emulated

int64_t aclTensor::count() const {
  int64_t n = 1;
  for (const int64_t size : shape) {
    n *= size;
  }
  return n;
}

int32_t aclTensor::dtype() const {
  using namespace fusediff;
  switch (type) {
    case aclnn::kFloat:
      return FUSEDIFF_F32;
    case aclnn::kFloat16:
      return FUSEDIFF_F16;
    case aclnn::kBfloat16:
      return FUSEDIFF_BF16;
    case aclnn::kInt32:
      return FUSEDIFF_I32;
    case aclnn::kInt64:
      return FUSEDIFF_I64;
    case aclnn::kBool:
      return FUSEDIFF_BOOL;
    default:
      kit::reject("dtype ", type, " is not emulated");
  }
}

using namespace fusediff::emulated;

ACL_ENTRY int aclInit(const char*) {
  static std::once_flag once;
  int code = kRepeatInitialize;
  std::call_once(once, [&] { code = kSuccess; });
  return code;
}

ACL_ENTRY const char* aclGetRecentErrMsg() {
  static thread_local std::string said;
  said.swap(message);
  message.clear();
  return said.empty() ? nullptr : said.c_str();
}

ACL_ENTRY int aclrtSetDevice(int32_t device) {
  return device == 0 ? kSuccess : failed("aclrtSetDevice", kParamError, "there is device 0 alone");
}

ACL_ENTRY int aclrtCreateContext(void** context, int32_t) {
  current = new Context;
  *context = current;
  return kSuccess;
}

ACL_ENTRY int aclrtDestroyContext(void* context) {
  current = current == context ? nullptr : current;
  delete static_cast<Context*>(context);
  return kSuccess;
}

ACL_ENTRY int aclrtSetCurrentContext(void* context) {
  current = static_cast<Context*>(context);
  return kSuccess;
}

ACL_ENTRY int aclrtCreateStream(void** stream) {
  if (current == nullptr) {
    return failed("aclrtCreateStream", kContextNull, "no context on this thread");
  }
  *stream = new Stream{current};
  return kSuccess;
}

ACL_ENTRY int aclrtDestroyStream(void* stream) {
  delete static_cast<Stream*>(stream);
  return kSuccess;
}

ACL_ENTRY int aclrtSynchronizeStream(void* stream) { return stream == nullptr ? kParamError : kSuccess; }

ACL_ENTRY int aclrtMalloc(void** memory, size_t bytes, int) {
  constexpr size_t kAlignment = 512;
  if (current == nullptr) {
    return failed("aclrtMalloc", kContextNull, "no context on this thread");
  }
  void* host = nullptr;
  if (bytes == 0 || posix_memalign(&host, kAlignment, bytes) != 0) {
    return failed("aclrtMalloc", kBadAlloc, "no memory of that size");
  }
  *memory = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(host) | kDeviceBit);
  return kSuccess;
}

ACL_ENTRY int aclrtFree(void* memory) {
  if (!is_device(memory)) {
    return failed("aclrtFree", kParamError, "not an address of the device");
  }
  std::free(host_address(memory));
  return kSuccess;
}

ACL_ENTRY int aclrtMemcpy(void* to, size_t room, const void* from, size_t bytes, int kind) {
  const bool from_host = kind == kHostToDevice;
  if (current == nullptr || bytes > room || is_device(to) != from_host || is_device(from) == from_host) {
    return failed("aclrtMemcpy", kParamError, "no context, no room, or an address on the other side");
  }
  std::memcpy(host_address(to), host_address(from), bytes);
  return kSuccess;
}

ACL_ENTRY aclTensor* aclCreateTensor(const int64_t* shape, uint64_t rank, int type, const int64_t* stride, int64_t,
                                     int format, const int64_t*, uint64_t, void* data) {
  if (format != kFormatNd || (rank > 0 && (shape == nullptr || stride == nullptr))) {
    note("aclCreateTensor: format ND with shape and strides alone is emulated");
    return nullptr;
  }
  return new aclTensor{{shape, shape + rank}, {stride, stride + rank}, type, host_address(data)};
}

ACL_ENTRY int aclDestroyTensor(const aclTensor* tensor) {
  delete tensor;
  return kSuccess;
}

ACL_ENTRY aclScalar* aclCreateScalar(void* value, int type) {
  if (type != kFloat) {
    note("aclCreateScalar: float alone is emulated");
    return nullptr;
  }
  float read = 0;
  std::memcpy(&read, value, sizeof(read));
  return new aclScalar{static_cast<double>(read)};
}

ACL_ENTRY int aclDestroyScalar(const aclScalar* scalar) {
  delete scalar;
  return kSuccess;
}

ACL_ENTRY aclIntArray* aclCreateIntArray(const int64_t* values, uint64_t count) {
  return new aclIntArray{{values, values + count}};
}

ACL_ENTRY int aclDestroyIntArray(const aclIntArray* array) {
  delete array;
  return kSuccess;
}

ACL_ENTRY int aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
  if (!known(executor, false)) {
    return failed("aclSetAclOpExecutorRepeatable", kInnerError, "the executor was used before, or is none");
  }
  executor->repeatable = true;
  return kSuccess;
}

ACL_ENTRY int aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  if (!known(executor, true)) {
    return failed("aclDestroyAclOpExecutor", kInnerError, "the executor was used before, or is none");
  }
  delete executor;
  return kSuccess;
}

// Not of CANN: for tests.
ACL_ENTRY uint64_t aclnn_emulation_live_executors() { return live_executors(); }
