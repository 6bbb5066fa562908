// One loop body, compiled for the baseline and for AVX2 (without FMA, so that no product and sum are contracted); which
// one runs is asked of the processor in each call.
#include "builtin/exponential_rows.h"

#include "builtin/exponential.h"

#if defined(__x86_64__)
#define FUSEDIFF_AVX2 __attribute__((target("avx2")))
#else
#define FUSEDIFF_AVX2
#endif

namespace fusediff::builtin {
namespace {

bool has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") != 0;
#else
  return false;
#endif
}

template <class A>
[[gnu::always_inline]] inline void exp_each(A* values, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    values[i] = exp(values[i]);
  }
}

template <class A>
[[gnu::always_inline]] inline void sigmoid_each(A* values, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    values[i] = sigmoid(values[i]);
  }
}

FUSEDIFF_AVX2 void exp_wide(float* values, int64_t n) { exp_each(values, n); }
FUSEDIFF_AVX2 void exp_wide(double* values, int64_t n) { exp_each(values, n); }
FUSEDIFF_AVX2 void sigmoid_wide(float* values, int64_t n) { sigmoid_each(values, n); }
FUSEDIFF_AVX2 void sigmoid_wide(double* values, int64_t n) { sigmoid_each(values, n); }

}  // namespace

void exp_row(float* values, int64_t n) { has_avx2() ? exp_wide(values, n) : exp_each(values, n); }
void exp_row(double* values, int64_t n) { has_avx2() ? exp_wide(values, n) : exp_each(values, n); }
void sigmoid_row(float* values, int64_t n) { has_avx2() ? sigmoid_wide(values, n) : sigmoid_each(values, n); }
void sigmoid_row(double* values, int64_t n) { has_avx2() ? sigmoid_wide(values, n) : sigmoid_each(values, n); }

}  // namespace fusediff::builtin
