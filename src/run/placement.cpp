#include "run/placement.h"

#include <limits>

namespace fusediff {
namespace {

constexpr std::size_t kPage = 4096;  // what every page size is a multiple of

// Bytes in front of the place's first address when the tensor lies in the middle.
std::size_t lead(const Placed& placed) {
  const std::size_t least = (kMiddleGuard + placed.align - 1) / placed.align * placed.align;
  return placed.break_align64 && least % 64 == 0 && placed.align % 64 != 0 ? least + placed.align : least;
}

}  // namespace

std::size_t room_for(const Placed& placed) {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max() / 4;
  if (placed.bytes > kMost || placed.offset > kMost || placed.align > kMost) return kMost;
  const std::size_t beyond_page = placed.align > kPage || kPage % placed.align != 0 ? placed.align : 0;
  switch (placed.place) {
    case Place::kEnd:
      return placed.bytes + beyond_page;
    case Place::kStart:
      return placed.offset + placed.bytes + beyond_page;
    case Place::kMiddle:
      break;
  }
  return lead(placed) + placed.offset + placed.bytes + kMiddleGuard + beyond_page;
}

std::uintptr_t address_in(const Placed& placed, std::uintptr_t begin, std::uintptr_t end) {
  if (placed.place == Place::kEnd) {
    const std::uintptr_t last = end - placed.bytes;
    return last - last % placed.align;
  }
  const std::uintptr_t aligned = (begin + placed.align - 1) / placed.align * placed.align;
  return aligned + (placed.place == Place::kMiddle ? lead(placed) : 0) + placed.offset;
}

}  // namespace fusediff
