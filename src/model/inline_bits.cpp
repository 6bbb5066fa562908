#include "model/inline_bits.h"

namespace fusediff {
namespace {

void forget_file(Fill& fill) {
  fill.bits_file.clear();
  fill.bits_dtype.reset();
}

}  // namespace

Case with_bits_inline(Case c) {
  for (auto& [name, input] : c.inputs) {
    forget_file(input.fill);
    for (Patch& patch : input.patches) forget_file(patch.fill);
  }
  for (Case& call : c.experiment.calls) call = with_bits_inline(std::move(call));
  return c;
}

}  // namespace fusediff
