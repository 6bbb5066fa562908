// The target torch: one line an operator. The version is that of the headers, which is that of the library.
#include <torch/csrc/api/include/torch/version.h>

#include "torch/operators.h"
#include "torch/session.h"

FUSEDIFF_KIT_TARGET_WITH_CONTEXT(fusediff::torch::Session, "torch", TORCH_VERSION,  //
                                 fusediff::torch::kAdd,                             //
                                 fusediff::torch::kCrossEntropy,                    //
                                 fusediff::torch::kLayerNorm,                       //
                                 fusediff::torch::kLinear,                          //
                                 fusediff::torch::kMatmul,                          //
                                 fusediff::torch::kMoeGatingTopk,                   //
                                 fusediff::torch::kMoePermute,                      //
                                 fusediff::torch::kMoePermuteGrad,                  //
                                 fusediff::torch::kMoeUnpermute,                    //
                                 fusediff::torch::kMoeUnpermuteGrad,                //
                                 fusediff::torch::kRmsNorm,                         //
                                 fusediff::torch::kSigmoid,                         //
                                 fusediff::torch::kSoftmax,                         //
                                 fusediff::torch::kSwiglu)
