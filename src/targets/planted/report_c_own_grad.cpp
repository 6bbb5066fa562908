// EXPECT: class=damage op=moe_permute_grad experiment=pair stage=grad_tokens output=grad_tokens
// Draws its own upstream gradient, uniform in [0, 1), and does not look at grad_out: the differences are as large as
// sums of uniforms and say nothing about the operator. From the script of NVIDIA/TransformerEngine 1336.
#include <vector>

#include "builtin/operators.h"
#include "planted/changed_call.h"
#include "planted/planted.h"

namespace fusediff::planted {
namespace {

using namespace kit;

// Uniform in [0, 1), by position (the mixer of SplitMix64).
double uniform(uint64_t position) {
  uint64_t z = (position + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

void run(const Call& call) {
  const Tensor grad_out = call.input("grad_out");
  if (!kFaulty || grad_out.count() == 0) {
    return run_fused(builtin::kMoePermuteGrad, call);
  }
  by_dtype<float, Half, BFloat16, F8E4M3, F8E5M2>(grad_out, [&](auto type) {
    using T = typename decltype(type)::type;
    std::vector<T> own(static_cast<size_t>(grad_out.count()));
    for (size_t i = 0; i < own.size(); ++i) {
      own[i] = convert<T>(uniform(i));
    }
    const int64_t stride[] = {grad_out.size(1), 1};
    ChangedCall changed(call);
    changed.input("grad_out", own.data(), stride);
    changed.run(builtin::kMoePermuteGrad.paths[0].run);
  });
}

}  // namespace

constinit const Operator kReportCOwnGrad{
    "moe_permute_grad", PLANTED_LIKE_BUILTIN("moe_permute_grad"), {{"fused", run}}};

}  // namespace fusediff::planted

PLANTED_TARGET("report_c_own_grad", fusediff::planted::kReportCOwnGrad);
