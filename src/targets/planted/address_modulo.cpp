// EXPECT: class=rounding op=rms_norm experiment=relation relation=moved
// Squares of a row are summed with aligned loads: elements before the first address that is a multiple of 16 are summed
// on their own, so the order of the sum, and its last bit, depends on where x lies.
#include "planted/norm.h"

namespace fusediff::planted {
namespace {

using namespace kit;

constexpr uintptr_t kAligned = 16;

// Elements of a row before the first aligned address, at most `n`.
template <class T>
int64_t elements_before_aligned(const T* from, int64_t n) {
  const uintptr_t over = reinterpret_cast<uintptr_t>(from) % kAligned;
  return over == 0 ? 0 : std::min(n, static_cast<int64_t>((kAligned - over) / sizeof(T)));
}

void run(const Call& call) {
  run_norm(call, [](const auto& n, int64_t row, const float* s) {
    const int64_t peeled = kFaulty ? elements_before_aligned(n.x.at(row).data, n.columns) : 0;
    float sum = 0;
    for (int64_t c = 0; c < peeled; ++c) {
      sum += s[c] * s[c];
    }
    return sum + sum_of_squares(s + peeled, n.columns - peeled);
  });
}

}  // namespace

constinit const Operator kAddressModulo{"rms_norm", PLANTED_LIKE_BUILTIN("rms_norm"), {{"fused", run}}};

}  // namespace fusediff::planted

PLANTED_TARGET("address_modulo", fusediff::planted::kAddressModulo);
