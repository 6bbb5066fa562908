// Members of a JSON object (of nlohmann/json, ordered or not) that may be missing. Knows no message.
#pragma once

#include <cstdint>
#include <string>

namespace fusediff {

// "" where there is no such text.
template <typename Json>
std::string text_in(const Json& json, const char* key) {
  const auto at = json.find(key);
  return at == json.end() || !at->is_string() ? "" : at->template get<std::string>();
}

// 0 where there is no such number.
template <typename Json>
std::uint64_t number_in(const Json& json, const char* key) {
  const auto at = json.find(key);
  return at == json.end() || !at->is_number() ? 0 : at->template get<std::uint64_t>();
}

}  // namespace fusediff
