// Sizes and arguments of a description file: int64 expressions over names, + - * / % ( ) == != < <= > >= && || ! and
// the functions min(a, b) and max(a, b). The core evaluates what a schema says; this is for what stands beside it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace fusediff::opencl {

using Names = std::map<std::string, int64_t, std::less<>>;

// The value. Throws kit::Failure (FAILED) at an unknown name, an overflow, a division by zero or a syntax error; the
// text names the expression.
int64_t evaluate(std::string_view text, const Names& names);

// Throws as evaluate() does at a syntax error and at a name that is not in `names`; values do not matter.
void check_expression(std::string_view text, const Names& names);

// True where `text` is one name and nothing else.
bool is_name(std::string_view text);

}  // namespace fusediff::opencl
