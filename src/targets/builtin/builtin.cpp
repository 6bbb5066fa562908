// The built-in target: one line an operator.
#include "builtin/operators.h"

FUSEDIFF_KIT_TARGET("builtin", "0.1.0",                      //
                    fusediff::builtin::kAdam,                //
                    fusediff::builtin::kAdd,                 //
                    fusediff::builtin::kAttention,           //
                    fusediff::builtin::kCrossEntropy,        //
                    fusediff::builtin::kCrossEntropyGrad,    //
                    fusediff::builtin::kGroupedMatmulWgrad,  //
                    fusediff::builtin::kLayerNorm,           //
                    fusediff::builtin::kLayerNormGrad,       //
                    fusediff::builtin::kMatmul,              //
                    fusediff::builtin::kMhcPreSinkhorn,      //
                    fusediff::builtin::kMhcPreSinkhornGrad,  //
                    fusediff::builtin::kMoeGatingTopk,       //
                    fusediff::builtin::kMoePermute,          //
                    fusediff::builtin::kMoePermuteGrad,      //
                    fusediff::builtin::kMoeUnpermute,        //
                    fusediff::builtin::kMoeUnpermuteGrad,    //
                    fusediff::builtin::kQuantize,            //
                    fusediff::builtin::kRmsNorm,             //
                    fusediff::builtin::kRmsNormGrad,         //
                    fusediff::builtin::kRope,                //
                    fusediff::builtin::kSigmoid,             //
                    fusediff::builtin::kSoftmax,             //
                    fusediff::builtin::kSoftmaxGrad,         //
                    fusediff::builtin::kSwiglu)
