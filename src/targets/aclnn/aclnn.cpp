// The target aclnn: one line an operator, and the device memory that the kit does not know.
#include <algorithm>

#include "aclnn/device.h"
#include "aclnn/operators.h"

namespace fusediff::aclnn {
namespace {

Device& device_of(void* context) {
  Device& device = *static_cast<Device*>(context);
  device.bind();
  return device;
}

void* alloc(void* context, size_t bytes) {
  void* memory = nullptr;
  kit::detail::guarded([&] {
    Library& library = device_of(context).library();
    check(library, library.malloc(&memory, std::max<size_t>(bytes, 1), kMallocHugeFirst), "aclrtMalloc");
  });
  return memory;
}

void release(void* context, void* memory) {
  kit::detail::guarded([&] { device_of(context).library().free(memory); });
}

fusediff_status write(void* context, void* memory, const void* host, size_t bytes) {
  return kit::detail::guarded([&] {
    Library& library = device_of(context).library();
    check(library, library.memcpy(memory, bytes, host, bytes, kHostToDevice), "aclrtMemcpy");
  });
}

fusediff_status read(void* context, void* host, const void* memory, size_t bytes) {
  return kit::detail::guarded([&] {
    Library& library = device_of(context).library();
    check(library, library.memcpy(host, bytes, memory, bytes, kDeviceToHost), "aclrtMemcpy");
  });
}

const fusediff_target_v1* table() {
  const fusediff_target_v1* made = kit::detail::entry<Device>(
      "aclnn", "0.1.0",
      kit::detail::listed(kAdd, kMhcPreSinkhorn, kMhcPreSinkhornGrad, kMoeGatingTopk, kMoePermute, kMoeUnpermute));
  fusediff_target_v1& filled = kit::detail::registry().table;
  filled.alloc = alloc;
  filled.release = release;
  filled.write = write;
  filled.read = read;
  return made;
}

}  // namespace
}  // namespace fusediff::aclnn

extern "C" FUSEDIFF_EXPORT const fusediff_target_v1* fusediff_target(void) {
  static const fusediff_target_v1* const made = fusediff::aclnn::table();
  return made;
}
