// A case that can leave its folder. Reads no file: the bits are in the case already, only their name stands there.
#pragma once

#include "model/case.h"

namespace fusediff {

// The same case with the bits that stood in files beside it ("file.safetensors#name") stated in the case itself.
Case with_bits_inline(Case c);

}  // namespace fusediff
