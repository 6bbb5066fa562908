// Every operator of the target onnxruntime.
#pragma once

#include "kit/target.h"

namespace fusediff::onnxruntime {

extern constinit const kit::Operator kGelu;
extern constinit const kit::Operator kBiasGelu;
extern constinit const kit::Operator kSilu;
extern constinit const kit::Operator kLayerNorm;
extern constinit const kit::Operator kSkipLayerNorm;
extern constinit const kit::Operator kSoftmax;
extern constinit const kit::Operator kMatmulAdd;

}  // namespace fusediff::onnxruntime
