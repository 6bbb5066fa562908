// Loading of the CANN libraries. Nothing is called here but aclInit, once for each set of libraries.
#include "aclnn/library.h"

#include <dlfcn.h>

#include <cctype>

#include "kit/failure.h"

namespace fusediff::aclnn {
namespace {

// In the order in which they need each other.
constexpr const char* kNames[] = {"libascendcl.so", "libnnopbase.so", "libopapi.so"};

void* open_one(const std::string& folder, const char* name) {
  const std::string file = folder.empty() ? name : folder + "/" + name;
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    kit::fail(why == nullptr ? file.c_str() : why,
              "; name the folder of the CANN libraries with library_path=DIR or LD_LIBRARY_PATH");
  }
  return handle;
}

}  // namespace

Library& Library::of(const std::string& folder) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Library>> opened;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Library>& one = opened[folder];
  if (one == nullptr) {
    one.reset(new Library(folder));
  }
  return *one;
}

Library::Library(const std::string& folder) {
  for (const char* name : kNames) {
    handles_.push_back(open_one(folder, name));
  }
  const auto get = [this](auto& to, const char* name) {
    to = function<std::remove_pointer_t<std::remove_reference_t<decltype(to)>>>(name);
  };
  get(set_device, "aclrtSetDevice");
  get(create_context, "aclrtCreateContext");
  get(destroy_context, "aclrtDestroyContext");
  get(set_current_context, "aclrtSetCurrentContext");
  get(create_stream, "aclrtCreateStream");
  get(destroy_stream, "aclrtDestroyStream");
  get(synchronize_stream, "aclrtSynchronizeStream");
  get(malloc, "aclrtMalloc");
  get(free, "aclrtFree");
  get(memcpy, "aclrtMemcpy");
  get(create_tensor, "aclCreateTensor");
  get(destroy_tensor, "aclDestroyTensor");
  get(create_scalar, "aclCreateScalar");
  get(destroy_scalar, "aclDestroyScalar");
  get(create_int_array, "aclCreateIntArray");
  get(destroy_int_array, "aclDestroyIntArray");
  make_repeatable = optional<int(aclOpExecutor*)>("aclSetAclOpExecutorRepeatable");
  destroy_executor = optional<int(aclOpExecutor*)>("aclDestroyAclOpExecutor");
  const int code = function<int(const char*)>("aclInit")(nullptr);
  if (code != kRepeatInitialize) {
    check(*this, code, "aclInit");
  }
}

void* Library::find(std::string_view name, bool needed) {
  const std::lock_guard lock(mutex_);
  const auto known = found_.find(name);
  if (known != found_.end()) {
    return known->second;
  }
  const std::string text(name);
  void* symbol = nullptr;
  for (auto handle = handles_.rbegin(); handle != handles_.rend() && symbol == nullptr; ++handle) {
    symbol = dlsym(*handle, text.c_str());
  }
  if (symbol == nullptr && needed) {
    kit::fail("none of the CANN libraries has ", name);
  }
  return found_[text] = symbol;
}

std::string Library::recent_message() {
  const auto ask = optional<const char*()>("aclGetRecentErrMsg");
  const char* text = ask == nullptr ? nullptr : ask();
  std::string line;
  for (const char* at = text == nullptr ? "" : text; *at != '\0'; ++at) {
    const bool space = std::isspace(static_cast<unsigned char>(*at)) != 0;
    if (!space) {
      line += *at;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  return line;
}

void check(Library& library, int code, std::string_view name) {
  if (code == kSuccess) {
    return;
  }
  const std::string said = library.recent_message();
  const std::string line = kit::line_of(name, " returned ", code, said.empty() ? "" : ": ", said);
  if (code == kParamNullptr || code == kParamInvalid || code == kInnerTiling) {
    kit::reject(line);
  }
  kit::fail(line);
}

}  // namespace fusediff::aclnn
