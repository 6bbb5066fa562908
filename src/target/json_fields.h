// Members of a JSON object that may be missing. Knows no message.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace fusediff {

// "" where there is no such text.
inline std::string text_in(const nlohmann::json& json, const char* key) {
  const auto at = json.find(key);
  return at == json.end() || !at->is_string() ? "" : at->get<std::string>();
}

// 0 where there is no such number.
inline std::uint64_t number_in(const nlohmann::json& json, const char* key) {
  const auto at = json.find(key);
  return at == json.end() || !at->is_number() ? 0 : at->get<std::uint64_t>();
}

}  // namespace fusediff
