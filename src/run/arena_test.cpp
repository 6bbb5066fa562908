#include "run/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "run/guard_bytes.h"

namespace fusediff {
namespace {

TEST(Arena, SizeClassesLeaveLittleSlack) {
  for (std::size_t bytes = 1; bytes < (std::size_t{1} << 30); bytes += 1 + bytes / 7) {
    const std::size_t slot = Arena::slot_bytes(bytes);
    ASSERT_GE(slot, bytes);
    ASSERT_EQ(slot % 4096, 0u);
    ASSERT_LE(slot, bytes + bytes / 4 + 4096);
    ASSERT_EQ(Arena::slot_bytes(slot), slot);
  }
}

TEST(Arena, ReusesTheLastSlotOfAClass) {
  Arena arena(1 << 20);
  Slot* first = arena.acquire(5000);
  Slot* second = arena.acquire(5000);
  EXPECT_NE(first, second);
  arena.release(second);
  arena.release(first);
  EXPECT_EQ(arena.acquire(8000), first);
  EXPECT_EQ(arena.acquire(8000), second);
  EXPECT_EQ(arena.slot_count(), 2u);
}

TEST(Arena, TrimsTheLongestUnusedAboveTheLimit) {
  Arena arena(256 << 10);
  std::vector<Slot*> slots;
  for (std::size_t i = 1; i <= 16; ++i) slots.push_back(arena.acquire(i * 4096));
  for (Slot* slot : slots) arena.release(slot);
  EXPECT_GT(arena.mapped_bytes(), std::size_t{256} << 10);
  arena.trim();
  EXPECT_LE(arena.mapped_bytes(), std::size_t{256} << 10);
  EXPECT_GT(arena.slot_count(), 0u);
  Slot* large = arena.acquire(1 << 20);
  arena.trim();  // a slot in use stays
  EXPECT_GE(arena.mapped_bytes(), std::size_t{1} << 20);
  std::memset(large->begin(), 1, large->size());
  arena.release(large);
  arena.trim();
  EXPECT_LE(arena.mapped_bytes(), std::size_t{256} << 10);
}

TEST(Arena, KnowsItsGuardRegions) {
  Arena arena(1 << 20);
  Slot* slot = arena.acquire(100);
  const auto begin = reinterpret_cast<std::uintptr_t>(slot->begin());
  const auto end = reinterpret_cast<std::uintptr_t>(slot->end());
  EXPECT_TRUE(arena.in_guard(begin - 1));
  EXPECT_TRUE(arena.in_guard(begin - kGuardReach));
  EXPECT_TRUE(arena.in_guard(end));
  EXPECT_TRUE(arena.in_guard(end + kGuardReach - 1));
  EXPECT_FALSE(arena.in_guard(begin));
  EXPECT_FALSE(arena.in_guard(end - 1));
  EXPECT_FALSE(arena.in_guard(0));
}

TEST(Arena, GuardBytesHoldAroundEveryUse) {
  Arena arena(1 << 20);
  Slot* slot = arena.acquire(4096);
  const std::pair<std::size_t, std::size_t> uses[] = {{0, 4096}, {100, 200},   {150, 3000}, {0, 0},
                                                      {50, 60},  {4000, 4096}, {0, 10}};
  for (const std::byte guard : {std::byte{0x3E}, std::byte{0x3E}, std::byte{0xC1}}) {
    for (const auto& [begin, end] : uses) {
      slot->guard_around(slot->begin() + begin, slot->begin() + end, guard);
      ASSERT_EQ(first_other(slot->begin(), begin, guard), begin);
      ASSERT_EQ(first_other(slot->begin() + end, 4096 - end, guard), 4096 - end);
      std::memset(slot->begin() + begin, 0x77, end - begin);
    }
  }
  slot->begin()[2000] = std::byte{1};
  slot->forget();
  slot->guard_around(slot->begin(), slot->begin(), std::byte{0xC1});
  EXPECT_EQ(first_other(slot->begin(), 4096, std::byte{0xC1}), 4096u);
}

TEST(GuardBytes, FindsEverySingleChange) {
  std::vector<std::byte> bytes(300, std::byte{7});
  EXPECT_EQ(first_other(bytes.data(), bytes.size(), std::byte{7}), 300u);
  EXPECT_EQ(last_other(bytes.data(), bytes.size(), std::byte{7}), 300u);
  EXPECT_EQ(first_other(bytes.data(), bytes.size(), std::byte{8}), 0u);
  EXPECT_EQ(first_other(bytes.data(), 0, std::byte{8}), 0u);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = std::byte{9};
    EXPECT_EQ(first_other(bytes.data(), bytes.size(), std::byte{7}), i);
    EXPECT_EQ(last_other(bytes.data(), bytes.size(), std::byte{7}), i);
    EXPECT_EQ(count_other(bytes.data(), bytes.size(), std::byte{7}), 1u);
    bytes[i] = std::byte{7};
  }
}

}  // namespace
}  // namespace fusediff
