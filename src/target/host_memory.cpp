#include "target/host_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>

namespace fusediff {
namespace {

constexpr std::uint64_t kRegionBytes = std::uint64_t{256} << 30;
// Each block takes three mappings of a host, which may have 65,530.
constexpr std::size_t kMostBlocks = 16384;
constexpr std::uint64_t kRetained = std::uint64_t{128} << 20;  // bytes that free blocks keep

std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + kBlockPage - 1) / kBlockPage * kBlockPage; }

}  // namespace

std::uint64_t HostMemory::size() { return kRegionBytes; }

Result<std::unique_ptr<HostMemory>> HostMemory::make() {
  const int descriptor = ::memfd_create("fusediff-host", MFD_CLOEXEC);
  if (descriptor < 0 || ::ftruncate(descriptor, static_cast<off_t>(kRegionBytes)) != 0) {
    const std::string why = std::strerror(errno);
    if (descriptor >= 0) ::close(descriptor);
    return our_error("no memory to share with a host process: " + why);
  }
  void* begin = ::mmap(nullptr, kRegionBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  if (begin == MAP_FAILED) {
    const std::string why = std::strerror(errno);
    ::close(descriptor);
    return our_error("no address space to share memory with a host process: " + why);
  }
  new (begin) LastWords{};
  return std::unique_ptr<HostMemory>(new HostMemory(descriptor, static_cast<std::byte*>(begin)));
}

HostMemory::~HostMemory() {
  ::munmap(begin_, kRegionBytes);
  ::close(descriptor_);
}

std::uint64_t HostMemory::offset_of(const void* memory) const {
  return static_cast<std::uint64_t>(static_cast<const std::byte*>(memory) - begin_);
}

std::byte* HostMemory::take_free(std::uint64_t size, bool exactly) {
  for (auto at = free_.lower_bound(size); at != free_.end() && (!exactly || at->first == size); ++at) {
    if (at->second.empty()) continue;
    const std::uint64_t offset = at->second.back();
    at->second.pop_back();
    resident_free_ -= std::min(resident_free_, at->first);
    return begin_ + offset + (at->first - size);  // at its end, so that the guard pages behind stay where they are
  }
  return nullptr;
}

std::byte* HostMemory::acquire(std::size_t bytes, bool& fresh) {
  const std::uint64_t size = whole_pages(bytes);
  const std::lock_guard lock(mutex_);
  fresh = false;
  if (std::byte* block = take_free(size, true); block != nullptr) return block;
  if (bytes_of_.size() >= kMostBlocks || size > kRegionBytes - next_) return take_free(size, false);
  fresh = true;
  const std::uint64_t offset = next_;
  next_ += size;
  bytes_of_[offset] = size;
  return begin_ + offset;
}

void HostMemory::release(std::byte* block) {
  const std::lock_guard lock(mutex_);
  auto at = bytes_of_.upper_bound(offset_of(block));
  if (at == bytes_of_.begin()) return;
  const auto [offset, size] = *--at;
  if (resident_free_ + size > kRetained) {
    ::fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                static_cast<off_t>(size));
  } else {
    resident_free_ += size;
  }
  free_[size].push_back(offset);
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> HostMemory::blocks() const {
  const std::lock_guard lock(mutex_);
  return {bytes_of_.begin(), bytes_of_.end()};
}

}  // namespace fusediff
