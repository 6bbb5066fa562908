#include "run/target_memory.h"

#include "target/host_memory.h"

namespace fusediff {
namespace {

constexpr std::size_t kPage = 4096;

std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

// A host closes these pages of a block, which itself lies at a page.
static_assert(kTargetGuard == kGuardPagesBefore * kBlockPage && kTargetGuard + kPage == kGuardPagesBehind * kBlockPage);

std::size_t block_bytes(const Placed& placed) { return whole_pages(room_for(placed)) + 2 * kTargetGuard + kPage; }

std::size_t offset_in_block(const Placed& placed, std::uintptr_t address) {
  const std::uintptr_t begin = whole_pages(address + kTargetGuard);
  return address_in(placed, begin, begin + whole_pages(room_for(placed))) - address;
}

void* TargetMemory::acquire(ForeignCalls& calls, void* context, std::size_t bytes, std::string_view what) {
  for (std::size_t i = free_.size(); i-- > 0;) {
    if (free_[i].bytes != bytes) continue;
    void* memory = free_[i].memory;
    free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(i));
    return memory;
  }
  return calls.alloc(context, bytes, what);
}

void TargetMemory::release_all(ForeignCalls& calls, void* context) {
  while (!free_.empty() && calls.harmless()) {
    void* memory = free_.back().memory;
    free_.pop_back();
    calls.release(context, memory);
  }
  free_.clear();
}

void TargetMemory::trim(ForeignCalls& calls, void* context, std::size_t retained_bytes) {
  std::size_t total = 0;
  for (const Block& block : free_) total += block.bytes;
  if (total > retained_bytes) release_all(calls, context);
}

}  // namespace fusediff
