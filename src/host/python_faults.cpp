// fault_report.h for a host in Python, which calls it through ctypes.
#include "host/fault_report.h"
#include "target/float_state.h"
#include "target/veil.h"

namespace {

fusediff::Veil& own_veil() {
  thread_local fusediff::Veil veil;
  return veil;
}

// The thread's floating-point control when it was first asked for.
const fusediff::FloatState& first_state() {
  thread_local const fusediff::FloatState state;
  return state;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void fusediff_report_faults(void* region, std::uint64_t bytes) {
  fusediff::report_faults(static_cast<std::byte*>(region), bytes);
}

__attribute__((visibility("default"))) void fusediff_serve_here() {
  fusediff::serve_here();
  first_state();
}
// After a call, which may have set it to flush denormals.
__attribute__((visibility("default"))) void fusediff_restore_float() { first_state().restore(); }

// The calling thread's next touch of that page pauses it.
__attribute__((visibility("default"))) void fusediff_cover(void* byte) {
  own_veil().cover(static_cast<std::byte*>(byte));
}
__attribute__((visibility("default"))) void fusediff_lift() { own_veil().lift(); }

__attribute__((visibility("default"))) int fusediff_close_guards(void* block, std::uint64_t bytes) {
  return fusediff::close_guards(static_cast<std::byte*>(block), bytes) ? 1 : 0;
}
}
