#include "run/guard_bytes.h"

#include <algorithm>
#include <cstring>

namespace fusediff {

std::size_t first_other(const std::byte* bytes, std::size_t size, std::byte value) {
  if (size == 0) return 0;
  // Every byte equals its neighbour and the first equals the value: one pass of the C library's vector code.
  if (bytes[0] == value && std::memcmp(bytes, bytes + 1, size - 1) == 0) return size;
  return static_cast<std::size_t>(std::find_if(bytes, bytes + size, [value](std::byte b) { return b != value; }) -
                                  bytes);
}

std::size_t last_other(const std::byte* bytes, std::size_t size, std::byte value) {
  for (std::size_t i = size; i-- > 0;) {
    if (bytes[i] != value) return i;
  }
  return size;
}

std::size_t count_other(const std::byte* bytes, std::size_t size, std::byte value) {
  return size - static_cast<std::size_t>(std::count(bytes, bytes + size, value));
}

}  // namespace fusediff
