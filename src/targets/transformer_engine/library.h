// Transformer Engine and the CUDA runtime, loaded by name while the program runs, and a tensor handle of either
// generation. Nothing is unloaded. No operator stands here.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "transformer_engine/abi.h"

namespace fusediff::te {

class Library {
 public:
  // FAILED, with what is missing and how to name it, where a library or a function of it is not there.
  Library(const std::string& engine, const std::string& runtime);

  // FAILED unless `error` is success: the call, CUDA's text and name.
  void check(int error, const char* call) const;

  const Cuda& cuda() const { return cuda_; }
  Permute permute() const { return permute_; }
  Unpermute unpermute() const { return unpermute_; }

 private:
  friend class Handle;

  void* load_engine(const std::string& engine);
  void load_runtime(const std::string& runtime, void* engine);
  int number_of(int32_t dtype) const;
  bool has_int16() const;
  Tensor create(void* data, int number, const size_t* shape, size_t rank) const;

  Cuda cuda_{};
  Permute permute_ = nullptr;
  Unpermute unpermute_ = nullptr;
  CreateByData create_by_data_ = nullptr;  // 1.x
  CreateEmpty create_empty_ = nullptr;     // 2.x
  SetParam set_param_ = nullptr;           // 2.x
  ElementSize element_size_ = nullptr;
  Destroy destroy_ = nullptr;
  bool array_shape_ = false;
  int shift_ = 0;  // what 16-bit integers add to the numbers of the dtypes behind them
};

// A tensor handle, destroyed with this object. One without data stands for a tensor that a call does not have: the
// library looks at the handle all the same.
class Handle {
 public:
  Handle(const Library& library, void* data, int32_t dtype, std::initializer_list<int64_t> shape);
  explicit Handle(const Library& library);
  ~Handle() { library_.destroy_(tensor_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  operator Tensor() const { return tensor_; }  // NOLINT: where a handle is wanted

 private:
  const Library& library_;
  Tensor tensor_;
};

}  // namespace fusediff::te
