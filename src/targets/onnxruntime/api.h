// A libonnxruntime that the user names, loaded at run time: the members of its C table that are used here, taken by
// their position, which the library promises never to change. No header and no library of ONNX Runtime is needed to
// build. Several libraries may be loaded side by side; each is loaded once a process and stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace fusediff::onnxruntime {

// Objects of the library, known here by address only.
struct Env;
struct Status;
struct Session;
struct SessionOptions;
struct MemoryInfo;
struct Value;

// What GraphOptimizationLevel and OrtAllocatorType, OrtMemType and OrtLoggingLevel are in the C interface.
inline constexpr int kLevelOff = 0;
inline constexpr int kLevelBasic = 1;
inline constexpr int kLevelExtended = 2;
inline constexpr int kLevelAll = 99;

struct Api {
  const char* (*get_error_message)(const Status*);
  Status* (*create_env)(int severity, const char* name, Env**);
  Status* (*create_session_from_array)(const Env*, const void* model, size_t bytes, const SessionOptions*, Session**);
  Status* (*run)(Session*, const void* run_options, const char* const* input_names, const Value* const* inputs,
                 size_t input_count, const char* const* output_names, size_t output_count, Value** outputs);
  Status* (*create_session_options)(SessionOptions**);
  Status* (*set_optimized_model_file)(SessionOptions*, const char* path);
  Status* (*set_optimization_level)(SessionOptions*, int level);
  Status* (*set_intra_op_threads)(SessionOptions*, int threads);
  Status* (*create_tensor_with_data)(const MemoryInfo*, void* data, size_t bytes, const int64_t* shape, size_t rank,
                                     int element_type, Value**);
  Status* (*create_cpu_memory_info)(int allocator, int memory, MemoryInfo**);
  void (*release_status)(Status*);
  void (*release_session)(Session*);
  void (*release_value)(Value*);
  void (*release_session_options)(SessionOptions*);
};

class Library {
 public:
  // path: "" is the file that the environment variable FUSEDIFF_ONNXRUNTIME names. Throws kit::Failure (FAILED) in one
  // line where there is no such library.
  static const Library& load(const std::string& path);

  const Api& api() const { return api_; }
  const Env* env() const { return env_; }
  const MemoryInfo* cpu() const { return cpu_; }
  const std::string& version() const { return version_; }

  // Throws kit::Failure (FAILED) with the library's own words, cut to one line, unless status is null.
  void succeed(Status* status, const char* what) const;

 private:
  explicit Library(const std::string& path);

  Api api_{};
  Env* env_ = nullptr;
  MemoryInfo* cpu_ = nullptr;
  std::string version_;
};

}  // namespace fusediff::onnxruntime
