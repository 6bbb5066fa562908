// rope: rotary position embedding. The first 2 * N elements of each head are N pairs (a, b), rotated by the row of the
// cos and sin tables that the token's position names: (a, b) -> (a * cos - b * sin, b * cos + a * sin); the rest is
// copied. A pair is (i, N + i), or (2 * i, 2 * i + 1) with style = interleaved. In the compute type, rounded once; with
// compute = storage each product is rounded to the dtype too. The output may lie on the input.
#include <algorithm>

#include "builtin/any_float.h"
#include "builtin/operators.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "rope",
  "paths": ["fused", "unfused"],
  "dims": {"T": {"range": [0, 32], "typical": [1, 2, 4, 8, 16]},
           "H": {"range": [0, 16], "typical": [1, 2, 4, 8]},
           "D": {"range": [0, 256], "typical": [2, 16, 64, 80, 128]},
           "N": {"range": [0, 128], "typical": [1, 8, 16, 32, 40, 64]},
           "P": {"range": [1, 64], "typical": [1, 2, 16, 64]}},
  "attrs": [
    {"name": "style", "choice": ["halves", "interleaved"], "default": "halves"},
    {"name": "compute", "choice": ["f32", "storage"], "default": "f32"}],
  "where": ["2 * N <= D", "P >= 1"],
  "inputs": [
    {"name": "x", "shape": ["T", "H", "D"], "dtype": ["f32", "f16", "bf16", "f64", "f8e4m3fn", "f8e5m2"],
     "layout": "any"},
    {"name": "positions", "shape": ["T"], "dtype": "i32", "role": "index", "range": [0, "P - 1"], "layout": "any"},
    {"name": "cos", "shape": ["P", "N"], "dtype": "=x", "layout": "any"},
    {"name": "sin", "shape": ["P", "N"], "dtype": "=x", "layout": "any"}],
  "outputs": [
    {"name": "y", "shape": ["T", "H", "D"], "dtype": "=x", "stage": 1, "layout": "any",
     "bound": {"ulp": "6", "of": "row_max",
               "why": "M = abs(a cos) + abs(b sin), or with a and b exchanged, is at most the length of (a, b) times that of (cos, sin) (Cauchy), which is the length of the rotated pair, so at most sqrt 2 times the larger of its two: M <= 1.42 times row_max. Two products and an addition, each rounded by a relative u, the unit roundoff of the dtype (f32 at best; compute = storage): 2 u + u^2 of M, and u for the last one: sqrt 2 * (2 + 1/8) + 1 < 4.1 for u <= 2^-3; rounding to f32 and then to the dtype at most 2^-8 of each; products in the subnormal range half an ULP each. One ULP is at least u of the value. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 2.2 and 3.1"}}],
  "rows": {"dim": "T", "inputs": ["x", "positions"], "outputs": "all"},
  "inplace": [["y", "x"]]
})";

template <class T>
struct Rope {
  int64_t tokens, heads, columns, pairs;
  bool interleaved;
  View<const T, 3> x;
  View<const int32_t, 1> positions;
  View<const T, 2> cos, sin;
  View<T, 3> y;

  int64_t first(int64_t pair) const { return interleaved ? 2 * pair : pair; }
  int64_t second(int64_t pair) const { return interleaved ? 2 * pair + 1 : pairs + pair; }
};

// REJECTED where shapes do not fit each other or style is none of the two.
template <class T>
Rope<T> read(const Call& call) {
  Rope<T> r{};
  r.x = call.input("x").view<const T, 3>();
  r.tokens = r.x.shape[0];
  r.heads = r.x.shape[1];
  r.columns = r.x.shape[2];
  r.cos = call.input("cos").view<const T, 2>();
  r.pairs = r.cos.shape[1];
  require(2 * r.pairs <= r.columns, "cos has ", r.pairs, " pairs, x room for ", r.columns / 2, " in ", r.columns,
          " columns");
  call.input("sin").require_shape({r.cos.shape[0], r.pairs});
  call.input("positions").require_shape({r.tokens});
  call.output("y").require_shape({r.tokens, r.heads, r.columns});
  const std::string_view style = call.text("style");
  require(style == "halves" || style == "interleaved", "style must be halves or interleaved, not ", style);
  r.interleaved = style == "interleaved";
  r.positions = call.input("positions").view<const int32_t, 1>();
  r.sin = call.input("sin").view<const T, 2>();
  r.y = call.output("y").view<T, 3>();
  return r;
}

// REJECTED unless each position is a row of the tables. In a run only: positions are values.
template <class T>
void check_positions(const Rope<T>& r) {
  for (int64_t t = 0; t < r.tokens; ++t) {
    const int64_t position = r.positions(t);
    require(position >= 0 && position < r.cos.shape[0], "positions[", t, "] is ", position, ", not one of ",
            r.cos.shape[0], " rows of the tables");
  }
}

