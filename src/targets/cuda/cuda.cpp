// The target `cuda`: its table of operators, and device memory behind alloc, release, write and read.
#include "cuda/context.h"
#include "cuda/device_operators.h"
#include "kit/target.h"

namespace fusediff::cuda {
namespace {

using kit::detail::guarded;

DeviceContext& context_of(void* context) { return *static_cast<DeviceContext*>(context); }

void* alloc(void* context, size_t bytes) {
  void* memory = nullptr;
  guarded([&] { memory = context_of(context).alloc(bytes); });
  return memory;
}

void release(void* context, void* memory) { context_of(context).release(memory); }

fusediff_status write(void* context, void* memory, const void* host, size_t bytes) {
  return guarded([&] { context_of(context).write(memory, host, bytes); });
}

fusediff_status read(void* context, void* host, const void* memory, size_t bytes) {
  return guarded([&] { context_of(context).read(host, memory, bytes); });
}

fusediff_target_v1 make_table() {
  fusediff_target_v1 table = *kit::detail::entry<DeviceContext>(
      "cuda", "1.0",
      kit::detail::listed(kDeviceAdd, kDeviceMhcPreSinkhorn, kDeviceMhcPreSinkhornGrad, kDeviceMoeGatingTopk,
                          kDeviceMoePermute, kDeviceMoePermuteGrad, kDeviceMoeUnpermute, kDeviceMoeUnpermuteGrad,
                          kDeviceSigmoid));
  table.alloc = alloc;
  table.release = release;
  table.write = write;
  table.read = read;
  return table;
}

}  // namespace
}  // namespace fusediff::cuda

extern "C" FUSEDIFF_EXPORT const fusediff_target_v1* fusediff_target(void) {
  static const fusediff_target_v1 table = fusediff::cuda::make_table();
  return &table;
}
