// Runs a loop compiled once for each vector width and chosen for this CPU at run time. The loop must give the same bits
// whatever the width: integer arithmetic, and floating point without sums over elements. Knows nothing of what it runs.
#pragma once

namespace fusediff {

#if defined(__x86_64__) && defined(__GNUC__)

enum class VectorWidth { kBaseline, kAvx2, kAvx512 };

inline VectorWidth vector_width() {
  static const VectorWidth width = [] {
    if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl")) {
      return VectorWidth::kAvx512;
    }
    return __builtin_cpu_supports("avx2") ? VectorWidth::kAvx2 : VectorWidth::kBaseline;
  }();
  return width;
}

// flatten: what the loop calls is inlined, or it would run in the baseline's instructions.
template <typename Loop>
[[gnu::flatten, gnu::noinline, gnu::target("avx512f,avx512dq,avx512bw,avx512vl")]] void run_avx512(const Loop& loop) {
  loop();
}
template <typename Loop>
[[gnu::flatten, gnu::noinline, gnu::target("avx2")]] void run_avx2(const Loop& loop) {
  loop();
}

template <typename Loop>
void run_wide(const Loop& loop) {
  switch (vector_width()) {
    case VectorWidth::kAvx512:
      return run_avx512(loop);
    case VectorWidth::kAvx2:
      return run_avx2(loop);
    case VectorWidth::kBaseline:
      return loop();
  }
}

#else

template <typename Loop>
void run_wide(const Loop& loop) {
  loop();
}

#endif

}  // namespace fusediff
