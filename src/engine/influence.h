// Changes each input and attribute in turn on both sides: what moves one side's outputs and not the other's names a
// flag that is dropped, a gradient that is drawn anew, a stride that is ignored.
#pragma once

#include <string>
#include <vector>

#include "engine/investigate.h"
#include "model/case.h"

namespace fusediff {

// Sentences such as "fused does not follow grad_out: changing it moves unfused and not fused". differing: the logical
// row-major index of the first difference in the accused output.
std::vector<std::string> find_influence(const Scene& scene, std::int64_t differing);

}  // namespace fusediff
