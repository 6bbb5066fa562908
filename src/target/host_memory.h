// Memory that this process and a host process see both. Blocks of it hold the tensors of calls; the start holds what a
// host leaves behind when it dies. Which call a block serves is not known here.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/status.h"

namespace fusediff {

// In a block the pages that a host makes inaccessible: a stray access of the target ends there with its address.
inline constexpr std::size_t kBlockPage = 4096;
inline constexpr std::size_t kGuardPagesBefore = 1;
inline constexpr std::size_t kGuardPagesBehind = 2;

// At the very start of the region. Written by the signal handler of a host, read when it is gone.
struct LastWords {
  static constexpr std::uint32_t kWhole = 2;
  std::atomic<std::uint32_t> state;  // 0: nothing, 1: being written, kWhole
  std::int32_t signal;
  std::int32_t code;         // siginfo's si_code
  std::int32_t access;       // an Access
  std::uint64_t address;     // of SIGSEGV and SIGBUS
  std::uint64_t in_region;   // 1 + the address's offset in the region; 0: outside of it
  std::uint64_t stack;       // the stack pointer
  std::uint32_t own_thread;  // 0: a thread that served a call
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

// Then a parcel: the description of a target, longer than what a message may be.
inline constexpr std::uint64_t kParcelOffset = kBlockPage;
inline constexpr std::uint64_t kParcelBytes = std::uint64_t{4} << 20;
inline constexpr std::uint64_t kFirstBlock = kParcelOffset + kParcelBytes;

class HostMemory {
 public:
  // Sparse: only what is touched takes memory.
  static Result<std::unique_ptr<HostMemory>> make();
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  int descriptor() const { return descriptor_; }
  std::byte* begin() const { return begin_; }
  static std::uint64_t size();
  LastWords& last_words() const { return *reinterpret_cast<LastWords*>(begin_); }

  // A block of whole pages; fresh: no host has heard of it yet. nullptr: there is no room. Any thread. When there are
  // very many blocks it is the end of a larger one, whose pages before it are accessible.
  std::byte* acquire(std::size_t bytes, bool& fresh);
  void release(std::byte* block);
  std::uint64_t offset_of(const void* memory) const;
  // Blocks that a new host has to hear of: offset and bytes.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> blocks() const;

 private:
  HostMemory(int descriptor, std::byte* begin) : descriptor_(descriptor), begin_(begin) {}
  std::byte* take_free(std::uint64_t size, bool exactly);

  int descriptor_;
  std::byte* begin_;
  mutable std::mutex mutex_;
  std::uint64_t next_ = kFirstBlock;
  std::map<std::uint64_t, std::uint64_t> bytes_of_;           // offset -> bytes; a block keeps its size for good
  std::map<std::uint64_t, std::vector<std::uint64_t>> free_;  // bytes -> offsets
  std::uint64_t resident_free_ = 0;                           // bytes of free blocks that still hold memory
};

}  // namespace fusediff
