// The random source of tensor values: XXH3-64 of an element's index, as 8 little-endian bytes, with the seed; the very
// number that XXH3_64bits_withSeed gives (xxHash 0.8, the branch for 4 to 8 bytes), with what depends on the seed alone
// taken out of the loop. Nothing about distributions here.
#pragma once

#include <cstdint>

namespace fusediff {

class CounterHash {
 public:
  explicit CounterHash(std::uint64_t seed) : flip_(kSecret - (seed ^ (swap32(seed) << 32))) {}

  std::uint64_t at(std::uint64_t index) const {
    constexpr std::uint64_t kPrime = 0x9FB21C651E98DF25u;
    std::uint64_t h = rotl(index, 32) ^ flip_;
    h ^= rotl(h, 49) ^ rotl(h, 24);
    h *= kPrime;
    h ^= (h >> 35) + 8;
    h *= kPrime;
    return h ^ (h >> 28);
  }
  // at(index) scaled to [0, n): the high half of at(index) * n. REQUIRES: n > 0.
  std::uint64_t below(std::uint64_t index, std::uint64_t n) const { return scale(at(index), n); }

  static std::uint64_t scale(std::uint64_t hash, std::uint64_t n) {
    return static_cast<std::uint64_t>((static_cast<Wide>(hash) * n) >> 64);
  }

 private:
  __extension__ typedef unsigned __int128 Wide;
  static constexpr std::uint64_t kSecret = 0x1CAD21F72C81017Cu ^ 0xDB979083E96DD4DEu;  // bytes 8 to 23 of xxHash's

  static constexpr std::uint64_t rotl(std::uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }
  static constexpr std::uint64_t swap32(std::uint64_t x) {
    return ((x & 0xFF) << 24) | ((x & 0xFF00) << 8) | ((x >> 8) & 0xFF00) | ((x >> 24) & 0xFF);
  }
  std::uint64_t flip_;
};

}  // namespace fusediff
