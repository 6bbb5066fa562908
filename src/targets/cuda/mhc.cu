// mhc_pre_sinkhorn and its gradient for the device.
#include "cuda/device_operators.h"
#include "cuda/device_stream.h"
#include "cuda/operators_mhc.h"

namespace fusediff::cuda {

const kit::Operator kDeviceMhcPreSinkhorn = kMhcPreSinkhorn<DeviceContext>;
const kit::Operator kDeviceMhcPreSinkhornGrad = kMhcPreSinkhornGrad<DeviceContext>;

}  // namespace fusediff::cuda
