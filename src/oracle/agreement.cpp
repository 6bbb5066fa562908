#include "oracle/agreement.h"

#include <tuple>

#include "oracle/bits.h"

namespace fusediff {

std::optional<std::size_t> differs_from_itself(const Call& call, const Execution& first, const Execution& again,
                                               bool deterministic) {
  if (first.ending != again.ending) return call.outputs.size();
  if (first.ending != Ending::kOk) return std::nullopt;
  std::optional<std::size_t> found;
  const auto stage = [&](std::size_t o) { return call.op->outputs[o].stage.value_or(0); };
  for (std::size_t o = 0; o < call.outputs.size(); ++o) {
    const Tensor& tensor = call.outputs[o];
    if (!tensor.present || first.outputs[o] == again.outputs[o]) continue;
    if (!deterministic && !compare_output(call.op->outputs[o], tensor, first.outputs[o], again.outputs[o], {}))
      continue;
    if (!found || stage(o) < stage(*found)) found = o;
  }
  return found;
}

}  // namespace fusediff
