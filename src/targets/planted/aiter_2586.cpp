// EXPECT: class=rounding op=rms_norm experiment=pair stage=rstd
// The sum of x and residual goes into the norm as it is in f32; unfused, the norm reads the sum that was stored in the
// dtype. A quarter of the elements are one ULP off; residual_out is the same. From aiter 2586.
#include "planted/norm.h"

namespace fusediff::planted {
namespace {

using namespace kit;

void run(const Call& call) {
  with_norm(call, [](const auto& n) {
    std::vector<float> s(static_cast<size_t>(n.columns));
    for (int64_t row = 0; row < n.rows; ++row) {
      if (kFaulty) {
        load_wide_sums(n, row, s.data());
      } else {
        load_sums(n, row, s.data());
      }
      finish_row(n, row, s.data(), sum_of_squares(s.data(), n.columns));
    }
  });
}

}  // namespace

constinit const Operator kAiter2586{"rms_norm", PLANTED_LIKE_BUILTIN("rms_norm"), {{"fused", run}}};

}  // namespace fusediff::planted

PLANTED_TARGET("aiter_2586", fusediff::planted::kAiter2586);
