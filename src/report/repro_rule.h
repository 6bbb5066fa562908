// The numbers in the sentences of two oracles, for a script that has to hold outputs against the same rule.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace fusediff {

// what: the sentence of an `always` rule that is broken. {"kind": "distinct" | "range" | "finite" | "row_sums" |
// "permutation", "row": .. and the kind's own numbers}; null where it says none of these.
nlohmann::ordered_json broken_rule(const std::string& what);

// what: the sentence of a call that passed the memory cap. Bytes; nothing where it names no cap.
std::optional<std::uint64_t> memory_cap(const std::string& what);

}  // namespace fusediff
