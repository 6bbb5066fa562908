// The operators of the target `cuda` on the device, one .cu file a family.
#pragma once

#include "kit/target.h"

namespace fusediff::cuda {

extern const kit::Operator kDeviceAdd;
extern const kit::Operator kDeviceSigmoid;
extern const kit::Operator kDeviceMoeGatingTopk;
extern const kit::Operator kDeviceMoePermute;
extern const kit::Operator kDeviceMoePermuteGrad;
extern const kit::Operator kDeviceMoeUnpermute;
extern const kit::Operator kDeviceMoeUnpermuteGrad;
extern const kit::Operator kDeviceMhcPreSinkhorn;
extern const kit::Operator kDeviceMhcPreSinkhornGrad;

}  // namespace fusediff::cuda
