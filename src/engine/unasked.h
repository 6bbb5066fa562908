// Which questions the record of an operator leaves out, and what its owner would add to have them asked. Runs nothing.
#pragma once

#include <string>
#include <vector>

#include "model/schema.h"

namespace fusediff {

// A sentence each: "whether a row depends on its batch: add `rows`".
std::vector<std::string> unasked(const Operator& op);
// Where no path gives the outputs in f64, which only a run can tell.
inline constexpr const char* kNoTruth =
    "whether a difference is rounding or damage: no path takes f64; let `unfused` take it, or add a path `reference`";

}  // namespace fusediff
