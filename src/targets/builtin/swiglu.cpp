// swiglu: y = silu(gate) * up with silu(g) = g * sigmoid(g). gate and up are inputs of their own, or, with `packed`,
// the first and the second half of the rows of x. In the compute type, rounded once; with compute = storage silu is
// rounded to the dtype too before it is multiplied, as where a framework stores it. The output silu is that value,
// rounded to the dtype in either case.
#include <algorithm>
#include <array>

#include "builtin/any_float.h"
#include "builtin/exponential.h"
#include "builtin/exponential_rows.h"
#include "builtin/operators.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr int64_t kTile = 64;

constexpr char kSchema[] = R"({
  "name": "swiglu",
  "paths": ["fused", "unfused"],
  "dims": {"R": {"range": [0, 64], "typical": [1, 2, 4, 8, 16]},
           "C": {"range": [0, 1024], "typical": [1, 8, 16, 64, 100, 128, 256, 512]}},
  "attrs": [
    {"name": "packed", "bool": true, "default": false},
    {"name": "compute", "choice": ["f32", "storage"], "default": "f32"}],
  "inputs": [
    {"name": "x",    "shape": ["R", "2 * C"], "dtype": ["f32", "f16", "bf16", "f64", "f8e4m3fn", "f8e5m2"],
     "optional": true, "if": "packed == 1", "layout": "any"},
    {"name": "gate", "shape": ["R", "C"], "dtype": "=x", "optional": true, "if": "packed == 0", "layout": "any"},
    {"name": "up",   "shape": ["R", "C"], "dtype": "=x", "optional": true, "if": "packed == 0", "layout": "any"}],
  "outputs": [
    {"name": "silu", "shape": ["R", "C"], "dtype": "=x", "stage": 1, "optional": true, "layout": "any",
     "bound": {"ulp": {"f32": 14, "f64": 14, "f16": 2, "bf16": 2, "f8e4m3fn": 2, "f8e5m2": 2}, "of": "abs_inputs",
               "why": "S = a * sigmoid(a), a = abs gate; a / 2 <= S. v <= u the unit roundoffs of f32 and the dtype. exp(-g), written as 2^(-g log2 e), is off by a relative 3 a v, which moves g * sigmoid(g) by at most 3 v a max(t (1 - s(t))) = 0.7 v a <= 1.4 v S (s the logistic function, t s(t) (1 - s(t)) <= 0.224); exp itself 4 v, sum, quotient and product 3 v; an exp that overflows leaves 0 instead of less than 2^-118. Narrow dtypes: v is at most 2^-13 u. The last rounding u, in the subnormal range half an ULP; one ULP is at least u of the value. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 2.2 and 3.1"}},
    {"name": "y", "shape": ["R", "C"], "dtype": "=x", "stage": 2, "layout": "any",
     "bound": {"ulp": {"f32": 14, "f64": 14, "f16": 3, "bf16": 3, "f8e4m3fn": "3 + (compute == 'storage') * 16",
                       "f8e5m2": "3 + (compute == 'storage') * 8"}, "of": "abs_inputs",
               "why": "S = a * sigmoid(a) * abs up, a = abs gate. silu as above without its last rounding: 8.4 v of S; with compute = storage that one too, u; the product v, the last rounding u, in the subnormal range half an ULP: below 13 units of u with products of relative changes, and in narrow dtypes, where v is at most 2^-13 u, below 2.5; one ULP is at least u of the value. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 2.2 and 3.1. With compute = storage a silu below the normal range is off by at most itself, so S, which is 16 ULP in f8e4m3fn and 8 in f8e5m2. Not where silu is below the normal range of f32, or with compute = storage of f16 and bf16, and up is large"}}],
  "rows": {"dim": "R", "inputs": ["x", "gate", "up"], "outputs": "all"},
  "inplace": [["y", "gate"], ["y", "up"]]
})";

template <class T>
struct SwiGlu {
  int64_t rows, columns;
  View<const T, 2> gate, up;
  View<T, 2> silu, y;  // silu: false where not wanted
};

