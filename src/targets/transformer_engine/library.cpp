// Loading and telling the generations apart. See library.h.
#include "transformer_engine/library.h"

#include <dlfcn.h>

#include "fusediff_target.h"
#include "kit/failure.h"

namespace fusediff::te {
namespace {

void* open_library(const std::string& file, std::string* why) {
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    *why = ::dlerror();
  }
  return library;
}

// The first of some names that a library exports; null where there is none.
template <class Function, class Names>
Function find_any(void* library, const Names& names) {
  for (const char* name : names) {
    if (void* found = ::dlsym(library, name)) {
      return reinterpret_cast<Function>(found);
    }
  }
  return nullptr;
}

template <class Function>
Function find(void* library, const char* name) {
  return reinterpret_cast<Function>(::dlsym(library, name));
}

template <class Function>
void need(void* library, const char* name, const std::string& file, Function& function) {
  function = find<Function>(library, name);
  if (function == nullptr) {
    kit::fail(file, " has no ", name);
  }
}

}  // namespace

Library::Library(const std::string& engine, const std::string& runtime) {
  load_runtime(runtime, load_engine(engine));
  shift_ = has_int16() ? 1 : 0;
}

void* Library::load_engine(const std::string& engine) {
  const std::string file = engine.empty() ? "libtransformer_engine.so" : engine;
  std::string why;
  void* library = open_library(file, &why);
  if (library == nullptr) {
    kit::fail("no Transformer Engine: ", why, "; name it by library=PATH");
  }
  permute_ = find_any<Permute>(library, kPermuteNames);
  unpermute_ = find_any<Unpermute>(library, kUnpermuteNames);
  if (permute_ == nullptr || unpermute_ == nullptr) {
    kit::fail(file, " has no nvte_permute and nvte_unpermute: an older release");
  }
  need(library, "nvte_destroy_tensor", file, destroy_);
  set_param_ = find<SetParam>(library, "nvte_set_tensor_param");
  if (set_param_ == nullptr) {
    need(library, "nvte_create_tensor", file, create_by_data_);
  } else {
    need(library, "nvte_create_tensor", file, create_empty_);
    array_shape_ = ::dlsym(library, "nvte_make_shape") != nullptr;
    element_size_ = find<ElementSize>(library, "nvte_tensor_element_size");
  }
  return library;
}

// The one that is named; else the one that the engine is linked with, so that there are not two; else the newest.
void Library::load_runtime(const std::string& runtime, void* engine) {
  std::string why;
  std::string file = runtime.empty() ? "the CUDA runtime" : runtime;
  void* library = runtime.empty() ? nullptr : open_library(runtime, &why);
  if (runtime.empty() && ::dlsym(engine, "cudaGetDeviceCount") != nullptr) {
    library = engine;
  }
  for (const char* name : {"libcudart.so.13", "libcudart.so.12", "libcudart.so"}) {
    if (library == nullptr && runtime.empty()) {
      library = open_library(name, &why);
      file = name;
    }
  }
  if (library == nullptr) {
    kit::fail("no CUDA runtime: ", why, "; name it by cudart=PATH");
  }
  need(library, "cudaGetDeviceCount", file, cuda_.get_device_count);
  need(library, "cudaSetDevice", file, cuda_.set_device);
  need(library, "cudaMalloc", file, cuda_.malloc);
  need(library, "cudaFree", file, cuda_.free);
  need(library, "cudaMemcpyAsync", file, cuda_.memcpy_async);
  need(library, "cudaStreamSynchronize", file, cuda_.stream_synchronize);
  need(library, "cudaGetLastError", file, cuda_.get_last_error);
  need(library, "cudaGetErrorName", file, cuda_.get_error_name);
  need(library, "cudaGetErrorString", file, cuda_.get_error_string);
}

void Library::check(int error, const char* call) const {
  if (error != kCudaSuccess) {
    cuda_.get_last_error();  // told here; the next launch must not be blamed for it
    kit::fail(call, ": ", cuda_.get_error_string(error), " (", cuda_.get_error_name(error), ")");
  }
}

// Later releases number 16-bit integers, and every dtype behind them one higher: dtype 2 has 4 bytes there (int32) and
// 8 before (int64).
bool Library::has_int16() const {
  if (set_param_ == nullptr || element_size_ == nullptr) {
    return false;
  }
  const size_t shape[] = {1};
  const Tensor probe = create(nullptr, 2, shape, 1);
  const size_t bytes = element_size_(probe);
  destroy_(probe);
  return bytes == 4;
}

int Library::number_of(int32_t dtype) const {
  switch (dtype) {
    case FUSEDIFF_I32:
      return 1 + shift_;
    case FUSEDIFF_F32:
      return 3 + shift_;
    case FUSEDIFF_F16:
      return 4 + shift_;
    case FUSEDIFF_BF16:
      return 5 + shift_;
    case FUSEDIFF_F8E4M3FN:
      return 6 + shift_;
    case FUSEDIFF_F8E5M2:
      return 7 + shift_;
    default:
      kit::unsupported("Transformer Engine has no such dtype");
  }
}

Tensor Library::create(void* data, int number, const size_t* shape, size_t rank) const {
  if (set_param_ == nullptr) {
    return create_by_data_(data, {shape, rank}, number, nullptr, nullptr, nullptr);
  }
  Tensor tensor = create_empty_(kDelayedScaling);
  if (array_shape_) {
    BasicTensor<ArrayShape> basic{data, number, {{}, rank}};
    for (size_t d = 0; d < rank; ++d) {
      basic.shape.data[d] = shape[d];
    }
    set_param_(&tensor, kRowwiseData, &basic);
  } else {
    const BasicTensor<PointerShape> basic{data, number, {shape, rank}};
    set_param_(&tensor, kRowwiseData, &basic);
  }
  return tensor;
}

Handle::Handle(const Library& library, void* data, int32_t dtype, std::initializer_list<int64_t> shape)
    : library_(library), tensor_(nullptr) {
  size_t sizes[4] = {};
  size_t rank = 0;
  for (const int64_t size : shape) {
    sizes[rank++] = static_cast<size_t>(size);
  }
  tensor_ = library.create(data, library.number_of(dtype), sizes, rank);
}

Handle::Handle(const Library& library) : Handle(library, nullptr, FUSEDIFF_F32, {0}) {}

}  // namespace fusediff::te
