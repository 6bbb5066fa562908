// A call on device memory, computed by a built-in operator on copies in host memory. For paths that serve as truth.
#pragma once

#include <string_view>

#include "kit/target.h"

namespace fusediff::aclnn {

// Copies every tensor of the call to the host, gaps between strided elements included, runs that path there and copies
// the outputs back.
void run_on_host(const kit::Call& call, const kit::Operator& op, std::string_view path);

}  // namespace fusediff::aclnn
