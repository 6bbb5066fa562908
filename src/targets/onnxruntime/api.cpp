#include "onnxruntime/api.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>

#include "kit/failure.h"

namespace fusediff::onnxruntime {
namespace {

constexpr char kVariable[] = "FUSEDIFF_ONNXRUNTIME";

// Positions in the table of functions. All of them are of its first version.
enum Position : size_t {
  kGetErrorMessage = 2,
  kCreateEnv = 3,
  kCreateSessionFromArray = 8,
  kRun = 9,
  kCreateSessionOptions = 10,
  kSetOptimizedModelFilePath = 11,
  kSetSessionGraphOptimizationLevel = 23,
  kSetIntraOpNumThreads = 24,
  kCreateTensorWithDataAsOrtValue = 49,
  kCreateCpuMemoryInfo = 69,
  kReleaseStatus = 93,
  kReleaseSession = 95,
  kReleaseValue = 96,
  kReleaseSessionOptions = 100
};

constexpr uint32_t kTableVersion = 1;
constexpr int kErrorsOnly = 3;
constexpr int kDeviceAllocator = 0;
constexpr int kDefaultMemory = 0;

using Function = void (*)();

struct Base {
  const Function* (*get_api)(uint32_t version);
  const char* (*get_version)();
};

template <class F>
void take(F& member, const Function* table, Position position) {
  member = reinterpret_cast<F>(table[position]);
}

Api read_table(const Function* table) {
  Api api{};
  take(api.get_error_message, table, kGetErrorMessage);
  take(api.create_env, table, kCreateEnv);
  take(api.create_session_from_array, table, kCreateSessionFromArray);
  take(api.run, table, kRun);
  take(api.create_session_options, table, kCreateSessionOptions);
  take(api.set_optimized_model_file, table, kSetOptimizedModelFilePath);
  take(api.set_optimization_level, table, kSetSessionGraphOptimizationLevel);
  take(api.set_intra_op_threads, table, kSetIntraOpNumThreads);
  take(api.create_tensor_with_data, table, kCreateTensorWithDataAsOrtValue);
  take(api.create_cpu_memory_info, table, kCreateCpuMemoryInfo);
  take(api.release_status, table, kReleaseStatus);
  take(api.release_session, table, kReleaseSession);
  take(api.release_value, table, kReleaseValue);
  take(api.release_session_options, table, kReleaseSessionOptions);
  return api;
}

}  // namespace

const Library& Library::load(const std::string& path) {
  // Never destroyed: threads of the library may outlive static objects of this one.
  static auto& all = *new std::map<std::string, std::unique_ptr<Library>>();
  static std::mutex mutex;
  std::string file = path;
  if (file.empty()) {
    const char* named = std::getenv(kVariable);
    if (named == nullptr || *named == '\0') {
      kit::fail("no libonnxruntime is named: give --target-option library=FILE, or set ", kVariable);
    }
    file = named;
  }
  const std::lock_guard lock(mutex);
  std::unique_ptr<Library>& here = all[file];
  if (here == nullptr) here.reset(new Library(file));
  return *here;
}

Library::Library(const std::string& path) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    kit::fail("libonnxruntime cannot be loaded: ", why == nullptr ? "no reason is given" : why);
  }
  const auto get_base = reinterpret_cast<const Base* (*)()>(::dlsym(handle, "OrtGetApiBase"));
  if (get_base == nullptr) {
    kit::fail(std::string_view(path), " is no libonnxruntime: it has no OrtGetApiBase");
  }
  const Base* base = get_base();
  const Function* table = base->get_api(kTableVersion);
  if (table == nullptr) {
    kit::fail(std::string_view(path), " does not offer version ", static_cast<int>(kTableVersion), " of its table");
  }
  api_ = read_table(table);
  version_ = base->get_version();
  succeed(api_.create_env(kErrorsOnly, "fusediff", &env_), "CreateEnv");
  succeed(api_.create_cpu_memory_info(kDeviceAllocator, kDefaultMemory, &cpu_), "CreateCpuMemoryInfo");
}

void Library::succeed(Status* status, const char* what) const {
  if (status == nullptr) return;
  std::string said = api_.get_error_message(status);
  api_.release_status(status);
  std::replace(said.begin(), said.end(), '\n', ' ');
  kit::fail(what, ": ", std::string_view(said));
}

}  // namespace fusediff::onnxruntime
