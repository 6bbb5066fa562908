#include "run/trap.h"

#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>

#include "run/alternate_stack.h"
#include "target/veil.h"
#include "target/fault_context.h"
#include "target/float_state.h"

namespace fusediff {
namespace {

constexpr std::array kTrapped = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};

// What the handlers need; they find it here because a handler gets no argument of ours.
std::array<struct sigaction, kTrapped.size()> previous;
std::atomic<Trap*> running{nullptr};  // between begin() and end()
std::atomic<bool> suspend_others{false};
int live = 0;                           // SignalHandlers
int interrupt_signal = 0;               // chosen once
thread_local Trap* own_trap = nullptr;  // the same, on its thread only

struct sigaction* previous_of(int signal) {
  for (std::size_t i = 0; i < kTrapped.size(); ++i) {
    if (kTrapped[i] == signal) return &previous[i];
  }
  return nullptr;
}

bool raised_here(const siginfo_t& info) { return info.si_code > 0 || info.si_pid == ::getpid(); }

Fault fault_of(int signal, const siginfo_t& info, const void* context) {
  Fault fault;
  fault.signal = signal;
  fault.code = info.si_code;
  if (signal == SIGSEGV || signal == SIGBUS) {
    if (info.si_code > 0) fault.address = reinterpret_cast<std::uintptr_t>(info.si_addr);
    fault.access = access_of(*static_cast<const ucontext_t*>(context));
  }
  fault.stack = stack_pointer(*static_cast<const ucontext_t*>(context));
  return fault;
}

// Gives the signal to whoever had it before.
void pass_on(int signal, siginfo_t* info, void* context) {
  struct sigaction* before = previous_of(signal);
  if (before == nullptr) return;
  if ((before->sa_flags & SA_SIGINFO) != 0) return before->sa_sigaction(signal, info, context);
  if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN) return before->sa_handler(signal);
  const bool from_instruction = info->si_code > 0 && signal != SIGTRAP;
  if (before->sa_handler == SIG_IGN && !from_instruction) return;
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(signal, &standard, nullptr);
  // A faulting instruction runs again and ends the process by itself, with the true address in a core file.
  if (!from_instruction) ::raise(signal);
}

}  // namespace

// The handlers themselves: everything here is async-signal-safe.
struct TrapHandlers {
  static void leave(Trap& trap, Left how, const void* context) {
    // ThreadSanitizer, and handlers that ours is called from, block signals meanwhile: the mask must be again what it
    // was where the code was interrupted.
    ::pthread_sigmask(SIG_SETMASK, &static_cast<const ucontext_t*>(context)->uc_sigmask, nullptr);
    trap.left_ = how;
    trap.inside_.store(false, std::memory_order_relaxed);
    ::siglongjmp(trap.jump_, 1);
  }

  // A thread of the foreign code cannot be taken out of it: it stops here for good, and the running call is ended.
  static void stop_other_thread(Trap& trap, const Fault& fault) {
    int none = 0;
    if (trap.other_.compare_exchange_strong(none, 1)) {
      trap.other_fault_ = fault;
      trap.other_fault_.other_thread = true;
      const pid_t thread = trap.deadline_.thread.load(std::memory_order_relaxed);
      const int interrupt = trap.interrupt_;
      trap.other_.store(2, std::memory_order_release);  // the run may end now, and the trap with it
      signal_thread(thread, interrupt);
    }
    for (;;) ::pause();
  }

  static void on_fault(int signal, siginfo_t* info, void* context) {
    if (signal == SIGSEGV && info->si_code > 0) {
      const int saved = errno;
      if (Veil::lifted_at(reinterpret_cast<std::uintptr_t>(info->si_addr))) {
        errno = saved;
        return;
      }
    }
    if (raised_here(*info)) {
      if (Trap* trap = own_trap; trap != nullptr) {
        if (trap->inside_.load(std::memory_order_relaxed)) {
          trap->fault_ = fault_of(signal, *info, context);
          leave(*trap, Left::kFault, context);
        }
      } else if (trap = running.load(std::memory_order_acquire); trap != nullptr) {
        stop_other_thread(*trap, fault_of(signal, *info, context));
      }
    }
    pass_on(signal, info, context);
  }

  // Whatever it is about stands in atomics, so one that comes late finds nothing and does nothing.
  static void on_interrupt(int, siginfo_t*, void* context) {
    const int saved = errno;
    Trap* trap = own_trap;
    if (trap != nullptr && trap->inside_.load(std::memory_order_relaxed)) {
      const Left how = trap->pending();
      if (how != Left::kReturned) leave(*trap, how, context);
      if (trap->suspended_) pause_here();
    } else if (trap == nullptr && suspend_others.load(std::memory_order_relaxed)) {
      pause_here();
    }
    errno = saved;
  }
};

