// The target "onnxruntime": small graphs at optimisation level off and all, on a libonnxruntime that the user names.
#include "onnxruntime/context.h"
#include "onnxruntime/operators.h"

using namespace fusediff::onnxruntime;

FUSEDIFF_KIT_TARGET_WITH_CONTEXT(Context, "onnxruntime", "0.1.0", kGelu, kBiasGelu, kSilu, kLayerNorm, kSkipLayerNorm,
                                 kSoftmax, kMatmulAdd)
