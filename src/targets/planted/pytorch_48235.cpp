// EXPECT: class=rounding op=sigmoid experiment=relation output=y relation=same_value
// Whole vectors of a row and the scalar tail behind them take different exponentials, so the value of an element
// depends on where it stands: one ULP, now and then. From pytorch 48235.
#include <algorithm>
#include <array>
#include <bit>

#include "builtin/exponential.h"
#include "builtin/exponential_rows.h"
#include "builtin/operators.h"
#include "planted/changed_call.h"
#include "planted/planted.h"

namespace fusediff::planted {
namespace {

using namespace kit;

constexpr int64_t kVector = 16;

// exp(x) for x in [-80, 0], in f32 throughout: within 2 ULP. Reduced as by Cody and Waite, then a Taylor series.
float exp_in_f32(float x) {
  constexpr float kRound = 0x1.8p23f;
  const float shifted = x * 0x1.715476p0f + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return p * std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) << 23) + (127u << 23));
}

float sigmoid_in_f32(float x) {
  if (!(x > -80.0f && x < 80.0f)) {
    return builtin::sigmoid(x);
  }
  const float e = exp_in_f32(x < 0 ? x : -x);
  return (x < 0 ? e : 1.0f) / (1.0f + e);
}

template <class T>
void sigmoid_vectors(const Call& call) {
  for_each_row<T>(std::array{call.output("y"), call.input("x")}, [](const auto& row) {
    const auto& [y, x] = row;
    const int64_t body = y.shape[0] / kVector * kVector;
    for (int64_t from = 0; from < body; from += kVector) {
      float vector[kVector];
      load(x.part(from, kVector), vector);
      builtin::sigmoid_row(vector, kVector);
      store(y.part(from, kVector), vector);
    }
    for (int64_t i = body; i < y.shape[0]; ++i) {
      const float value = convert<float>(x(i));
      y(i) = convert<T>(kFaulty ? sigmoid_in_f32(value) : builtin::sigmoid(value));
    }
  });
}

void run(const Call& call) {
  if (call.input("x").dtype() == FUSEDIFF_F64) {
    return run_fused(builtin::kSigmoid, call);
  }
  by_dtype<float, Half, BFloat16, F8E4M3, F8E5M2>(
      call.input("x"), [&](auto type) { sigmoid_vectors<typename decltype(type)::type>(call); });
}

}  // namespace

constinit const Operator kPytorch48235{"sigmoid", PLANTED_LIKE_BUILTIN("sigmoid"), {{"fused", run}}};

}  // namespace fusediff::planted

PLANTED_TARGET("pytorch_48235", fusediff::planted::kPytorch48235);
