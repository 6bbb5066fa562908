// A case at other sizes, its recipes kept: what a minimiser tries before it writes values out.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "model/case.h"
#include "model/schema.h"

namespace fusediff {

// Raw elements of a tensor that becomes smaller are their leading part. Overrides and patches keep their place, rows
// and columns counted; what would lie outside moves to the last, and so does the row that an experiment names; calls
// within it stay. The result may be illegal: a check says so.
Case resized(const Case& original, const Operator& op, const std::map<std::string, std::int64_t>& sizes,
             std::uint64_t max_bytes);

// The row that the experiment names: the last, where there are not so many.
void keep_row_inside(Case& c, const Operator& op);

}  // namespace fusediff
