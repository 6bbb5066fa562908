#include "run/buffer.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "model/dtype.h"
#include "run/guard_bytes.h"

namespace fusediff {
namespace {

std::size_t distance(const std::byte* from, const std::byte* to) { return static_cast<std::size_t>(to - from); }

void set_bytes(std::byte* at, std::byte value, std::size_t bytes) {
  std::memset(at, std::to_integer<int>(value), bytes);
}

void append(const Buffer& named, bool gap, bool behind, std::size_t away, std::size_t changed,
            std::vector<Overrun>& overruns) {
  Overrun overrun;
  overrun.tensor = named.name;
  overrun.is_output = named.is_output;
  overrun.gap = gap;
  overrun.behind = behind;
  overrun.distance = static_cast<std::int64_t>(away);
  overrun.bytes = static_cast<std::int64_t>(changed);
  overruns.push_back(std::move(overrun));
}

}  // namespace

Placed placed(const Tensor& tensor, std::optional<Place> forced) {
  const std::size_t element = size_of(tensor.dtype);
  Placed placed;
  placed.bytes = static_cast<std::size_t>(extent(tensor)) * element;
  placed.align = std::max(element, static_cast<std::size_t>(std::max<std::int64_t>(tensor.align, 1)));
  placed.place = forced.value_or(tensor.place);
  placed.offset = static_cast<std::size_t>(tensor.offset) * element;
  return placed;
}

Placed placed_workspace(std::size_t bytes, std::optional<Place> forced) {
  return {bytes, kWorkspaceAlign, forced.value_or(Place::kEnd), 0, false};
}

void fill_input(Buffer& buffer, std::span<const std::byte> stored, std::byte guard) {
  buffer.slot->guard_around(buffer.first, buffer.first + buffer.bytes, guard);
  if (buffer.dense() && stored.size() == buffer.bytes) {
    std::memcpy(buffer.first, stored.data(), stored.size());
    return;
  }
  set_bytes(buffer.first, guard, buffer.bytes);
  buffer.layout.scatter(stored.data(), buffer.first);
}

void fill_constant(Buffer& buffer, std::byte value, std::byte guard) {
  buffer.slot->guard_around(buffer.first, buffer.first + buffer.bytes, guard);
  if (buffer.dense()) {
    set_bytes(buffer.first, value, buffer.bytes);
    return;
  }
  set_bytes(buffer.first, guard, buffer.bytes);
  buffer.layout.fill(buffer.first, value);
}

std::optional<ChangedInput> changed_elements(const Buffer& buffer, int index, std::span<const std::byte> stored,
                                             std::vector<std::byte>& scratch) {
  const std::byte* now = buffer.first;
  if (!buffer.dense()) {
    scratch.resize(stored.size());
    buffer.layout.gather(buffer.first, scratch.data());
    now = scratch.data();
  }
  if (stored.empty() || std::memcmp(now, stored.data(), stored.size()) == 0) return std::nullopt;
  const std::size_t element = size_of(buffer.tensor->dtype);
  ChangedInput changed;
  changed.input = index;
  for (std::size_t at = 0; at + element <= stored.size(); at += element) {
    if (std::memcmp(now + at, stored.data() + at, element) == 0) continue;
    if (changed.elements++ == 0) changed.first = static_cast<std::int64_t>(at / element);
  }
  return changed;
}

void gather(const Buffer& buffer, std::vector<std::byte>& into) {
  if (buffer.dense()) {
    into.assign(buffer.first, buffer.first + buffer.bytes);
    return;
  }
  into.resize(static_cast<std::size_t>(element_count(*buffer.tensor)) * size_of(buffer.tensor->dtype));
  buffer.layout.gather(buffer.first, into.data());
}

void find_overruns(const Buffer& buffer, const Buffer* over, std::byte guard, std::vector<Overrun>& overruns) {
  const Buffer& named = over == nullptr ? buffer : *over;
  const std::byte* begin = buffer.slot->begin();
  const std::byte* end = buffer.slot->end();
  const std::byte* behind = buffer.first + buffer.bytes;
  bool touched = false;
  if (const std::size_t size = distance(begin, buffer.first); first_other(begin, size, guard) != size) {
    const std::size_t nearest = last_other(begin, size, guard);
    append(named, false, false, size - nearest, count_other(begin, size, guard), overruns);
    touched = true;
  }
  const bool strided = !buffer.dense() || (over != nullptr && !over->dense());
  if (strided) {
    // With the elements overwritten, every byte that differs is a gap that was written to.
    buffer.layout.fill(buffer.first, guard);
    if (over != nullptr) over->layout.fill(buffer.first, guard);
    const std::size_t changed = first_other(buffer.first, buffer.bytes, guard);
    if (changed != buffer.bytes) {
      append(named, true, true, changed, count_other(buffer.first, buffer.bytes, guard), overruns);
      touched = true;
    }
  }
  if (const std::size_t size = distance(behind, end); first_other(behind, size, guard) != size) {
    append(named, false, true, first_other(behind, size, guard) + 1, count_other(behind, size, guard), overruns);
    touched = true;
  }
  if (touched) buffer.slot->forget();
}

std::optional<GuardHit> guard_hit(const Buffer& buffer, const Buffer* over, std::uintptr_t address) {
  if (buffer.slot == nullptr) return std::nullopt;
  GuardHit hit;
  hit.tensor = over == nullptr ? buffer.name : over->name;
  const auto first = reinterpret_cast<std::uintptr_t>(buffer.data);
  if (buffer.target_block != nullptr) {  // its own pages are the guards
    const auto block = reinterpret_cast<std::uintptr_t>(buffer.target_block);
    if (address < block || address - block >= buffer.slot->size()) return std::nullopt;
    hit.behind = address >= first + buffer.bytes;
    hit.distance = static_cast<std::int64_t>(hit.behind ? address - (first + buffer.bytes) + 1 : first - address);
    return address < first || hit.behind ? std::optional(hit) : std::nullopt;
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(buffer.slot->begin());
  const auto end = reinterpret_cast<std::uintptr_t>(buffer.slot->end());
  if (address >= end && address - end < kGuardReach) {
    hit.behind = true;
    hit.distance = static_cast<std::int64_t>(address - (first + buffer.bytes) + 1);
    return hit;
  }
  if (address < begin && begin - address <= kGuardReach) {
    hit.behind = false;
    hit.distance = static_cast<std::int64_t>(first - address);
    return hit;
  }
  return std::nullopt;
}

}  // namespace fusediff
