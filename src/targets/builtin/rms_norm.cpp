// rms_norm: y = s / sqrt(mean over C of s^2 + eps) * gamma, where s is x, or x + residual rounded to the dtype of x,
// which is also written out: the norm reads what a framework would have stored. Everything else is in the compute type:
// the sum of squares as lanes.h, then / C, + eps, 1 / sqrt; y = (s * rstd) * gamma, rounded once.
#include <algorithm>
#include <cmath>

#include "builtin/any_float.h"
#include "builtin/lanes.h"
#include "builtin/operators.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr int64_t kTile = 4 * kLanes;

constexpr char kSchema[] = R"({
  "name": "rms_norm",
  "paths": ["fused", "unfused"],
  "dims": {"R": {"range": [0, 64], "typical": [1, 2, 4, 8, 16]},
           "C": {"range": [1, 1024], "typical": [1, 8, 16, 64, 100, 128, 256, 512]}},
  "attrs": [
    {"name": "add_residual", "bool": true, "default": false},
    {"name": "eps", "float": [1e-8, 1e-2], "scale": "log", "default": 1e-6}],
  "where": ["C >= 1"],
  "inputs": [
    {"name": "x",        "shape": ["R", "C"], "dtype": ["f32", "f16", "bf16", "f8e4m3fn", "f8e5m2"], "layout": "any"},
    {"name": "residual", "shape": ["R", "C"], "dtype": "=x", "optional": true, "if": "add_residual == 1",
     "layout": "any"},
    {"name": "gamma",    "shape": ["C"], "dtype": "=x", "layout": "any"}],
  "outputs": [
    {"name": "residual_out", "shape": ["R", "C"], "dtype": "=x", "stage": 1, "optional": true,
     "if": "add_residual == 1", "layout": "any",
     "bound": {"ulp": "1", "of": "element",
               "why": "one addition, rounded to f32 and then to the dtype: half a unit and at most 2^-8 of one"}},
    {"name": "rstd", "shape": ["R"], "dtype": "f32", "stage": 2, "optional": true, "layout": "any",
     "bound": {"ulp": {"f32": "C + 16 + add_residual * 4", "f16": "C + 16 + add_residual * 16384",
                       "bf16": "C + 16 + add_residual * 131072", "f8e4m3fn": "C + 16 + add_residual * 2097152",
                       "f8e5m2": "C + 16 + add_residual * 4194304"}, "by": "x", "of": "element",
               "why": "v = 2^-24. Squares, their sum in any order, / C, + eps and eps itself in f32: all terms positive, so a relative gamma_(C + 4), which the root halves; the root and the quotient one v each: (C / 2 + 4) v, at most doubled by terms of second order; one ULP is at least v of the value. The rounding of x + residual to its dtype, which the truth does not do, changes s, and with it the root of the mean, by a relative u of the dtype of x and its inverse by at most u / (1 - u) <= 2 u. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 2.2, 3.1 and 4.2; not for rows whose squares overflow or all but vanish in f32"}},
    {"name": "y", "shape": ["R", "C"], "dtype": "=x", "stage": 3, "layout": "any",
     "bound": {"ulp": {"f32": "C + 16 + 4 * add_residual", "f16": "3 + C / 4096 + 4 * add_residual",
                       "bf16": "3 + C / 32768 + 4 * add_residual", "f8e4m3fn": "3 + 4 * add_residual",
                       "f8e5m2": "3 + 4 * add_residual"}, "of": "element",
               "why": "u the unit roundoff of the dtype, v <= u that of f32; one ULP is at least u of the value. rstd: (C / 2 + 4) v; the two products 2 v; the last rounding u, in the subnormal range half an ULP. With a residual: its rounding in s and, inverted, in rstd, 2 u + u^2 / (1 - u). Products of relative changes at most double all that; v is 2^-13 u in f16, 2^-16 u in bf16, 2^-20 u or less in 8 bits (C <= 2^17). Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 2.2, 3.1 and 4.2. His model of arithmetic, and so the bound, is not for rows whose squares, or elements whose s * rstd, leave the normal range of f32"}}],
  "rows": {"dim": "R", "inputs": ["x", "residual"], "outputs": "all"},
  "inplace": [["y", "x"], ["residual_out", "residual"]]
})";

template <class T>
struct RmsNorm {
  using A = Compute<T>;
  int64_t rows, columns;
  bool add;
  A eps;
  View<const T, 2> x, residual;  // residual: false where there is none
  View<const T, 1> gamma;
  View<T, 2> residual_out, y;  // residual_out: false where not wanted
  View<A, 1> rstd;             // false where not wanted
};

// REJECTED where shapes do not fit each other, C is 0, or the residual is there or not against add_residual.
template <class T>
RmsNorm<T> read(const Call& call) {
  RmsNorm<T> n{};
  n.x = call.input("x").view<const T, 2>();
  n.rows = n.x.shape[0];
  n.columns = n.x.shape[1];
  require(n.columns >= 1, "x must have at least one column");
  n.add = call.flag("add_residual");
  n.eps = static_cast<Compute<T>>(call.real("eps"));
  call.input("gamma").require_shape({n.columns});
  call.output("y").require_shape({n.rows, n.columns});
  call.output("rstd").require_shape({n.rows});
  if (n.add) {
    call.input("residual").require_shape({n.rows, n.columns});
    call.output("residual_out").require_shape({n.rows, n.columns});
    n.residual = call.input("residual").view<const T, 2>();
    n.residual_out = call.output("residual_out").optional_view<T, 2>();
  } else {
    require(!call.input("residual").present(), "residual is given, but add_residual is false");
  }
  n.gamma = call.input("gamma").view<const T, 1>();
  n.y = call.output("y").view<T, 2>();
  n.rstd = call.output("rstd").optional_view<Compute<T>, 1>();
  return n;
}

