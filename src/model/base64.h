// Base64 of RFC 4648 section 4, strict: with padding, without line breaks, unused bits zero.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fusediff {

std::string to_base64(std::span<const std::byte> bytes);
// Nothing when the text is not exactly what to_base64 writes.
std::optional<std::vector<std::byte>> from_base64(std::string_view text);

}  // namespace fusediff
