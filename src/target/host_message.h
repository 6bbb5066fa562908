// The messages between a host and who uses it, as text: src/host/HOST.md lists them. No socket and no process here.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "target/fusediff_target.h"
#include "target/host_answer.h"

namespace fusediff {

// No message is longer, so that every socket takes one whole.
inline constexpr std::size_t kMaxHostMessage = std::size_t{128} << 10;

std::string write_open(std::string_view options);
// {"do": what, "context": ...} and, where they are not 0, "memory", "at" and "bytes".
std::string write_step(std::string_view what, std::uint64_t context, std::uint64_t memory = 0, std::uint64_t at = 0,
                       std::uint64_t bytes = 0);
// where: what stands for a tensor's memory in the message. cover: a byte of one, or null.
std::string write_call(std::string_view what, std::uint64_t context, const fusediff_call& call, const void* cover,
                       const std::function<std::uint64_t(const void*)>& where);

// Of a run's or another step's answer; what is not understood is FUSEDIFF_FAILED with words.
HostAnswer parse_host_answer(std::string_view text);

}  // namespace fusediff