namespace {

void install(int signal, void (*handler)(int, siginfo_t*, void*), int flags, struct sigaction* before) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | flags;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, before);
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == TrapHandlers::on_fault;
}

// The first real-time signal that nobody uses.
int unused_signal() {
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 &&
        action.sa_handler == SIG_DFL) {
      return signal;
    }
  }
  return SIGRTMAX;
}

}  // namespace

SignalHandlers::SignalHandlers() {
  if (live++ > 0) return;
  if (interrupt_signal == 0) interrupt_signal = unused_signal();
  for (std::size_t i = 0; i < kTrapped.size(); ++i)
    install(kTrapped[i], TrapHandlers::on_fault, SA_NODEFER, &previous[i]);
  // Deferred: interrupts that have queued up would otherwise lay all their frames on the signal stack at once.
  install(interrupt_signal, TrapHandlers::on_interrupt, SA_RESTART, nullptr);
}

SignalHandlers::~SignalHandlers() {
  if (--live > 0) return;
  for (std::size_t i = 0; i < kTrapped.size(); ++i) {
    struct sigaction now {};
    ::sigaction(kTrapped[i], nullptr, &now);
    if (is_ours(now)) ::sigaction(kTrapped[i], &previous[i], nullptr);
  }
  // Ignored, not default: one that is still under way must not end the process.
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(interrupt_signal, &ignore, nullptr);
}

int SignalHandlers::interrupt() const { return interrupt_signal; }

void SignalHandlers::reinstall() {
  for (std::size_t i = 0; i < kTrapped.size(); ++i) {
    struct sigaction now {};
    ::sigaction(kTrapped[i], nullptr, &now);
    if (is_ours(now)) continue;
    previous[i] = now;
    install(kTrapped[i], TrapHandlers::on_fault, SA_NODEFER, nullptr);
  }
}

void Trap::start(bool suspended) {
  thread_local const pid_t thread = ::gettid();
  ensure_alternate_stack();
  other_.store(0, std::memory_order_relaxed);
  suspended_ = suspended;
  deadline_.thread.store(thread, std::memory_order_relaxed);
  own_trap = this;
}

void Trap::begin() {
  start(false);
  running.store(this, std::memory_order_release);
  deadline_.epoch.store(deadline_.epoch.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

void Trap::end() {
  deadline_.epoch.store(deadline_.epoch.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  running.store(nullptr, std::memory_order_release);
  own_trap = nullptr;
}

void Trap::extend() {
  deadline_.epoch.store(deadline_.epoch.load(std::memory_order_relaxed) + 2, std::memory_order_release);
}

void Trap::join(bool suspended) {
  start(suspended);
  deadline_.epoch.store(deadline_.epoch.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

void Trap::part() {
  deadline_.epoch.store(deadline_.epoch.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  own_trap = nullptr;
}

void Trap::expire() {
  const std::uint64_t epoch = deadline_.epoch.load(std::memory_order_acquire);
  if (epoch % 2 == 0) return;
  deadline_.expired.store(epoch, std::memory_order_release);
  signal_thread(deadline_.thread.load(std::memory_order_relaxed), interrupt_);
}

SuspendOthers::SuspendOthers() { suspend_others.store(true, std::memory_order_relaxed); }
SuspendOthers::~SuspendOthers() { suspend_others.store(false, std::memory_order_relaxed); }

Left Trap::pending() {
  if (other_.load(std::memory_order_acquire) == 2) {
    fault_ = other_fault_;
    return Left::kFault;
  }
  return deadline_.is_expired() ? Left::kExpired : Left::kReturned;
}

void Trap::keep_text(const char* text) {
  const std::size_t size = std::min(std::strlen(text), thrown_.size() - 1);
  std::memcpy(thrown_.data(), text, size);
  thrown_[size] = 0;
}

void Trap::invoke(void (*function)(void*), void* argument) {
  try {
    function(argument);
  } catch (const std::bad_alloc& thrown) {
    keep_text(thrown.what());
    left_ = Left::kNoMemory;
  } catch (const std::exception& thrown) {
    keep_text(thrown.what());
    left_ = Left::kException;
  } catch (...) {
    keep_text("not a std::exception");
    left_ = Left::kException;
  }
}

Left Trap::call(void (*function)(void*), void* argument) {
  const FloatState before;
  left_ = Left::kReturned;
  // No signal mask is saved, which would take a system call: a handler that leaves knows it.
  if (sigsetjmp(jump_, 0) == 0) {
    inside_.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // After inside_, so that an interruption is seen by its handler or here.
    left_ = pending();
    if (left_ == Left::kReturned) invoke(function, argument);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    inside_.store(false, std::memory_order_relaxed);
  }
  before.restore();
  return left_;
}

}  // namespace fusediff
