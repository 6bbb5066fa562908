// The thread's floating-point control: rounding, flushing of denormals, traps. A library may change it when it is
// loaded (-ffast-math does) or in any call, and what runs next would give other bits.
#pragma once

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <cfenv>
#endif

#include <cstdint>

namespace fusediff {

// Remembers the state of the thread where it is made; restore() puts it back, on the same thread.
class FloatState {
 public:
#if defined(__x86_64__)
  FloatState() {
    asm volatile("stmxcsr %0" : "=m"(vector_));
    asm volatile("fnstcw %0" : "=m"(scalar_));
  }
  void restore() const {
    const FloatState now;
    if (now.vector_ != vector_) asm volatile("ldmxcsr %0" : : "m"(vector_));
    if (now.scalar_ != scalar_) asm volatile("fldcw %0" : : "m"(scalar_));
  }

 private:
  std::uint32_t vector_;
  std::uint16_t scalar_;
#elif defined(__aarch64__)
  FloatState() { asm volatile("mrs %0, fpcr" : "=r"(control_)); }
  void restore() const {
    const FloatState now;
    if (now.control_ != control_) asm volatile("msr fpcr, %0" : : "r"(control_));
  }

 private:
  std::uint64_t control_;
#else
  FloatState() { std::fegetenv(&environment_); }
  void restore() const { std::fesetenv(&environment_); }

 private:
  std::fenv_t environment_;
#endif
};

}  // namespace fusediff
