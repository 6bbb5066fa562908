// The operators of the target, one a file; each stands there with its record and what the documentation says of it.
#pragma once

#include "kit/target.h"

namespace fusediff::aclnn {

extern const kit::Operator kAdd;
extern const kit::Operator kMhcPreSinkhorn;
extern const kit::Operator kMhcPreSinkhornGrad;
extern const kit::Operator kMoeGatingTopk;
extern const kit::Operator kMoePermute;
extern const kit::Operator kMoeUnpermute;

}  // namespace fusediff::aclnn
