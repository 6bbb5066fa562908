#include "run/watchdog.h"

#include <sys/syscall.h>
#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <system_error>

namespace fusediff {

void signal_thread(pid_t thread, int signal) { ::syscall(SYS_tgkill, ::getpid(), thread, signal); }

Watchdog::Watchdog(Deadline& deadline, std::chrono::nanoseconds limit, int signal)
    : deadline_(deadline), limit_(limit), signal_(signal) {
  // The thread must take none of the process's signals.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { loop(); });
  } catch (const std::system_error&) {
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::loop() {
  using std::chrono::milliseconds;
  using Clock = std::chrono::steady_clock;
  const auto look = std::clamp<std::chrono::nanoseconds>(limit_ / 8, milliseconds(1), milliseconds(250));
  std::uint64_t seen = 0;
  Clock::time_point since = Clock::now();
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, look, [this] { return stop_; })) {
    const std::uint64_t epoch = deadline_.epoch.load(std::memory_order_acquire);
    const Clock::time_point now = Clock::now();
    if (epoch % 2 == 0 || epoch != seen) {
      seen = epoch;
      since = now;
      continue;
    }
    if (now - since < limit_) continue;
    deadline_.expired.store(epoch, std::memory_order_release);
    signal_thread(deadline_.thread.load(std::memory_order_relaxed), signal_);
    since = now;  // again one limit later, if the first came to nothing
  }
}

}  // namespace fusediff
