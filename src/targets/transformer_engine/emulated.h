// What the two emulation libraries of the tests share.
#pragma once

#include <cstddef>
#include <cstdint>

#define FUSEDIFF_TE_EXPORT __attribute__((visibility("default")))

namespace fusediff::te {

// The host's address of an emulated device address, and the reverse. Null stays null.
template <class T>
T* host_address(T* device) {
  constexpr uintptr_t kFlipped = uintptr_t{1} << 46;
  return device == nullptr ? nullptr : reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(device) ^ kFlipped);
}

}  // namespace fusediff::te
