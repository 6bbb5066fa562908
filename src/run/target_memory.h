// Blocks of a target's own memory that belong to one context, kept for reuse while the context is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "run/foreign_calls.h"
#include "run/placement.h"

namespace fusediff {

// Guard bytes that a tensor has on both sides in the target's memory, which has no guard pages: a page is more than any
// store of a vector or tile is wide, and little beside the latency of a transfer.
inline constexpr std::size_t kTargetGuard = 4096;

// Bytes of a block that has room for the tensor, the guards, and a start of the window at a page whatever the block's
// address is.
std::size_t block_bytes(const Placed& placed);
// Where the tensor lies in a block at `address`: the same modulo 4096 as in host memory.
std::size_t offset_in_block(const Placed& placed, std::uintptr_t address);

class TargetMemory {
 public:
  // nullptr: the execution says why.
  void* acquire(ForeignCalls& calls, void* context, std::size_t bytes, std::string_view what);
  void give_back(void* block, std::size_t bytes) { free_.push_back({block, bytes}); }
  // Releases the free blocks, all of them or only where they are together more than `retained_bytes`.
  void release_all(ForeignCalls& calls, void* context);
  void trim(ForeignCalls& calls, void* context, std::size_t retained_bytes);

 private:
  struct Block {
    void* memory;
    std::size_t bytes;
  };
  std::vector<Block> free_;
};

}  // namespace fusediff
