// EXPECT: none op=shift experiment=relation
// A near miss: what is read has been written where y lies on x; the record does not allow that.
#include "planted/planted.h"

namespace fusediff::planted {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "shift",
  "paths": ["fused", "unfused"],
  "dims": {"R": {"range": [0, 32]}, "C": {"range": [1, 256], "typical": [8, 16, 64, 128]}},
  "where": ["C >= 1"],
  "inputs": [{"name": "x", "shape": ["R", "C"], "dtype": "f32", "layout": "any"}],
  "outputs": [{"name": "y", "shape": ["R", "C"], "dtype": "f32", "stage": 1, "layout": "any"}],
  "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"}
})";

void fused(const Call& call) {
  const auto x = call.input("x").view<const float, 2>();
  const auto y = call.output("y").view<float, 2>();
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    y(r, 0) = x(r, 0);
    for (int64_t c = 1; c < x.shape[1]; ++c) {
      y(r, c) = x(r, c - 1);
    }
  }
}

template <class A>
void shift(const Call& call) {
  const auto x = call.input("x").view<const A, 2>();
  const auto y = call.output("y").view<A, 2>();
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    for (int64_t c = x.shape[1] - 1; c >= 0; --c) {
      y(r, c) = x(r, c == 0 ? 0 : c - 1);
    }
  }
}

void unfused(const Call& call) {
  by_dtype<float, double>(call.input("x"), [&](auto type) { shift<typename decltype(type)::type>(call); });
}

}  // namespace

constinit const Operator kNearApart{"shift", kSchema, {{"fused", fused}, {"unfused", unfused}}};

}  // namespace fusediff::planted

PLANTED_TARGET("near_apart", fusediff::planted::kNearApart);
