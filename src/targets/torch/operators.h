// The operators of the target torch, each defined in the file of its family. Not here: the table (torch.cpp).
#pragma once

#include "kit/target.h"

namespace fusediff::torch {

extern const kit::Operator kAdd;
extern const kit::Operator kCrossEntropy;
extern const kit::Operator kLayerNorm;
extern const kit::Operator kLinear;
extern const kit::Operator kMatmul;
extern const kit::Operator kMoeGatingTopk;
extern const kit::Operator kMoePermute;
extern const kit::Operator kMoePermuteGrad;
extern const kit::Operator kMoeUnpermute;
extern const kit::Operator kMoeUnpermuteGrad;
extern const kit::Operator kRmsNorm;
extern const kit::Operator kSigmoid;
extern const kit::Operator kSoftmax;
extern const kit::Operator kSwiglu;

}  // namespace fusediff::torch
