// Writes plain data as a Python literal that a person reads. Knows nothing of what it means.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace fusediff {

// What fits stands on one line of at most 120 columns; else an entry a line, indented by four columns a level. column:
// of the literal's first character on its line; indent: of that line. Doubles that are not finite become float("inf")
// and the like.
std::string python_literal(const nlohmann::ordered_json& value, std::size_t column = 0, std::size_t indent = 0);

// Text that may stand between the three quotes of a docstring.
std::string python_docstring(const std::string& text);

}  // namespace fusediff
