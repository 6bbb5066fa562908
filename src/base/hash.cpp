#include "base/hash.h"

#include <xxhash.h>
// After xxhash.h: sends XXH3_128bits to the variant for this CPU.
#include <xxh_x86dispatch.h>

#include <cstdio>

namespace fusediff {

std::string Hash128::hex() const {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(high),
                static_cast<unsigned long long>(low));
  return text;
}

Hash128 hash128(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

Hash128 hash128(std::string_view text) { return hash128(std::as_bytes(std::span(text))); }

}  // namespace fusediff
