// One thread that notices a run which takes too long, and interrupts it. What the interruption does is the trap's.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace fusediff {

// What the running thread and the watchdog share. The running thread only stores, so that a run costs no system call
// and no clock.
struct Deadline {
  std::atomic<std::uint64_t> epoch{0};    // odd while a run is on; each run has its own
  std::atomic<std::uint64_t> expired{0};  // the epoch whose time is up
  std::atomic<pid_t> thread{0};           // the kernel's id of the running thread

  bool is_expired() const { return expired.load(std::memory_order_acquire) == epoch.load(std::memory_order_relaxed); }
};

class Watchdog {
 public:
  // Looks about eight times per `limit`, at most every millisecond and at least four times a second: a run is
  // interrupted by `signal` between one limit and one limit and a look after it began. Where no thread can be started
  // there is no time cap.
  Watchdog(Deadline& deadline, std::chrono::nanoseconds limit, int signal);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void loop();

  Deadline& deadline_;
  const std::chrono::nanoseconds limit_;
  const int signal_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

// Sends `signal` to one thread of this process; a thread that has ended gets nothing. Safe in a signal handler.
void signal_thread(pid_t thread, int signal);

}  // namespace fusediff
