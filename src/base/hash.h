// XXH3-128 of bytes: identity of tensors, cases and signatures. Not for security.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace fusediff {

struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  bool operator==(const Hash128&) const = default;
  // 32 lower-case hex digits, high half first (xxHash's canonical form).
  std::string hex() const;
};

// XXH3-128 with seed 0, implementation chosen at run time for the CPU; the same value on every machine.
Hash128 hash128(std::span<const std::byte> bytes);
Hash128 hash128(std::string_view text);

}  // namespace fusediff
