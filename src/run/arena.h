// Memory between guard regions, mapped once and reused. It knows nothing of tensors; where in a slot one lies is
// decided in run/placement.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace fusediff {

// Reach of the inaccessible region on either side of a slot: a stray row of a wide tensor still lands in it.
inline constexpr std::size_t kGuardReach = std::size_t{64} << 10;

// Whole pages, readable and writable, with kGuardReach inaccessible bytes on both sides. Outside of [dirty_begin,
// dirty_end) every byte is known to hold `guard`.
class Slot {
 public:
  std::byte* begin() const { return begin_; }
  std::byte* end() const { return end_; }
  std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }

  // Makes every byte outside of [used_begin, used_end) hold `guard`, writing only those that may not. The bytes inside
  // are left as they are.
  void guard_around(std::byte* used_begin, std::byte* used_end, std::byte guard);
  // Somebody else wrote here: nothing is known of any byte.
  void forget();

 private:
  friend class Arena;
  std::byte* begin_ = nullptr;
  std::byte* end_ = nullptr;
  std::byte* dirty_begin_ = nullptr;
  std::byte* dirty_end_ = nullptr;
  std::byte guard_{0};
  std::size_t size_class_ = 0;
  std::uint64_t last_use_ = 0;
};

// Not thread-safe.
class Arena {
 public:
  // Slots that are free and together larger than `retained_bytes` go back to the system, the longest unused first.
  explicit Arena(std::size_t retained_bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // A slot of at least `bytes` (> 0): the next of about four size classes per power of two, in whole pages. nullptr:
  // the system has no memory. The last slot of a class that was given back is the first to be used again.
  Slot* acquire(std::size_t bytes);
  void release(Slot* slot);
  // Gives back what is above the limit. Makes system calls only then.
  void trim();

  // Whether the address lies in the guard region of any slot.
  bool in_guard(std::uintptr_t address) const;
  std::size_t mapped_bytes() const { return mapped_bytes_; }  // without guard regions
  std::size_t slot_count() const { return slots_.size(); }
  // Bytes of the slot that acquire(bytes) gives.
  static std::size_t slot_bytes(std::size_t bytes);

 private:
  std::size_t retained_bytes_;
  std::size_t mapped_bytes_ = 0;
  std::uint64_t uses_ = 0;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<std::vector<Slot*>> free_;  // [size class]
};

}  // namespace fusediff
