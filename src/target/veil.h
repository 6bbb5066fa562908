// Suspends a call of the target at the moment when it first touches a page of one of its tensors, so that other calls
// come between its steps: what calls in flight do to each other then shows within few calls and on one core too, and is
// not left to the scheduler. The call notices nothing but the time. One thing is beyond it: a system call that is given
// such a page fails with EFAULT.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fusediff {

class Veil {
 public:
  // Where all places are taken it covers nothing.
  Veil();
  ~Veil();
  Veil(const Veil&) = delete;
  Veil& operator=(const Veil&) = delete;

  // Makes the page that holds `byte` inaccessible until it is touched or lifted. REQUIRES: the page is mapped, readable
  // and writable; nothing is covered.
  void cover(std::byte* byte);
  void lift();

  // Of a fault at this address: was it a veil? It is lifted then, and the thread has paused as pause_here() does. Safe
  // in a signal handler.
  static bool lifted_at(std::uintptr_t address);

 private:
  std::size_t place_;
};

// Lets other threads run for a moment: gives up the CPU, or sleeps up to a few tenths of a millisecond, as it comes.
// Safe in a signal handler.
void pause_here();

}  // namespace fusediff
