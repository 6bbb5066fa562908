// fault_report.h for a host in Python, which calls it through ctypes.
#include "host/fault_report.h"
#include "target/veil.h"

namespace {

fusediff::Veil& own_veil() {
  thread_local fusediff::Veil veil;
  return veil;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void fusediff_report_faults(void* region, std::uint64_t bytes) {
  fusediff::report_faults(static_cast<std::byte*>(region), bytes);
}

__attribute__((visibility("default"))) void fusediff_serve_here() { fusediff::serve_here(); }

// The calling thread's next touch of that page pauses it.
__attribute__((visibility("default"))) void fusediff_cover(void* byte) {
  own_veil().cover(static_cast<std::byte*>(byte));
}
__attribute__((visibility("default"))) void fusediff_lift() { own_veil().lift(); }

__attribute__((visibility("default"))) int fusediff_close_guards(void* block, std::uint64_t bytes) {
  return fusediff::close_guards(static_cast<std::byte*>(block), bytes) ? 1 : 0;
}
}
