// The relations of rows: one alone, all in another order, the batch in two calls. Makes no call and judges nothing.
#pragma once

#include <cstdint>
#include <string>

#include "engine/relation_runs.h"

namespace fusediff {

// kRowAlone, kRowsPermuted, kBatchSplit.
Asked ask_rows(const Case& c, const Prepared& prepared, const std::string& path, std::uint64_t max_bytes);

}  // namespace fusediff
