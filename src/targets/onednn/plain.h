// Tensors as plain rows of double, for the reference paths: computed in f64 by loops, rounded once on the way out.
// Nothing of oneDNN is used here.
#pragma once

#include <vector>

#include "kit/call.h"

namespace fusediff::onednn {

using Numbers = std::vector<double>;

// The elements in row-major order, of any dtype and stride.
Numbers numbers(const kit::Tensor& tensor);

// Writes them, rounded once to the dtype of the tensor. REJECTED where the counts differ.
void store(const kit::Tensor& tensor, const Numbers& values);

// y [m, n] = x [m, k] times w, which is [k, n] or, transposed, [n, k].
Numbers multiply(const Numbers& x, const Numbers& w, int64_t m, int64_t k, int64_t n, bool transposed);

}  // namespace fusediff::onednn
