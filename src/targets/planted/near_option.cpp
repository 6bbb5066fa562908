// EXPECT: none op=scaled experiment=pair
// A near miss: the path does not look at `shift` unless `shifted` is on; the record passes it with its default then.
#include "planted/planted.h"

namespace fusediff::planted {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "scaled",
  "paths": ["fused", "unfused"],
  "dims": {"R": {"range": [0, 32]}, "C": {"range": [1, 256], "typical": [8, 16, 64, 128]}},
  "attrs": [
    {"name": "shifted", "bool": true, "default": false},
    {"name": "shift", "float": [0.5, 2.0], "default": 0.0, "if": "shifted == 1"}],
  "where": ["C >= 1"],
  "inputs": [{"name": "x", "shape": ["R", "C"], "dtype": "f32", "layout": "any"}],
  "outputs": [{"name": "y", "shape": ["R", "C"], "dtype": "f32", "stage": 1, "layout": "any"}],
  "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"}
})";

void fused(const Call& call) {
  const auto x = call.input("x").view<const float, 2>();
  const auto y = call.output("y").view<float, 2>();
  const float shift = call.flag("shifted") ? static_cast<float>(call.real("shift")) : 0.0f;
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    for (int64_t c = 0; c < x.shape[1]; ++c) {
      y(r, c) = (x(r, c) + shift) * 2;
    }
  }
}

template <class A>
void scale(const Call& call) {
  const auto x = call.input("x").view<const A, 2>();
  const auto y = call.output("y").view<A, 2>();
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    for (int64_t c = 0; c < x.shape[1]; ++c) {
      y(r, c) = (x(r, c) + static_cast<A>(call.real("shift"))) * 2;
    }
  }
}

void unfused(const Call& call) {
  by_dtype<float, double>(call.input("x"), [&](auto type) { scale<typename decltype(type)::type>(call); });
}

}  // namespace

constinit const Operator kNearOption{"scaled", kSchema, {{"fused", fused}, {"unfused", unfused}}};

}  // namespace fusediff::planted

PLANTED_TARGET("near_option", fusediff::planted::kNearOption);
