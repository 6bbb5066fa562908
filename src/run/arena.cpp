#include "run/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace fusediff {
namespace {

// Beyond this the process's number of mappings (65530 by default, three a slot) would come into sight.
constexpr std::size_t kMaxFreeSlots = 4096;

std::size_t page_bytes() {
  static const std::size_t bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

// Classes 0..3 are 1 to 4 pages; then each power of two is cut in four: 5 6 7 8, 10 12 14 16, 20 ...
std::size_t class_of(std::size_t pages) {
  if (pages <= 4) return pages - 1;
  const auto power = static_cast<unsigned>(std::bit_width(pages - 1)) - 3;  // pages - 1 = 1xx followed by `power` bits
  return std::size_t{power} * 4 + ((pages - 1) >> power);
}

std::size_t pages_of_class(std::size_t size_class) {
  if (size_class < 4) return size_class + 1;
  const std::size_t power = size_class / 4 - 1;
  return (size_class - power * 4 + 1) << power;
}

std::size_t class_for(std::size_t bytes) { return class_of((bytes + page_bytes() - 1) / page_bytes()); }

void fill(std::byte* begin, std::byte* end, std::byte value) {
  if (begin < end) std::memset(begin, std::to_integer<int>(value), static_cast<std::size_t>(end - begin));
}

}  // namespace

void Slot::guard_around(std::byte* used_begin, std::byte* used_end, std::byte guard) {
  if (guard != guard_) forget();
  fill(dirty_begin_, std::min(dirty_end_, used_begin), guard);
  fill(std::max(dirty_begin_, used_end), dirty_end_, guard);
  guard_ = guard;
  dirty_begin_ = used_begin;
  dirty_end_ = used_end;
}

void Slot::forget() {
  dirty_begin_ = begin_;
  dirty_end_ = end_;
}

Arena::Arena(std::size_t retained_bytes) : retained_bytes_(retained_bytes) {}

Arena::~Arena() {
  for (const auto& slot : slots_) ::munmap(slot->begin_ - kGuardReach, slot->size() + 2 * kGuardReach);
}

std::size_t Arena::slot_bytes(std::size_t bytes) { return pages_of_class(class_for(bytes)) * page_bytes(); }

Slot* Arena::acquire(std::size_t bytes) {
  const std::size_t size_class = class_for(bytes);
  if (size_class >= free_.size()) free_.resize(size_class + 1);
  auto& stack = free_[size_class];
  if (!stack.empty()) {
    Slot* slot = stack.back();
    stack.pop_back();
    slot->last_use_ = ++uses_;
    return slot;
  }
  const std::size_t size = pages_of_class(size_class) * page_bytes();
  void* region = ::mmap(nullptr, size + 2 * kGuardReach, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (region == MAP_FAILED) return nullptr;
  std::byte* begin = static_cast<std::byte*>(region) + kGuardReach;
  if (::mprotect(begin, size, PROT_READ | PROT_WRITE) != 0) {
    ::munmap(region, size + 2 * kGuardReach);
    return nullptr;
  }
  auto slot = std::make_unique<Slot>();
  slot->begin_ = begin;
  slot->end_ = begin + size;
  slot->size_class_ = size_class;
  slot->last_use_ = ++uses_;
  slot->forget();
  mapped_bytes_ += size;
  return slots_.emplace_back(std::move(slot)).get();
}

void Arena::release(Slot* slot) { free_[slot->size_class_].push_back(slot); }

void Arena::trim() {
  if (mapped_bytes_ <= retained_bytes_ && slots_.size() <= kMaxFreeSlots) return;
  std::vector<Slot*> unused;
  for (const auto& stack : free_) unused.insert(unused.end(), stack.begin(), stack.end());
  // One large slot must not drive out all the small ones: it goes first, then the longest unused.
  const std::size_t large = retained_bytes_ / 4;
  std::sort(unused.begin(), unused.end(), [large](const Slot* a, const Slot* b) {
    return (a->size() > large) != (b->size() > large) ? a->size() > large : a->last_use_ < b->last_use_;
  });
  // Down to three quarters, so that this does not happen again at the next run.
  const std::size_t keep_bytes = retained_bytes_ / 4 * 3;
  const std::size_t keep_slots = kMaxFreeSlots / 4 * 3;
  std::size_t kept = slots_.size();
  for (Slot* slot : unused) {
    if (mapped_bytes_ <= keep_bytes && kept <= keep_slots) break;
    mapped_bytes_ -= slot->size();
    ::munmap(slot->begin_ - kGuardReach, slot->size() + 2 * kGuardReach);
    slot->begin_ = nullptr;
    --kept;
  }
  for (auto& stack : free_) std::erase_if(stack, [](const Slot* slot) { return slot->begin_ == nullptr; });
  std::erase_if(slots_, [](const auto& slot) { return slot->begin_ == nullptr; });
}

bool Arena::in_guard(std::uintptr_t address) const {
  for (const auto& slot : slots_) {
    const auto begin = reinterpret_cast<std::uintptr_t>(slot->begin_);
    const auto end = reinterpret_cast<std::uintptr_t>(slot->end_);
    if (address < begin && begin - address <= kGuardReach) return true;
    if (address >= end && address - end < kGuardReach) return true;
  }
  return false;
}

}  // namespace fusediff
