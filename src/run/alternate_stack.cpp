#include "run/alternate_stack.h"

#include <sys/mman.h>
#include <csignal>
#include <cstddef>

namespace fusediff {
namespace {

// The kernel's frame with all vector registers (11 KiB with AMX), and handlers of others that we pass on to.
constexpr std::size_t kStackBytes = 64 << 10;
constexpr std::size_t kEnough = 32 << 10;
constexpr std::size_t kGuardBytes = 64 << 10;  // a multiple of every page size

class AlternateStack {
 public:
  AlternateStack() {
    stack_t now{};
    if (::sigaltstack(nullptr, &now) == 0 && (now.ss_flags & SS_DISABLE) == 0 && now.ss_size >= kEnough) return;
    void* region = ::mmap(nullptr, kStackBytes + kGuardBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (region == MAP_FAILED) return;
    void* stack = static_cast<std::byte*>(region) + kGuardBytes;
    stack_t mine{};
    mine.ss_sp = stack;
    mine.ss_size = kStackBytes;
    if (::mprotect(stack, kStackBytes, PROT_READ | PROT_WRITE) != 0 || ::sigaltstack(&mine, nullptr) != 0) {
      ::munmap(region, kStackBytes + kGuardBytes);
      return;
    }
    region_ = region;
  }
  ~AlternateStack() {
    if (region_ == nullptr) return;
    stack_t now{};
    if (::sigaltstack(nullptr, &now) == 0 && now.ss_sp == static_cast<std::byte*>(region_) + kGuardBytes) {
      now = {};
      now.ss_flags = SS_DISABLE;
      ::sigaltstack(&now, nullptr);
    }
    ::munmap(region_, kStackBytes + kGuardBytes);
  }
  AlternateStack(const AlternateStack&) = delete;
  AlternateStack& operator=(const AlternateStack&) = delete;

 private:
  void* region_ = nullptr;
};

}  // namespace

void ensure_alternate_stack() { thread_local const AlternateStack stack; }

}  // namespace fusediff
