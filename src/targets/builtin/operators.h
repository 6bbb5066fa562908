// The operators of the built-in target, one a file; each stands there with its schema record. Another target may list
// any of them beside its own. Not here: the table itself (builtin.cpp).
#pragma once

#include "kit/target.h"

namespace fusediff::builtin {

extern const kit::Operator kAdam;
extern const kit::Operator kAdd;
extern const kit::Operator kAttention;
extern const kit::Operator kCrossEntropy;
extern const kit::Operator kCrossEntropyGrad;
extern const kit::Operator kGroupedMatmulWgrad;
extern const kit::Operator kLayerNorm;
extern const kit::Operator kLayerNormGrad;
extern const kit::Operator kMatmul;
extern const kit::Operator kMhcPreSinkhorn;
extern const kit::Operator kMhcPreSinkhornGrad;
extern const kit::Operator kMoeGatingTopk;
extern const kit::Operator kMoePermute;
extern const kit::Operator kMoePermuteGrad;
extern const kit::Operator kMoeUnpermute;
extern const kit::Operator kMoeUnpermuteGrad;
extern const kit::Operator kQuantize;
extern const kit::Operator kRmsNorm;
extern const kit::Operator kRmsNormGrad;
extern const kit::Operator kRope;
extern const kit::Operator kSigmoid;
extern const kit::Operator kSoftmax;
extern const kit::Operator kSoftmaxGrad;
extern const kit::Operator kSwiglu;

}  // namespace fusediff::builtin
