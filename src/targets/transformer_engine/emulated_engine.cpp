// nvte_permute and nvte_unpermute on the CPU, for tests: their published semantics (sums and products in the storage
// dtype, 8-bit dtypes in f16, saturating narrowing, the mean without probabilities in 8-bit dtypes) behind the tensor
// handles of three generations: TE_GENERATION 1 (1.x), 20 (the first 2.x), 23 (later ones). It is no Transformer Engine
// and says nothing of its speed, its kernels' memory accesses or its versions' defects.
#include <atomic>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "kit/number.h"
#include "transformer_engine/abi.h"
#include "transformer_engine/emulated.h"

struct CUstream_st;

namespace {

using namespace fusediff;
using namespace fusediff::te;

struct EmulatedTensor {
  void* data = nullptr;
  int dtype = 0;
};

std::atomic<int> live{0};

Tensor made(void* data, int dtype) {
  ++live;
  return new EmulatedTensor{host_address(data), dtype};
}

const EmulatedTensor& tensor_of(Tensor tensor) {
  if (tensor == nullptr) {
    throw std::runtime_error("Invalid tensor.");
  }
  return *static_cast<const EmulatedTensor*>(tensor);
}

template <class T>
T* data_of(Tensor tensor) {
  return static_cast<T*>(tensor_of(tensor).data);
}

// The type that sums are kept in, with every operation rounded to it.
template <class T>
using Kept = std::conditional_t<sizeof(T) == 1, kit::Half, T>;

template <class T>
float kept(float value) {
  return kit::convert<float>(kit::convert<Kept<T>>(value));
}

template <class T>
T narrowed(float value) {
  const T rounded = kit::convert<T>(value);
  if constexpr (sizeof(T) == 1) {
    if (value == value && (rounded.bits & 0x7f) > T::kLargest) {  // saturated, infinity too
      return T{static_cast<uint8_t>((rounded.bits & 0x80) | T::kLargest)};
    }
  }
  return rounded;
}

template <class T>
void permute(const T* input, T* output, const int* sorted, int* map, const float* prob, float* prob_grad, const T* fwd,
             int rows, int picks, int columns, int out_rows) {
  for (int i = 0; fwd == nullptr && i < rows * picks; ++i) {
    map[sorted[i] % picks * rows + sorted[i] / picks] = i < out_rows ? i : -1;
  }
  for (int t = 0; t < rows; ++t) {
    for (int k = 0; k < picks; ++k) {
      const int row = map[k * rows + t];
      float lanes[32] = {};
      for (int h = 0; row >= 0 && h < columns; ++h) {
        const float value = kit::convert<float>(input[t * columns + h]);
        const float weight = prob == nullptr ? 1.0f : kept<T>(prob[t * picks + k]);
        output[row * columns + h] = narrowed<T>(kept<T>(value * weight));
        if (prob != nullptr) {
          const int lane = h / static_cast<int>(16 / sizeof(T)) % 32;
          lanes[lane] += kept<T>(value * kit::convert<float>(fwd[row * columns + h]));
        }
      }
      for (int width = 16; prob != nullptr && width > 0; width /= 2) {
        for (int lane = 0; lane < width; ++lane) {
          lanes[lane] += lanes[lane + width];
        }
      }
      if (prob != nullptr) {
        prob_grad[t * picks + k] = lanes[0];
      }
    }
  }
}

template <class T>
void unpermute(const T* input, T* output, const int* map, const float* prob, int rows, int picks, int columns) {
  for (int t = 0; t < rows; ++t) {
    for (int h = 0; h < columns; ++h) {
      float sum = 0;
      for (int k = 0; k < picks; ++k) {
        const int row = map[k * rows + t];
        if (row >= 0) {
          const float value = kit::convert<float>(input[row * columns + h]);
          const float term = prob == nullptr ? value : kept<T>(value * kept<T>(prob[t * picks + k]));
          sum = k == 0 ? term : kept<T>(sum + term);
        }
      }
      if (sizeof(T) == 1 && prob == nullptr) {
        sum = kept<T>(sum / static_cast<float>(picks));
      }
      output[t * columns + h] = narrowed<T>(sum);
    }
  }
}

template <class F>
void by_number(int dtype, F&& f) {
  switch (dtype - (TE_GENERATION == 23 ? 1 : 0)) {
    case 3:
      return f(float{});
    case 4:
      return f(kit::Half{});
    case 5:
      return f(kit::BFloat16{});
    case 6:
      return f(kit::F8E4M3{});
    case 7:
      return f(kit::F8E5M2{});
    default:
      throw std::runtime_error("Invalid type.");
  }
}

}  // namespace

