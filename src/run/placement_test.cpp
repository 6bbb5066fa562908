#include "run/placement.h"

#include <gtest/gtest.h>

namespace fusediff {
namespace {

constexpr std::uintptr_t kBase = 0x7f0000001000;

std::uintptr_t window(const Placed& placed) { return (room_for(placed) + 4095) / 4096 * 4096; }

TEST(Placement, EveryPlaceFitsAndIsAligned) {
  for (const Place place : {Place::kEnd, Place::kStart, Place::kMiddle}) {
    for (const std::size_t align : {1u, 2u, 8u, 12u, 48u, 64u, 256u, 4096u, 8192u}) {
      for (std::size_t bytes = 1; bytes < 9000; bytes = bytes * 3 + 1) {
        const Placed placed{bytes, align, place, place == Place::kEnd ? 0 : align * 3, true};
        const std::uintptr_t end = kBase + window(placed);
        const std::uintptr_t at = address_in(placed, kBase, end);
        ASSERT_EQ(at % align, 0u);
        ASSERT_GE(at, kBase);
        ASSERT_LE(at + bytes, end);
        if (place == Place::kEnd) {
          ASSERT_LT(end - (at + bytes), align);
        }
        if (place == Place::kMiddle) {
          ASSERT_GE(at - kBase, kMiddleGuard);
          ASSERT_GE(end - (at + bytes), kMiddleGuard);
        }
      }
    }
  }
}

TEST(Placement, StartAndOffsetAreExact) {
  EXPECT_EQ(address_in({40, 4, Place::kStart, 0, true}, kBase, kBase + 4096), kBase);
  EXPECT_EQ(address_in({40, 4, Place::kStart, 12, true}, kBase, kBase + 4096), kBase + 12);
}

TEST(Placement, TheMiddleLeavesAlignmentTo64) {
  for (const std::size_t align : {1u, 2u, 4u, 8u, 16u, 32u}) {
    EXPECT_NE(address_in({40, align, Place::kMiddle, 0, true}, kBase, kBase + 4096) % 64, 0u) << align;
    EXPECT_EQ(address_in({40, 64, Place::kMiddle, 0, false}, kBase, kBase + 4096) % 64, 0u) << align;
  }
}

}  // namespace
}  // namespace fusediff