template <class A>
A inverse_root(A sum, int64_t columns, A eps) {
  return A(1) / std::sqrt(sum / static_cast<A>(columns) + eps);
}

// s of one row into `sums` [C], and to residual_out; returns the sum of its squares.
template <class T, class A = Compute<T>>
A add_row(const RmsNorm<T>& n, int64_t row, A* sums) {
  LaneVector<A> squares;
  A tile[kTile] = {};
  for (int64_t from = 0; from < n.columns; from += kTile) {
    const int64_t count = std::min(kTile, n.columns - from);
    A* s = sums + from;
    load(n.x.at(row).part(from, count), s);
    if (n.add) {
      load(n.residual.at(row).part(from, count), tile);
      for (int64_t i = 0; i < count; ++i) {
        s[i] = convert<A>(convert<T>(s[i] + tile[i]));
      }
      if (n.residual_out) {
        store(n.residual_out.at(row).part(from, count), s);
      }
    }
    for (int64_t i = 0; i < count; i += kLanes) {
      const LaneVector<A> v(s + i, std::min(kLanes, count - i));
      squares.v += v.v * v.v;
    }
  }
  return squares.fold();
}

template <class A>
struct Scratch {
  A *sums, *gamma;  // [C]

  Scratch(Carver& c, int64_t columns) : sums(c.take<A>(columns)), gamma(c.take<A>(columns)) {}
};

// Row by row: each is read once, before anything of it is written apart from what lies on its own element.
template <class T, class A = Compute<T>>
void sweep(const Call& call) {
  const RmsNorm<T> n = read<T>(call);
  Carver carver = call.workspace();
  const Scratch<A> b(carver, n.columns);
  const A* gamma = dense(n.gamma, b.gamma);
  for (int64_t row = 0; row < n.rows; ++row) {
    const A rstd = inverse_root(add_row(n, row, b.sums), n.columns, n.eps);
    if (n.rstd) {
      n.rstd(row) = rstd;
    }
    for (int64_t i = 0; i < n.columns; ++i) {
      b.sums[i] = (b.sums[i] * rstd) * gamma[i];
    }
    store(n.y.at(row), b.sums);
  }
}

// The intermediate tensors of the composition: [R, C], and [R] for the last two.
template <class T, class A = Compute<T>>
struct Tensors {
  T* sum;
  A *wide, *squares, *normed, *mean, *rstd;

  Tensors(Carver& c, const RmsNorm<T>& n)
      : sum(c.take<T>(n.rows * n.columns)),
        wide(c.take<A>(n.rows * n.columns)),
        squares(c.take<A>(n.rows * n.columns)),
        normed(c.take<A>(n.rows * n.columns)),
        mean(c.take<A>(n.rows)),
        rstd(c.take<A>(n.rows)) {}
};

// add, to f32, pow, mean, add, rsqrt, two muls, to the dtype: each over its whole tensor, inputs read before any
// output.
template <class T, class A = Compute<T>>
void compose(const Call& call) {
  const RmsNorm<T> n = read<T>(call);
  const int64_t columns = n.columns;
  const int64_t all = n.rows * columns;
  Carver carver = call.workspace();
  const Tensors<T> t(carver, n);
  for (int64_t i = 0; i < all; ++i) {
    const T x = n.x(i / columns, i % columns);
    t.sum[i] = n.add ? convert<T>(convert<A>(x) + convert<A>(n.residual(i / columns, i % columns))) : x;
  }
  for (int64_t i = 0; i < all; ++i) {
    t.wide[i] = convert<A>(t.sum[i]);
  }
  for (int64_t i = 0; i < all; ++i) {
    t.squares[i] = t.wide[i] * t.wide[i];
  }
  for (int64_t row = 0; row < n.rows; ++row) {
    const A* squares = t.squares + row * columns;
    t.mean[row] = lane_sum<A>(columns, [&](int64_t i) { return squares[i]; }) / static_cast<A>(columns);
  }
  for (int64_t row = 0; row < n.rows; ++row) {
    t.rstd[row] = A(1) / std::sqrt(t.mean[row] + n.eps);
  }
  for (int64_t i = 0; i < all; ++i) {
    t.normed[i] = t.wide[i] * t.rstd[i / columns];
  }
  for (int64_t i = 0; i < all; ++i) {
    t.normed[i] *= convert<A>(n.gamma(i % columns));
  }
  for (int64_t row = 0; row < n.rows; ++row) {
    if (n.residual_out) {
      store(n.residual_out.at(row), t.sum + row * columns);
    }
    store(n.y.at(row), t.normed + row * columns);
  }
  store(n.rstd, t.rstd);
}

void fused(const Call& call) {
  by_any_float(call.input("x"), [&](auto type) { sweep<typename decltype(type)::type>(call); });
}

size_t fused_workspace(const Call& call) {
  return workspace_by_any_float(call.input("x"), [&](auto type, Carver& carver) {
    using T = typename decltype(type)::type;
    Scratch<Compute<T>>(carver, read<T>(call).columns);
  });
}

void unfused(const Call& call) {
  by_any_float(call.input("x"), [&](auto type) { compose<typename decltype(type)::type>(call); });
}

size_t unfused_workspace(const Call& call) {
  return workspace_by_any_float(call.input("x"), [&](auto type, Carver& carver) {
    using T = typename decltype(type)::type;
    Tensors<T>(carver, read<T>(call));
  });
}

}  // namespace

constinit const Operator kRmsNorm{
    "rms_norm", kSchema, {{"fused", fused, fused_workspace}, {"unfused", unfused, unfused_workspace}}};

}  // namespace fusediff::builtin
