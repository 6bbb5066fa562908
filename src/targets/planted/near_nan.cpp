// EXPECT: none op=root experiment=pair
// A near miss: where the root is not a number the paths give NaNs of another sign and payload.
#include <bit>
#include <cmath>

#include "planted/planted.h"

namespace fusediff::planted {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "root",
  "paths": ["fused", "unfused"],
  "dims": {"N": {"range": [0, 1024], "typical": [1, 16, 128]}},
  "inputs": [{"name": "x", "shape": ["N"], "dtype": "f32", "layout": "any"}],
  "outputs": [
    {"name": "y", "shape": ["N"], "dtype": "f32", "stage": 1, "layout": "any",
     "bound": {"ulp": "1", "of": "element", "why": "an IEEE square root: half a unit"}}],
  "rows": {"dim": "N", "inputs": ["x"], "outputs": "all"}
})";

constexpr float kOwnNan = std::bit_cast<float>(0x7fc00001u);

void fused(const Call& call) {
  const auto x = call.input("x").view<const float, 1>();
  const auto y = call.output("y").view<float, 1>();
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    y(i) = x(i) >= 0 ? std::sqrt(x(i)) : kOwnNan;
  }
}

template <class A>
void root_unfused(const Call& call) {
  const auto x = call.input("x").view<const A, 1>();
  const auto y = call.output("y").view<A, 1>();
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    y(i) = std::sqrt(x(i));
  }
}

void unfused(const Call& call) {
  by_dtype<float, double>(call.input("x"), [&](auto type) { root_unfused<typename decltype(type)::type>(call); });
}

}  // namespace

constinit const Operator kNearNan{"root", kSchema, {{"fused", fused}, {"unfused", unfused}}};

}  // namespace fusediff::planted

PLANTED_TARGET("near_nan", fusediff::planted::kNearNan);
