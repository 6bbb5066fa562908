// The relations of where tensors lie: dense, moved, an output on its input. Makes no call and judges nothing.
#pragma once

#include <cstdint>
#include <string>

#include "engine/relation_runs.h"

namespace fusediff {

// Addresses are told apart modulo this: a cache line, and the widest vector.
inline constexpr std::int64_t kMovedWithin = 64;

Asked ask_dense(const Case& c, const Prepared& prepared, const std::string& path, std::uint64_t max_bytes);
Asked ask_moved(const Prepared& prepared, const std::string& path);
Asked ask_inplace(const Case& c, const Prepared& prepared, const std::string& path, std::uint64_t max_bytes);

}  // namespace fusediff