// REJECTED where the shapes do not fit each other, or an input is there or not against `packed`.
template <class T>
SwiGlu<T> read(const Call& call) {
  SwiGlu<T> s{};
  const bool packed = call.flag("packed");
  s.y = call.output("y").view<T, 2>();
  s.rows = s.y.shape[0];
  s.columns = s.y.shape[1];
  call.output("silu").require_shape({s.rows, s.columns});
  s.silu = call.output("silu").optional_view<T, 2>();
  for (const char* name : {"x", "gate", "up"}) {
    const bool belongs = packed == (name[0] == 'x');
    require(belongs || !call.input(name).present(), name, " is given, but packed is ", packed ? "true" : "false");
  }
  if (packed) {
    call.input("x").require_shape({s.rows, 2 * s.columns});
    s.gate = call.input("x").view<const T, 2>();
    s.up = s.gate;
    s.up.data = s.up.data == nullptr ? nullptr : s.up.data + s.columns * s.up.stride[1];
    return s;
  }
  call.input("gate").require_shape({s.rows, s.columns});
  call.input("up").require_shape({s.rows, s.columns});
  s.gate = call.input("gate").view<const T, 2>();
  s.up = call.input("up").view<const T, 2>();
  return s;
}

// A tile in registers: widen, sigmoid, multiply, narrow. Both inputs of a tile are read before it is written.
template <class T, bool kStorage, class A = Compute<T>>
void sweep(const Call& call) {
  const SwiGlu<T> s = read<T>(call);
  A gate[kTile];
  A up[kTile];
  A silu[kTile];
  for (int64_t row = 0; row < s.rows; ++row) {
    for (int64_t from = 0; from < s.columns; from += kTile) {
      const int64_t n = std::min(kTile, s.columns - from);
      load(s.gate.at(row).part(from, n), gate);
      load(s.up.at(row).part(from, n), up);
      std::copy_n(gate, n, silu);
      sigmoid_row(silu, n);
      for (int64_t i = 0; i < n; ++i) {
        silu[i] = in_between<T, kStorage>(gate[i] * silu[i]);
        up[i] *= silu[i];
      }
      if (s.silu) {
        store(s.silu.at(row).part(from, n), silu);
      }
      store(s.y.at(row).part(from, n), up);
    }
  }
}

// The intermediate tensors of the composition, [R, C].
template <class A>
struct Tensors {
  A *sigmoid, *silu, *y;

  Tensors(Carver& c, int64_t count) : sigmoid(c.take<A>(count)), silu(c.take<A>(count)), y(c.take<A>(count)) {}
};

// sigmoid, mul, mul: each over its whole tensor; inputs are read before any output is written.
template <class T, bool kStorage, class A = Compute<T>>
void compose(const Call& call) {
  const SwiGlu<T> s = read<T>(call);
  const int64_t columns = s.columns;
  const int64_t all = s.rows * columns;
  Carver carver = call.workspace();
  const Tensors<A> t(carver, all);
  for (int64_t i = 0; i < all; ++i) {
    t.sigmoid[i] = builtin::sigmoid(convert<A>(s.gate(i / columns, i % columns)));
  }
  for (int64_t i = 0; i < all; ++i) {
    t.silu[i] = in_between<T, kStorage>(convert<A>(s.gate(i / columns, i % columns)) * t.sigmoid[i]);
  }
  for (int64_t i = 0; i < all; ++i) {
    t.y[i] = t.silu[i] * convert<A>(s.up(i / columns, i % columns));
  }
  for (int64_t row = 0; row < s.rows; ++row) {
    if (s.silu) {
      store(s.silu.at(row), t.silu + row * columns);
    }
    store(s.y.at(row), t.y + row * columns);
  }
}

void fused(const Call& call) {
  by_any_float_and_compute(call, call.output("y"), [&](auto type, auto storage) {
    sweep<typename decltype(type)::type, decltype(storage)::value>(call);
  });
}

void unfused(const Call& call) {
  by_any_float_and_compute(call, call.output("y"), [&](auto type, auto storage) {
    compose<typename decltype(type)::type, decltype(storage)::value>(call);
  });
}

size_t unfused_workspace(const Call& call) {
  return workspace_by_any_float(call.output("y"), [&](auto type, Carver& carver) {
    using T = typename decltype(type)::type;
    const SwiGlu<T> s = read<T>(call);
    Tensors<Compute<T>>(carver, s.rows * s.columns);
  });
}

}  // namespace

constinit const Operator kSwiglu{"swiglu", kSchema, {{"fused", fused}, {"unfused", unfused, unfused_workspace}}};

}  // namespace fusediff::builtin
