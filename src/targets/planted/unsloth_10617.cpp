// EXPECT: class=damage op=rms_norm_grad experiment=relation output=grad_x relation=dense
// Reads the upstream gradient with its row stride and takes its columns to lie next to each other: wrong for a
// transposed one and for one column in two. A gradient that was expanded (stride 0) takes a branch of its own and is
// right. From unsloth 10617.
#include <algorithm>

#include "builtin/operators.h"
#include "planted/changed_call.h"
#include "planted/planted.h"

namespace fusediff::planted {
namespace {

using namespace kit;

size_t workspace(const Call& call) { return workspace_of_fused(builtin::kRmsNormGrad, call); }

void run(const Call& call) {
  const Tensor grad = call.input("grad_y");
  if (!kFaulty || grad.rank() != 2) {
    return run_fused(builtin::kRmsNormGrad, call);
  }
  const int64_t stride[] = {grad.stride(0), std::min<int64_t>(grad.stride(1), 1)};
  ChangedCall changed(call);
  changed.input("grad_y", grad.data(), stride);
  changed.run(builtin::kRmsNormGrad.paths[0].run);
}

}  // namespace

constinit const Operator kUnsloth10617{
    "rms_norm_grad", PLANTED_LIKE_BUILTIN("rms_norm_grad"), {{"fused", run, workspace}}};

}  // namespace fusediff::planted

PLANTED_TARGET("unsloth_10617", fusediff::planted::kUnsloth10617);
