// The moe_permute family for the device.
#include "cuda/device_operators.h"
#include "cuda/device_stream.h"
#include "cuda/operators_permute.h"

namespace fusediff::cuda {

const kit::Operator kDeviceMoePermute = kMoePermute<DeviceContext>;
const kit::Operator kDeviceMoePermuteGrad = kMoePermuteGrad<DeviceContext>;
const kit::Operator kDeviceMoeUnpermute = kMoeUnpermute<DeviceContext>;
const kit::Operator kDeviceMoeUnpermuteGrad = kMoeUnpermuteGrad<DeviceContext>;

}  // namespace fusediff::cuda
