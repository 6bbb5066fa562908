// Reads a target's schema text. Refuses what it does not know, with the JSON pointer and what would be legal.
#pragma once

#include <functional>
#include <string_view>

#include "base/status.h"
#include "model/schema.h"

namespace fusediff {

inline constexpr int kSchemaVersion = 1;

// The schema that "like" names, e.g. "builtin"; nullptr: not to be had here.
using SchemaLookup = std::function<const Schema*(std::string_view target)>;

// Also refused: a `where` that no legal call satisfies, names that nothing declares, a `=x` circle.
Result<Schema> parse_schema(std::string_view json, const SchemaLookup& lookup);

}  // namespace fusediff