// Pair by pair: both are read before either is written.
template <class T, bool kStorage, class A = Compute<T>>
void sweep(const Call& call) {
  const Rope<T> r = read<T>(call);
  check_positions(r);
  for (int64_t t = 0; t < r.tokens; ++t) {
    const Row<const T> cos = r.cos.at(r.positions(t));
    const Row<const T> sin = r.sin.at(r.positions(t));
    for (int64_t h = 0; h < r.heads; ++h) {
      const Row<const T> x = r.x.at(t, h);
      const Row<T> y = r.y.at(t, h);
      for (int64_t n = 0; n < r.pairs; ++n) {
        const A a = convert<A>(x(r.first(n)));
        const A b = convert<A>(x(r.second(n)));
        const A c = convert<A>(cos(n));
        const A s = convert<A>(sin(n));
        y(r.first(n)) = convert<T>(in_between<T, kStorage>(a * c) - in_between<T, kStorage>(b * s));
        y(r.second(n)) = convert<T>(in_between<T, kStorage>(b * c) + in_between<T, kStorage>(a * s));
      }
      for (int64_t d = 2 * r.pairs; d < r.columns; ++d) {
        y(d) = x(d);
      }
    }
  }
}

// The intermediate tensors of the composition: tables of the tokens [T, 2 * N], then [T, H, 2 * N].
template <class A>
struct Tensors {
  A *cos, *sin, *x, *turned;

  template <class T>
  Tensors(Carver& c, const Rope<T>& r)
      : cos(c.take<A>(r.tokens * 2 * r.pairs)),
        sin(c.take<A>(r.tokens * 2 * r.pairs)),
        x(c.take<A>(r.tokens * r.heads * 2 * r.pairs)),
        turned(c.take<A>(r.tokens * r.heads * 2 * r.pairs)) {}
};

// The tables at the positions, each entry at both places of its pair.
template <class T, class A>
void gather_tables(const Rope<T>& r, const Tensors<A>& t) {
  for (int64_t token = 0; token < r.tokens; ++token) {
    for (int64_t n = 0; n < r.pairs; ++n) {
      for (const int64_t place : {r.first(n), r.second(n)}) {
        t.cos[token * 2 * r.pairs + place] = convert<A>(r.cos(r.positions(token), n));
        t.sin[token * 2 * r.pairs + place] = convert<A>(r.sin(r.positions(token), n));
      }
    }
  }
}

// x * cos + turned(x) * sin, turned((a, b)) = (-b, a): each step over its whole tensor, x read before y is written.
template <class T, bool kStorage, class A = Compute<T>>
void compose(const Call& call) {
  const Rope<T> r = read<T>(call);
  check_positions(r);
  Carver carver = call.workspace();
  const Tensors<A> t(carver, r);
  const int64_t width = 2 * r.pairs;
  const int64_t all = r.tokens * r.heads * width;
  gather_tables(r, t);
  for (int64_t i = 0; i < all; ++i) {
    t.x[i] = convert<A>(r.x(i / width / r.heads, i / width % r.heads, i % width));
  }
  for (int64_t row = 0; row < r.tokens * r.heads; ++row) {
    for (int64_t n = 0; n < r.pairs; ++n) {
      t.turned[row * width + r.first(n)] = -t.x[row * width + r.second(n)];
      t.turned[row * width + r.second(n)] = t.x[row * width + r.first(n)];
    }
  }
  for (int64_t i = 0; i < all; ++i) {
    t.x[i] = in_between<T, kStorage>(t.x[i] * t.cos[i / width / r.heads * width + i % width]);
  }
  for (int64_t i = 0; i < all; ++i) {
    t.turned[i] = in_between<T, kStorage>(t.turned[i] * t.sin[i / width / r.heads * width + i % width]);
  }
  for (int64_t row = 0; row < r.tokens * r.heads; ++row) {
    const Row<const T> x = r.x.at(row / r.heads, row % r.heads);
    const Row<T> y = r.y.at(row / r.heads, row % r.heads);
    for (int64_t d = 0; d < r.columns; ++d) {
      y(d) = d < width ? convert<T>(t.x[row * width + d] + t.turned[row * width + d]) : x(d);
    }
  }
}

void fused(const Call& call) {
  by_any_float_and_compute(call, call.input("x"), [&](auto type, auto storage) {
    sweep<typename decltype(type)::type, decltype(storage)::value>(call);
  });
}

void unfused(const Call& call) {
  by_any_float_and_compute(call, call.input("x"), [&](auto type, auto storage) {
    compose<typename decltype(type)::type, decltype(storage)::value>(call);
  });
}

size_t unfused_workspace(const Call& call) {
  return workspace_by_any_float(call.input("x"), [&](auto type, Carver& carver) {
    using T = typename decltype(type)::type;
    Tensors<Compute<T>>(carver, read<T>(call));
  });
}

}  // namespace

constinit const Operator kRope{"rope", kSchema, {{"fused", fused}, {"unfused", unfused, unfused_workspace}}};

}  // namespace fusediff::builtin
