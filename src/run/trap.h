// Calls foreign code so that a signal, an exception or a deadline ends the call and not the process. What a fault
// means, and which memory it hit, is decided elsewhere.
#pragma once

#include <csetjmp>
#include <csignal>

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "model/execution.h"
#include "run/watchdog.h"

namespace fusediff {

enum class Left { kReturned, kException, kNoMemory, kFault, kExpired };

// A signal that the code raised: plain data, written by the handler.
struct Fault {
  int signal = 0;
  int code = 0;                // siginfo's si_code
  std::uintptr_t address = 0;  // si_addr of SIGSEGV and SIGBUS
  std::uintptr_t stack = 0;    // the stack pointer, 0 where it is not known
  Access access = Access::kUnknown;
  bool other_thread = false;  // a thread that the code had started
};

// The process's handlers for SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, and of a real-time signal of
// its own. A signal that no trapped call raised, or that came from another process, gets what it would have got without
// them. Installed with SA_SIGINFO, so that libFuzzer and the sanitizers leave them in place.
class SignalHandlers {
 public:
  SignalHandlers();
  ~SignalHandlers();  // restores what was there, unless somebody replaced it since
  SignalHandlers(const SignalHandlers&) = delete;
  SignalHandlers& operator=(const SignalHandlers&) = delete;

  // Installs them again where a library put its own in their place; that one is passed on to from then on.
  void reinstall();
  // The real-time signal that interrupts a trapped call.
  int interrupt() const;
};

// One at a time in a process is between begin() and end(), and any number on threads of their own between join() and
// part(). REQUIRES: SignalHandlers live.
class Trap {
 public:
  Trap(Deadline& deadline, int interrupt) : deadline_(deadline), interrupt_(interrupt) {}

  // The time of a run counts from begin(); calls are made on the same thread until end(). The first begin() on a
  // thread gives it an alternate signal stack.
  void begin();
  void end();
  // The time of a run that has begun counts from now.
  void extend();

  // The same beside a trap that has begun on another thread, which hears of the faults of the target's own threads and
  // watches the time. A call that an interrupt comes into is suspended there for a moment when `suspended`.
  void join(bool suspended);
  void part();
  // Ends the call that is under way, if any, as expired. Called by another thread.
  void expire();

  // The floating-point control is what it was before, however the call ended. After kFault, kExpired the code was left
  // where it stood: its locks and memory stay as they are.
  template <typename Function>
  Left call(Function& function) {
    return call([](void* argument) { (*static_cast<std::remove_reference_t<Function>*>(argument))(); }, &function);
  }
  Left call(void (*function)(void*), void* argument);

  // Valid after kFault.
  const Fault& fault() const { return fault_; }
  // Valid after kException and kNoMemory: the text of the exception.
  std::string_view thrown() const { return thrown_.data(); }
  // kFault or kExpired when that came between two calls, or from another thread after the last; else kReturned.
  Left pending();
  // The time of the run is up, or expire() was called.
  bool is_expired() const { return deadline_.is_expired(); }

 private:
  friend struct TrapHandlers;
  void invoke(void (*function)(void*), void* argument);
  void keep_text(const char* text);
  void start(bool suspended);

  Deadline& deadline_;
  const int interrupt_;
  sigjmp_buf jump_{};
  std::atomic<bool> inside_{false};
  Left left_ = Left::kReturned;
  Fault fault_;
  Fault other_fault_;          // of another thread
  std::atomic<int> other_{0};  // 1: another thread is writing other_fault_, 2: it is whole
  std::array<char, 512> thrown_{};
  bool suspended_ = false;
};

// While one lives, an interrupt suspends for a moment threads that are in no trap: those that a target has started.
class SuspendOthers {
 public:
  SuspendOthers();
  ~SuspendOthers();
  SuspendOthers(const SuspendOthers&) = delete;
  SuspendOthers& operator=(const SuspendOthers&) = delete;
};

}  // namespace fusediff
