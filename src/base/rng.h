// Randomness for choices (which mutator, which size), never for tensor values: those are counter-based, model/values.h.
// The same seed gives the same choices on every machine and compiler.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fusediff {

// splitmix64 (Steele, Lea, Flood 2014): one addition and one finaliser a draw, any seed is good.
class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  // Uniform in [0, n). REQUIRES: n > 0.
  std::uint64_t below(std::uint64_t n) { return static_cast<std::uint64_t>((static_cast<Wide>(next()) * n) >> 64); }
  // Uniform in [lo, hi]. REQUIRES: lo <= hi.
  std::int64_t between(std::int64_t lo, std::int64_t hi) {
    const std::uint64_t width = static_cast<std::uint64_t>(hi) - static_cast<std::uint64_t>(lo) + 1;
    const std::uint64_t step = width == 0 ? next() : below(width);
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(lo) + step);
  }
  // True once in n draws. REQUIRES: n > 0.
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  // Uniform in [0, 1), a multiple of 2^-53.
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  template <typename List>
  auto& pick(List& list) {
    return list[static_cast<std::size_t>(below(list.size()))];
  }

 private:
  __extension__ typedef unsigned __int128 Wide;
  std::uint64_t state_;
};

}  // namespace fusediff
