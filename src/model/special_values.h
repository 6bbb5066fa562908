// The values at which arithmetic changes its ways, per dtype: the list behind the recipes special and finite_special.
#pragma once

#include <vector>

#include "model/dtype.h"

namespace fusediff {

// As doubles that round to themselves in the dtype, in a fixed order, none twice. Floats: both zeros; the least and the
// largest denormal, the least normal, the largest finite number, its predecessor and half of it, 1 and its two
// neighbours, 17 (where a sigmoid in f32 becomes 1), each with both signs; the two numbers around the natural logarithm
// of the largest finite number of the dtype and of f32, minus them and minus the logarithm of the smallest denormal of
// both; and unless only finite ones are wanted: infinities, NaN with either sign. Integers: 0, 1, -1, 2, the ends of
// the range, halves of them; bool: 0 and 1.
std::vector<double> special_values(DType dtype, bool finite_only);

}  // namespace fusediff
