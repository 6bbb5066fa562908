// Where in a slot the bytes of a tensor lie. Arithmetic only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/tensor.h"

namespace fusediff {

// Guard bytes kept on both sides of a tensor in the middle: more than the widest vector store of today's CPUs.
inline constexpr std::size_t kMiddleGuard = 256;
inline constexpr std::size_t kWorkspaceAlign = 64;

struct Placed {
  std::size_t bytes = 0;  // of the tensor, gaps included
  std::size_t align = 1;  // of its first byte; with an offset, of the byte that lies `offset` before it
  Place place = Place::kEnd;
  std::size_t offset = 0;     // bytes from the place's end; kStart and kMiddle
  bool break_align64 = true;  // kMiddle: a first byte that is not aligned to 64, where `align` allows
};

// Bytes that a window must have. Saturates instead of overflowing.
std::size_t room_for(const Placed& placed);

// Address of the first byte in a window [begin, end) that starts and ends at a page and has the room: the same modulo
// 4096 for every window of equal size.
std::uintptr_t address_in(const Placed& placed, std::uintptr_t begin, std::uintptr_t end);

}  // namespace fusediff
