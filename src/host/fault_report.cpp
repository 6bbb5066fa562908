#include "host/fault_report.h"

#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "target/fault_context.h"
#include "target/host_memory.h"
#include "target/veil.h"

namespace fusediff {
namespace {

constexpr std::array kReported = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
constexpr std::size_t kSignalStackBytes = std::size_t{64} << 10;

// What the handler needs: it gets no argument of ours.
std::byte* region_begin = nullptr;
std::uint64_t region_bytes = 0;
std::array<struct sigaction, kReported.size()> previous;
thread_local bool serves = false;

void write_words(int signal, const siginfo_t& info, const void* context) {
  auto& words = *reinterpret_cast<LastWords*>(region_begin);
  std::uint32_t none = 0;
  if (!words.state.compare_exchange_strong(none, 1)) return;
  const auto& machine = *static_cast<const ucontext_t*>(context);
  words.signal = signal;
  words.code = info.si_code;
  words.access = static_cast<std::int32_t>(Access::kUnknown);
  words.address = words.in_region = 0;
  if (signal == SIGSEGV || signal == SIGBUS) {
    words.access = static_cast<std::int32_t>(access_of(machine));
    if (info.si_code > 0) words.address = reinterpret_cast<std::uint64_t>(info.si_addr);
    const auto begin = reinterpret_cast<std::uint64_t>(region_begin);
    if (words.address >= begin && words.address - begin < region_bytes) words.in_region = words.address - begin + 1;
  }
  words.stack = stack_pointer(machine);
  words.own_thread = serves ? 0 : 1;
  words.state.store(LastWords::kWhole, std::memory_order_release);
}

void on_fault(int signal, siginfo_t* info, void* context) {
  if (signal == SIGSEGV && info->si_code > 0) {
    const int saved = errno;
    const bool lifted = Veil::lifted_at(reinterpret_cast<std::uintptr_t>(info->si_addr));
    errno = saved;
    if (lifted) return;
  }
  write_words(signal, *info, context);
  for (std::size_t i = 0; i < kReported.size(); ++i) {
    if (kReported[i] != signal) continue;
    const struct sigaction& before = previous[i];
    ::sigaction(signal, &before, nullptr);
    if ((before.sa_flags & SA_SIGINFO) != 0) {
      before.sa_sigaction(signal, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
      before.sa_handler(signal);
    }
  }
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(signal, &standard, nullptr);
  ::raise(signal);  // blocked here: it ends the process on return, if the fault itself does not
}

}  // namespace

void report_faults(std::byte* region, std::uint64_t bytes) {
  region_begin = region;
  region_bytes = bytes;
  serve_here();
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  ::sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kReported.size(); ++i) ::sigaction(kReported[i], &action, &previous[i]);
}

void serve_here() {
  serves = true;
  stack_t now{};
  if (::sigaltstack(nullptr, &now) == 0 && (now.ss_flags & SS_DISABLE) == 0) return;
  stack_t stack{};
  stack.ss_size = kSignalStackBytes;
  stack.ss_sp = std::malloc(kSignalStackBytes);  // for the life of the thread, which is the host's
  if (stack.ss_sp != nullptr) ::sigaltstack(&stack, nullptr);
}

bool close_guards(std::byte* block, std::uint64_t bytes) {
  constexpr std::uint64_t kBehind = kGuardPagesBehind * kBlockPage;
  constexpr std::uint64_t kBefore = kGuardPagesBefore * kBlockPage;
  if (bytes < kBefore + kBehind) return false;
  return ::mprotect(block, kBefore, PROT_NONE) == 0 && ::mprotect(block + bytes - kBehind, kBehind, PROT_NONE) == 0;
}

}  // namespace fusediff
