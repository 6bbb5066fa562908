// EXPECT: class=rounding op=rms_norm experiment=relation relation=row_alone
// Rows are taken four at a time, and what is left over by a kernel of its own that sums in another order: the last bit
// of a row depends on where in its batch it stands and on how many rows there are.
#include "planted/norm.h"

namespace fusediff::planted {
namespace {

using namespace kit;

constexpr int64_t kBlock = 4;

float squares_in_order(const float* s, int64_t n) {
  float sum = 0;
  for (int64_t c = 0; c < n; ++c) {
    sum += s[c] * s[c];
  }
  return sum;
}

void run(const Call& call) {
  run_norm(call, [](const auto& n, int64_t row, const float* s) {
    const bool in_block = row < n.rows / kBlock * kBlock;
    return kFaulty && in_block ? squares_in_order(s, n.columns) : sum_of_squares(s, n.columns);
  });
}

}  // namespace

constinit const Operator kRowPosition{"rms_norm", PLANTED_LIKE_BUILTIN("rms_norm"), {{"fused", run}}};

}  // namespace fusediff::planted

PLANTED_TARGET("row_position", fusediff::planted::kRowPosition);
