// EXPECT: none op=negate experiment=pair
// A near miss: the fused path does not offer every legal call; it says so, and the case is skipped and counted.
#include "planted/planted.h"

namespace fusediff::planted {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "negate",
  "paths": ["fused", "unfused"],
  "dims": {"N": {"range": [0, 1024], "typical": [1, 16, 128]}},
  "inputs": [{"name": "x", "shape": ["N"], "dtype": ["f32", "f16"], "layout": "any"}],
  "outputs": [
    {"name": "y", "shape": ["N"], "dtype": "=x", "stage": 1, "layout": "any",
     "bound": {"ulp": "0", "of": "element", "why": "only the sign changes"}}],
  "rows": {"dim": "N", "inputs": ["x"], "outputs": "all"}
})";

template <class T>
void negate(const Call& call) {
  const auto x = call.input("x").view<const T, 1>();
  const auto y = call.output("y").view<T, 1>();
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    y(i) = convert<T>(-convert<Compute<T>>(x(i)));
  }
}

void fused(const Call& call) {
  if (call.input("x").count() % 2 != 0) {
    unsupported("an odd number of elements");
  }
  by_dtype<float>(call.input("x"), [&](auto type) { negate<typename decltype(type)::type>(call); });
}

void unfused(const Call& call) {
  by_dtype<float, Half, double>(call.input("x"), [&](auto type) { negate<typename decltype(type)::type>(call); });
}

}  // namespace

constinit const Operator kNearUnsupported{"negate", kSchema, {{"fused", fused}, {"unfused", unfused}}};

}  // namespace fusediff::planted

PLANTED_TARGET("near_unsupported", fusediff::planted::kNearUnsupported);