#if TE_GENERATION == 1
#define FUSEDIFF_TE_LINKAGE extern "C"
#else
#define FUSEDIFF_TE_LINKAGE
#endif

FUSEDIFF_TE_LINKAGE FUSEDIFF_TE_EXPORT void nvte_permute(void* input, void* output, void* sorted_row_id,
                                                         void* row_id_map, void* prob, void* prob_grad, void* input_fwd,
                                                         int num_rows, int top_k, int num_cols, int num_out_tokens,
                                                         CUstream_st*) {
  by_number(tensor_of(input).dtype, [&](auto zero) {
    using T = decltype(zero);
    permute<T>(data_of<T>(input), data_of<T>(output), data_of<int>(sorted_row_id), data_of<int>(row_id_map),
               data_of<float>(prob), data_of<float>(prob_grad), data_of<T>(input_fwd), num_rows, top_k, num_cols,
               num_out_tokens);
  });
}

FUSEDIFF_TE_LINKAGE FUSEDIFF_TE_EXPORT void nvte_unpermute(void* input, void* output, void* row_id_map, void* prob,
                                                           int num_rows, int top_k, int num_cols, CUstream_st*) {
  by_number(tensor_of(input).dtype, [&](auto zero) {
    using T = decltype(zero);
    unpermute<T>(data_of<T>(input), data_of<T>(output), data_of<int>(row_id_map), data_of<float>(prob), num_rows, top_k,
                 num_cols);
  });
}

extern "C" {

FUSEDIFF_TE_EXPORT void nvte_destroy_tensor(void* tensor) {
  --live;
  delete static_cast<EmulatedTensor*>(tensor);
}

// Handles that are not destroyed yet: for the tests.
FUSEDIFF_TE_EXPORT int emulated_live_tensors() { return live; }

#if TE_GENERATION == 1
FUSEDIFF_TE_EXPORT void* nvte_create_tensor(void* data, PointerShape, int dtype, float*, float*, float*) {
  return made(data, dtype);
}
#else
FUSEDIFF_TE_EXPORT void* nvte_create_tensor(int scaling_mode) {
  if (scaling_mode != 0) {
    throw std::runtime_error("Unexpected scaling mode.");
  }
  return made(nullptr, 0);
}

using EmulatedShape = std::conditional_t<TE_GENERATION == 23, ArrayShape, PointerShape>;

FUSEDIFF_TE_EXPORT void nvte_set_tensor_param(void** tensor, int param, const void* basic) {
  const auto& given = *static_cast<const BasicTensor<EmulatedShape>*>(basic);
  if (param != 0 || given.shape.ndim < 1 || given.shape.ndim > 14 || given.shape.data[0] > 1 << 20) {
    throw std::runtime_error("Unexpected parameter.");
  }
  *static_cast<EmulatedTensor*>(*tensor) = {host_address(given.data), given.dtype};
}

FUSEDIFF_TE_EXPORT size_t nvte_tensor_element_size(void* tensor) {
  constexpr size_t kSizes[] = {1, 2, 4, 8, 4, 2, 2, 1, 1};
  const int dtype = tensor_of(tensor).dtype;
  return kSizes[TE_GENERATION == 23 || dtype == 0 ? dtype : dtype + 1];
}
#if TE_GENERATION == 23
FUSEDIFF_TE_EXPORT void nvte_make_shape() {}
#endif
#endif
}
