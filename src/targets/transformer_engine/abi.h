// What is used of the C interfaces of Transformer Engine and of the CUDA runtime, declared here so that neither's
// headers are needed to build. Two generations of Transformer Engine's tensor handles are known (library.h tells them
// apart). Sources: transformer_engine/transformer_engine.h and permutation.h of releases 1.x and 2.x,
// cuda_runtime_api.h.
#pragma once

#include <cstddef>

namespace fusediff::te {

using Tensor = void*;  // NVTETensor
using Stream = void*;  // cudaStream_t

// NVTEShape: a pointer in 1.x and the first 2.x, an array in later ones (those that have nvte_make_shape).
struct PointerShape {
  const size_t* data;
  size_t ndim;
};
struct ArrayShape {
  size_t data[15];
  size_t ndim;
};

// NVTEBasicTensor with either shape.
template <class Shape>
struct BasicTensor {
  void* data;
  int dtype;
  Shape shape;
};

inline constexpr int kRowwiseData = 0;     // NVTETensorParam
inline constexpr int kDelayedScaling = 0;  // NVTEScalingMode

using CreateByData = Tensor (*)(void* data, PointerShape shape, int dtype, float* amax, float* scale, float* scale_inv);
using CreateEmpty = Tensor (*)(int scaling_mode);
using SetParam = void (*)(Tensor* tensor, int param, const void* basic_tensor);
using ElementSize = size_t (*)(Tensor tensor);
using Destroy = void (*)(Tensor tensor);

using Permute = void (*)(Tensor input, Tensor output, Tensor sorted_row_id, Tensor row_id_map, Tensor prob,
                         Tensor prob_grad, Tensor input_fwd, int num_rows, int top_k, int num_cols, int num_out_tokens,
                         Stream stream);
using Unpermute = void (*)(Tensor input, Tensor output, Tensor row_id_map, Tensor prob, int num_rows, int top_k,
                           int num_cols, Stream stream);

// permutation.h has no extern "C": its functions are exported under their C++ names.
inline constexpr const char* kPermuteNames[] = {"nvte_permute", "_Z12nvte_permutePvS_S_S_S_S_S_iiiiP11CUstream_st"};
inline constexpr const char* kUnpermuteNames[] = {"nvte_unpermute", "_Z14nvte_unpermutePvS_S_S_iiiP11CUstream_st"};

// Of the CUDA runtime.
inline constexpr int kCudaSuccess = 0;
inline constexpr int kHostToDevice = 1;
inline constexpr int kDeviceToHost = 2;
inline Stream per_thread_stream() { return reinterpret_cast<Stream>(0x2); }

struct Cuda {
  int (*get_device_count)(int*);
  int (*set_device)(int);
  int (*malloc)(void**, size_t);
  int (*free)(void*);
  int (*memcpy_async)(void*, const void*, size_t, int, Stream);
  int (*stream_synchronize)(Stream);
  int (*get_last_error)();
  const char* (*get_error_name)(int);
  const char* (*get_error_string)(int);
};

}  // namespace fusediff::te
