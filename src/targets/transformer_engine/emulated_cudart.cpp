// Of the CUDA runtime what the target uses, on the CPU, for tests. Addresses of "device" memory have one bit flipped
// (emulated.h): whoever reads through one on the host dies at once. One device; more than 1 GiB is out of memory.
#include <cstdlib>
#include <cstring>

#include "transformer_engine/emulated.h"

using fusediff::te::host_address;

extern "C" {

FUSEDIFF_TE_EXPORT int cudaGetDeviceCount(int* count) {
  *count = 1;
  return 0;
}

FUSEDIFF_TE_EXPORT int cudaSetDevice(int device) { return device == 0 ? 0 : 101; }

FUSEDIFF_TE_EXPORT int cudaMalloc(void** memory, size_t bytes) {
  if (bytes > size_t{1} << 30) {
    return 2;
  }
  *memory = host_address(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  return 0;
}

FUSEDIFF_TE_EXPORT int cudaFree(void* memory) {
  std::free(memory == nullptr ? nullptr : host_address(memory));
  return 0;
}

FUSEDIFF_TE_EXPORT int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind, void*) {
  if (kind == 1) {
    std::memcpy(host_address(to), from, bytes);
  } else {
    std::memcpy(to, host_address(const_cast<void*>(from)), bytes);
  }
  return kind == 1 || kind == 2 ? 0 : 21;
}

FUSEDIFF_TE_EXPORT int cudaStreamSynchronize(void*) { return 0; }
FUSEDIFF_TE_EXPORT int cudaGetLastError() { return 0; }
FUSEDIFF_TE_EXPORT const char* cudaGetErrorName(int error) {
  return error == 2 ? "cudaErrorMemoryAllocation" : "cudaErrorUnknown";
}
FUSEDIFF_TE_EXPORT const char* cudaGetErrorString(int error) { return error == 2 ? "out of memory" : "unknown error"; }
}
