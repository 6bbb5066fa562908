// EXPECT: class=damage op=rms_norm experiment=pair stage=rstd
// Squares of a row go through a ring of partial sums in three stages, so that load, product and addition overlap. The
// loop is unrolled by four, and what is left in the ring is taken from where it lies after a whole round: right only
// where the number of trips is a multiple of four, as in the width that was tried. From vllm 44692.
#include "planted/norm.h"

namespace fusediff::planted {
namespace {

using namespace kit;
using builtin::kLanes;
using builtin::LaneVector;

constexpr int64_t kBehind = 2;  // trips between a product and its addition
constexpr int64_t kRing = 4;

float sum_by_ring(const float* s, int64_t n) {
  const int64_t trips = (n + kLanes - 1) / kLanes;
  LaneVector<float> ring[kRing];
  LaneVector<float> sum;
  for (int64_t i = 0; i < trips; ++i) {
    const LaneVector<float> v(s + i * kLanes, std::min(kLanes, n - i * kLanes));
    ring[i % kRing].v = v.v * v.v;
    if (i >= kBehind) {
      sum.v += ring[(i - kBehind) % kRing].v;
    }
  }
  for (int64_t i = std::max<int64_t>(trips - kBehind, 0); i < trips; ++i) {
    const int64_t slot = kFaulty ? kRing - (trips - i) : i % kRing;
    sum.v += ring[slot].v;
  }
  return sum.fold();
}

void run(const Call& call) {
  run_norm(call, [](const auto& n, int64_t, const float* s) { return sum_by_ring(s, n.columns); });
}

}  // namespace

constinit const Operator kVllm44692{"rms_norm", PLANTED_LIKE_BUILTIN("rms_norm"), {{"fused", run}}};

}  // namespace fusediff::planted

PLANTED_TARGET("vllm_44692", fusediff::planted::kVllm44692);
