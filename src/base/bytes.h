// Runs of bytes. std::equal compares std::byte one at a time; this is memcmp.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

namespace fusediff {

inline bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

}  // namespace fusediff
