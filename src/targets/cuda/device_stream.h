// Where kernels run on a GPU: a stream on which a function of an element, or a cooperative function of a block of
// threads, is launched. host_stream.h has the same on the CPU, so that an operator is written once for both.
//
//   stream.elements(n, FUSEDIFF_KERNEL(int64_t i) { y[i] = x[i]; });
//   stream.blocks(rows, shared_bytes, FUSEDIFF_KERNEL(const Block& block, int64_t row) {
//     block.each([&](int lane) { ... });   // all threads, then a barrier
//   });
// What a block keeps from one each() to the next stands in block.shared<T>(). Nothing is read or written there outside
// each(), so that no thread runs ahead of another.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

#include "cuda/arithmetic.h"
#include "cuda/context.h"

namespace fusediff::cuda {

inline constexpr int64_t kMostBlocks = int64_t{1} << 20;  // more work loops over the grid

extern __shared__ __align__(16) unsigned char block_memory[];

struct DeviceBlock {
  template <class F>
  FUSEDIFF_HD void each(F&& f) const {
#ifdef __CUDA_ARCH__
    f(static_cast<int>(threadIdx.x));
    __syncthreads();
#endif
  }

  FUSEDIFF_HD unsigned char* shared() const {
#ifdef __CUDA_ARCH__
    return block_memory;
#else
    return nullptr;
#endif
  }
};

template <class F>
__global__ void __launch_bounds__(kThreads) elements_kernel(int64_t n, F f) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
    f(i);
  }
}

template <class F>
__global__ void __launch_bounds__(kThreads) blocks_kernel(int64_t n, F f) {
  const DeviceBlock block;
  for (int64_t b = blockIdx.x; b < n; b += gridDim.x) {
    f(block, b);
  }
}

class DeviceStream {
 public:
  using Block = DeviceBlock;
  // What a block may have without asking for more.
  static constexpr size_t kSharedBytes = 48 << 10;

  explicit DeviceStream(cudaStream_t stream) : stream_(stream) {}

  template <class F>
  void elements(int64_t n, F f) {
    if (n > 0) {
      const int64_t blocks = std::min((n + kThreads - 1) / kThreads, kMostBlocks);
      elements_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream_>>>(n, f);
      check_cuda(cudaGetLastError(), "launch of a kernel");
    }
  }

  template <class F>
  void blocks(int64_t n, size_t shared_bytes, F f) {
    if (n > 0) {
      const int64_t blocks = std::min(n, kMostBlocks);
      blocks_kernel<<<static_cast<unsigned>(blocks), kThreads, shared_bytes, stream_>>>(n, f);
      check_cuda(cudaGetLastError(), "launch of a kernel");
    }
  }

  // The word at `from` in device memory, after all that was launched before.
  int32_t fetch(const int32_t* from) {
    int32_t value = 0;
    check_cuda(cudaMemcpyAsync(&value, from, sizeof(value), cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync");
    check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    return value;
  }

 private:
  cudaStream_t stream_;
};

}  // namespace fusediff::cuda
