// The operators of the oneDNN target, one a file; each stands there with its schema record. Not here: the table itself
// (onednn.cpp).
#pragma once

#include "onednn/context.h"

namespace fusediff::onednn {

extern const kit::Operator kBinary;
extern const kit::Operator kEltwise;
extern const kit::Operator kInnerProduct;
extern const kit::Operator kLayerNorm;
extern const kit::Operator kLogisticAdd;
extern const kit::Operator kMatmul;
extern const kit::Operator kMatmulActivation;
extern const kit::Operator kMatmulInt8;
extern const kit::Operator kReduction;
extern const kit::Operator kSoftmax;

}  // namespace fusediff::onednn
