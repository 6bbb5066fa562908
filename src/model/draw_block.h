// One fill over one block of one role: what values.cpp lays together into a tensor.
#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"
#include "model/role_recipes.h"
#include "model/schema.h"

namespace fusediff {

struct BlockPlace {
  Role role = Role::kActivation;
  DType dtype = DType::kF32;
  Block block;
  bool patch = false;
};

// Draws the elements of the block into out, of size block.count() elements. A recipe that the role does not take, and
// parameters that are not legal, are errors without a pointer.
Status draw_block(const Fill& fill, const BlockPlace& place, const RoleLimits& limits, std::span<std::byte> out);
// The same of a role that takes ordinary numbers, as doubles before they are rounded into the dtype; constants and bits
// are the values of their elements.
Status draw_doubles(const Fill& fill, const BlockPlace& place, std::span<double> out);

}  // namespace fusediff
