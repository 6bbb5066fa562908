// Looks for bytes that are not the guard fill. No meaning here: which tensor they belong to is known elsewhere.
#pragma once

#include <cstddef>

namespace fusediff {

// Index of the first, and of the last, of `size` bytes that is not `value`; `size` when all are.
std::size_t first_other(const std::byte* bytes, std::size_t size, std::byte value);
std::size_t last_other(const std::byte* bytes, std::size_t size, std::byte value);
std::size_t count_other(const std::byte* bytes, std::size_t size, std::byte value);

}  // namespace fusediff
