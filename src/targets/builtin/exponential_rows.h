// exp and sigmoid of a whole dense row in place, with the widest vectors that the machine has; the same bits as one
// element at a time (exponential.h), which a test holds.
#pragma once

#include <cstdint>

namespace fusediff::builtin {

void exp_row(float* values, int64_t n);
void exp_row(double* values, int64_t n);
void sigmoid_row(float* values, int64_t n);
void sigmoid_row(double* values, int64_t n);

}  // namespace fusediff::builtin
