// What a signal handler's third argument says of a fault. Async-signal-safe; where the machine is not known, nothing.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "model/execution.h"

namespace fusediff {

#if defined(__x86_64__)
inline std::uintptr_t stack_pointer(const ucontext_t& context) {
  return static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RSP]);
}
inline Access access_of(const ucontext_t& context) {
  constexpr greg_t kPageFault = 14;
  constexpr greg_t kWriteBit = 2;
  const auto& registers = context.uc_mcontext.gregs;
  if (registers[REG_TRAPNO] != kPageFault) return Access::kUnknown;
  return (registers[REG_ERR] & kWriteBit) != 0 ? Access::kWrite : Access::kRead;
}
#elif defined(__aarch64__)
inline std::uintptr_t stack_pointer(const ucontext_t& context) { return context.uc_mcontext.sp; }
// The kernel appends records of (magic, size); the exception syndrome is one of them.
inline Access access_of(const ucontext_t& context) {
  constexpr std::uint32_t kSyndrome = 0x45535201;
  constexpr std::uint64_t kWriteBit = std::uint64_t{1} << 6;
  const auto* records = reinterpret_cast<const std::byte*>(context.uc_mcontext.__reserved);
  constexpr std::size_t kBytes = sizeof(context.uc_mcontext.__reserved);
  for (std::size_t at = 0; at + 16 <= kBytes;) {
    std::uint32_t head[2];
    std::memcpy(head, records + at, sizeof(head));
    if (head[0] == kSyndrome) {
      std::uint64_t syndrome;
      std::memcpy(&syndrome, records + at + 8, sizeof(syndrome));
      const std::uint64_t kind = (syndrome >> 26) & 0x3F;
      if (kind != 0x24 && kind != 0x25) return Access::kUnknown;  // no data abort
      return (syndrome & kWriteBit) != 0 ? Access::kWrite : Access::kRead;
    }
    if (head[0] == 0 || head[1] < 8) break;
    at += head[1];
  }
  return Access::kUnknown;
}
#else
inline std::uintptr_t stack_pointer(const ucontext_t&) { return 0; }
inline Access access_of(const ucontext_t&) { return Access::kUnknown; }
#endif

}  // namespace fusediff
