// EXPECT: none op=add_twice experiment=pair
// A near miss: a sum of three is kept in f32 where the unfused path stores the first sum in the dtype; the record
// allows what that makes.
#include "planted/planted.h"

namespace fusediff::planted {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "add_twice",
  "paths": ["fused", "unfused"],
  "dims": {"N": {"range": [0, 512], "typical": [1, 16, 64, 128]}},
  "inputs": [
    {"name": "a", "shape": ["N"], "dtype": "bf16", "role": "scale", "layout": "any"},
    {"name": "b", "shape": ["N"], "dtype": "bf16", "role": "scale", "layout": "any"},
    {"name": "c", "shape": ["N"], "dtype": "bf16", "role": "scale", "layout": "any"}],
  "outputs": [
    {"name": "y", "shape": ["N"], "dtype": "bf16", "stage": 1, "layout": "any",
     "agree": {"ulp": 2, "why": "terms are positive: the rounding of a + b moves the sum by at most half a unit of it, and what is rounded at last by at most one more"},
     "bound": {"ulp": "2", "of": "element", "why": "two roundings into the dtype, half a unit of the sum each, and two in f32"}}],
  "rows": {"dim": "N", "inputs": ["a", "b", "c"], "outputs": "all"}
})";

void fused(const Call& call) {
  const auto a = call.input("a").view<const BFloat16, 1>();
  const auto b = call.input("b").view<const BFloat16, 1>();
  const auto c = call.input("c").view<const BFloat16, 1>();
  const auto y = call.output("y").view<BFloat16, 1>();
  for (int64_t i = 0; i < y.shape[0]; ++i) {
    y(i) = convert<BFloat16>(convert<float>(a(i)) + convert<float>(b(i)) + convert<float>(c(i)));
  }
}

template <class T>
void add(const Call& call) {
  using A = Compute<T>;
  const auto a = call.input("a").view<const T, 1>();
  const auto b = call.input("b").view<const T, 1>();
  const auto c = call.input("c").view<const T, 1>();
  const auto y = call.output("y").view<T, 1>();
  for (int64_t i = 0; i < y.shape[0]; ++i) {
    const T sum = convert<T>(convert<A>(a(i)) + convert<A>(b(i)));
    y(i) = convert<T>(convert<A>(sum) + convert<A>(c(i)));
  }
}

void unfused(const Call& call) {
  by_dtype<BFloat16, double>(call.input("a"), [&](auto type) { add<typename decltype(type)::type>(call); });
}

}  // namespace

constinit const Operator kNearKeptWide{"add_twice", kSchema, {{"fused", fused}, {"unfused", unfused}}};

}  // namespace fusediff::planted

PLANTED_TARGET("near_kept_wide", fusediff::planted::kNearKeptWide);
