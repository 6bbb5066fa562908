// add, sigmoid and moe_gating_topk for the device.
#include "cuda/device_operators.h"
#include "cuda/device_stream.h"
#include "cuda/operators_rows.h"

namespace fusediff::cuda {

const kit::Operator kDeviceAdd = kAdd<DeviceContext>;
const kit::Operator kDeviceSigmoid = kSigmoid<DeviceContext>;
const kit::Operator kDeviceMoeGatingTopk = kMoeGatingTopk<DeviceContext>;

}  // namespace fusediff::cuda
