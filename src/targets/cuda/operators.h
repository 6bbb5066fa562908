// How a path of an operator runs on a context: a stream of it, the dispatch over dtypes, and the wait at the end. A
// Context has stream(), a DeviceStream or a HostStream, and finish(), which returns when all launched work is done or
// throws. Not here: the operators (operators_*.h).
#pragma once

#include "kit/target.h"

namespace fusediff::cuda {

#define FUSEDIFF_CUDA_LIKE_BUILTIN(name) R"({"name": ")" name R"(", "like": "builtin", "paths": ["fused", "unfused"]})"

// Runs f(stream) and waits, also where f throws: the tensors of a call may go when it has returned.
template <class Context, class F>
void run_on(const kit::Call& call, F&& f) {
  Context& context = call.context<Context>();
  auto stream = context.stream();
  try {
    f(stream);
  } catch (...) {
    context.abandon();
    throw;
  }
  context.finish();
}

template <class F>
void by_any_float(const kit::Tensor& tensor, F&& f) {
  kit::by_dtype<float, kit::Half, kit::BFloat16, kit::F8E4M3, kit::F8E5M2, double>(tensor, f);
}

}  // namespace fusediff::cuda
