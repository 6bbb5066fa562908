#include "target/veil.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <ctime>

#include "model/experiment.h"

namespace fusediff {
namespace {

constexpr std::uint32_t kSleepOnceIn = 2;
constexpr long kShortestSleep = 20'000;  // ns; below it the kernel's slack decides
constexpr long kSleepRange = 280'000;
constexpr std::size_t kPlaces = kMostThreads;
constexpr std::uintptr_t kFree = 0;
constexpr std::uintptr_t kIdle = 1;  // taken, covers nothing

// The covered pages: the handler gets no argument of ours. An address stays until lift(), so that two threads which
// touch a page at once both find it.
std::array<std::atomic<std::uintptr_t>, kPlaces> covered;
std::atomic<std::uint32_t> draws{0};

std::uintptr_t page_bytes() {
  static const auto bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

void uncover(std::uintptr_t page) { ::mprotect(reinterpret_cast<void*>(page), page_bytes(), PROT_READ | PROT_WRITE); }

}  // namespace

Veil::Veil() : place_(0) {
  page_bytes();
  for (; place_ < kPlaces; ++place_) {
    std::uintptr_t free = kFree;
    if (covered[place_].compare_exchange_strong(free, kIdle)) return;
  }
}

Veil::~Veil() {
  lift();
  if (place_ < kPlaces) covered[place_].store(kFree, std::memory_order_release);
}

void Veil::cover(std::byte* byte) {
  if (place_ >= kPlaces) return;
  const std::uintptr_t page = reinterpret_cast<std::uintptr_t>(byte) / page_bytes() * page_bytes();
  covered[place_].store(page, std::memory_order_release);
  if (::mprotect(reinterpret_cast<void*>(page), page_bytes(), PROT_NONE) != 0)
    covered[place_].store(kIdle, std::memory_order_release);
}

void Veil::lift() {
  if (place_ >= kPlaces) return;
  const std::uintptr_t page = covered[place_].load(std::memory_order_relaxed);
  if (page <= kIdle) return;
  uncover(page);
  covered[place_].store(kIdle, std::memory_order_release);
}

bool Veil::lifted_at(std::uintptr_t address) {
  const std::uintptr_t bytes = page_bytes();
  for (const std::atomic<std::uintptr_t>& place : covered) {
    const std::uintptr_t page = place.load(std::memory_order_acquire);
    if (page <= kIdle || address < page || address - page >= bytes) continue;
    pause_here();
    uncover(page);
    return true;
  }
  return false;
}

void pause_here() {
  // Not random, only scattered: many threads draw from it.
  const std::uint32_t draw = draws.fetch_add(0x9E3779B1u, std::memory_order_relaxed) >> 7;
  if (draw % kSleepOnceIn != 0) {
    ::sched_yield();
    return;
  }
  timespec sleep{};
  sleep.tv_nsec = kShortestSleep + static_cast<long>(draw) % kSleepRange;
  ::nanosleep(&sleep, nullptr);
}

}  // namespace fusediff
