// The operators of the target `cuda` on the CPU, for tests: the same kernels, their blocks and threads one after
// another (host_stream.h). Option order=forward|backward|shuffled. It is no target for users: it shows nothing of a
// GPU.
#include "cuda/host_stream.h"
#include "cuda/operators_mhc.h"
#include "cuda/operators_permute.h"
#include "cuda/operators_rows.h"

namespace fusediff::cuda {

class HostContext {
 public:
  explicit HostContext(std::string_view options) {
    if (options == "order=backward") {
      order_ = Order::kBackward;
    } else if (options == "order=shuffled") {
      order_ = Order::kShuffled;
    } else {
      kit::require(options.empty() || options == "order=forward", "unknown option \"", options,
                   "\": order=forward|backward|shuffled");
    }
  }

  HostStream stream() const { return HostStream(order_); }
  void finish() const {}
  void abandon() const {}

 private:
  Order order_ = Order::kForward;
};

}  // namespace fusediff::cuda

FUSEDIFF_KIT_TARGET_WITH_CONTEXT(fusediff::cuda::HostContext, "cuda_emulated", "1.0",
                                 fusediff::cuda::kAdd<fusediff::cuda::HostContext>,
                                 fusediff::cuda::kMhcPreSinkhorn<fusediff::cuda::HostContext>,
                                 fusediff::cuda::kMhcPreSinkhornGrad<fusediff::cuda::HostContext>,
                                 fusediff::cuda::kMoeGatingTopk<fusediff::cuda::HostContext>,
                                 fusediff::cuda::kMoePermute<fusediff::cuda::HostContext>,
                                 fusediff::cuda::kMoePermuteGrad<fusediff::cuda::HostContext>,
                                 fusediff::cuda::kMoeUnpermute<fusediff::cuda::HostContext>,
                                 fusediff::cuda::kMoeUnpermuteGrad<fusediff::cuda::HostContext>,
                                 fusediff::cuda::kSigmoid<fusediff::cuda::HostContext>)
