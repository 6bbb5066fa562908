#include "oracle/agreement.h"

#include <tuple>

#include "base/bytes.h"
#include "oracle/bits.h"

namespace fusediff {

bool agrees(const OutputRule& rule, const Tensor& tensor, const std::vector<std::byte>& a,
            const std::vector<std::byte>& b) {
  const std::optional<Difference> d = compare_output(rule, tensor, a, b, {});
  return !d || (d->cls == FindingClass::kNanBits && !rule.nan_bits);
}

std::optional<std::size_t> differs_from_itself(const Call& call, const Execution& first, const Execution& again,
                                               bool deterministic) {
  if (first.ending != again.ending) return call.outputs.size();
  if (first.ending != Ending::kOk) return std::nullopt;
  std::optional<std::size_t> found;
  const auto stage = [&](std::size_t o) { return call.op->outputs[o].stage.value_or(0); };
  for (std::size_t o = 0; o < call.outputs.size(); ++o) {
    const Tensor& tensor = call.outputs[o];
    if (!tensor.present || same_bytes(first.outputs[o], again.outputs[o])) continue;
    if (!deterministic && agrees(call.op->outputs[o], tensor, first.outputs[o], again.outputs[o])) continue;
    if (!found || stage(o) < stage(*found)) found = o;
  }
  return found;
}

}  // namespace fusediff
