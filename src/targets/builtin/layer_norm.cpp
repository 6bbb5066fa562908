// layer_norm over the last dimension, everything in the compute type, y rounded once: mean = sum of x / C,
// d = x - mean, rstd = 1 / sqrt(sum of d^2 / C + eps), y = (d * rstd) * gamma + beta. Both sums are as lanes.h.
#include <algorithm>
#include <cmath>

#include "builtin/any_float.h"
#include "builtin/lanes.h"
#include "builtin/operators.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "layer_norm",
  "paths": ["fused", "unfused"],
  "dims": {"R": {"range": [0, 64], "typical": [1, 2, 4, 8, 16]},
           "C": {"range": [1, 1024], "typical": [1, 8, 16, 64, 100, 128, 256, 512]}},
  "attrs": [{"name": "eps", "float": [1e-8, 1e-2], "scale": "log", "default": 1e-5}],
  "where": ["C >= 1"],
  "inputs": [
    {"name": "x",     "shape": ["R", "C"], "dtype": ["f32", "f16", "bf16", "f8e4m3fn", "f8e5m2"], "layout": "any"},
    {"name": "gamma", "shape": ["C"], "dtype": "=x", "layout": "any"},
    {"name": "beta",  "shape": ["C"], "dtype": "=x", "layout": "any"}],
  "outputs": [
    {"name": "mean", "shape": ["R"], "dtype": "f32", "stage": 1, "optional": true, "layout": "any",
     "bound": {"ulp": "C + 2", "of": "abs_inputs",
               "why": "S is the mean of abs x. C - 1 additions in f32 in any order, the division (or a rounded 1 / C and a product): gamma_(C + 1) S, and one ULP is at least 2^-24 S. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 4.2; not where the sum, but not the mean, overflows f32"}},
    {"name": "rstd", "shape": ["R"], "dtype": "f32", "stage": 2, "optional": true, "layout": "any",
     "bound": {"ulp": "C + 16", "of": {"row_max_product": [["rstd"], ["rstd", "rstd", "x"]]},
               "why": "v = 2^-24, X = max abs x, A = X rstd, q = (C + 1) v A. d rounds once; the squares, their sum, / C, + eps and eps itself are of positive terms: (C + 6) v of their sum, halved by the root; root and quotient 2 v. The mean is off by at most (C + 1) v X, which adds its square to the variance, since the d sum to 0: rstd shrinks by 1 - 1 / sqrt(1 + q^2) <= q / 3. In all rstd ((C / 2 + 8) v + (C + 1) v A / 3). Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 1.9, 3.1 and 4.2. For two passes over a row: a variance as the difference of two means is off by A^2; not where squares overflow f32"}},
    {"name": "y", "shape": ["R", "C"], "dtype": "=x", "stage": 3, "layout": "any",
     "bound": {"ulp": {"f32": "2 * C + 40", "f16": "2 + C / 2048", "bf16": "2 + C / 16384", "f8e4m3fn": "2 + C / 65536",
                       "f8e5m2": "2 + C / 65536"},
               "of": {"row_max_product": [["gamma", "x", "rstd"], ["gamma", "x", "x", "rstd", "rstd"], ["beta"]]},
               "why": "v, X, A as for rstd, u the unit roundoff of the dtype. d is at most 2 X and off by (C + 1) v X and a rounding; rstd by (C / 2 + 8) v + (C + 1) v A / 3 of itself; two products and the addition of beta 4 v: v gamma (A (2 C + 25) + A^2 (2 C + 2) / 3) + v beta; the last rounding is half an ULP of at most twice the scale. One ULP is at least u of the scale. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 1.9, 3.1 and 4.2. For two passes, not where squares overflow f32"}}],
  "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"},
  "inplace": [["y", "x"]]
})";

template <class T>
struct LayerNorm {
  using A = Compute<T>;
  int64_t rows, columns;
  A eps;
  View<const T, 2> x;
  View<const T, 1> gamma, beta;
  View<A, 1> mean, rstd;  // false where not wanted
  View<T, 2> y;
};

// REJECTED where shapes do not fit each other or C is 0.
template <class T>
LayerNorm<T> read(const Call& call) {
  LayerNorm<T> n{};
  n.x = call.input("x").view<const T, 2>();
  n.rows = n.x.shape[0];
  n.columns = n.x.shape[1];
  require(n.columns >= 1, "x must have at least one column");
  n.eps = static_cast<Compute<T>>(call.real("eps"));
  call.input("gamma").require_shape({n.columns});
  call.input("beta").require_shape({n.columns});
  call.output("mean").require_shape({n.rows});
  call.output("rstd").require_shape({n.rows});
  call.output("y").require_shape({n.rows, n.columns});
  n.gamma = call.input("gamma").view<const T, 1>();
  n.beta = call.input("beta").view<const T, 1>();
  n.mean = call.output("mean").optional_view<Compute<T>, 1>();
  n.rstd = call.output("rstd").optional_view<Compute<T>, 1>();
  n.y = call.output("y").view<T, 2>();
  return n;
}

template <class A>
struct Scratch {
  A *row, *gamma, *beta;  // [C]

  Scratch(Carver& c, int64_t columns) : row(c.take<A>(columns)), gamma(c.take<A>(columns)), beta(c.take<A>(columns)) {}
};

template <class A>
A sum_of(const A* row, int64_t n) {
  LaneVector<A> lanes;
  for (int64_t i = 0; i < n; i += kLanes) {
    lanes.v += LaneVector<A>(row + i, std::min(kLanes, n - i)).v;
  }
  return lanes.fold();
}

// Subtracts the mean; returns the sum of squares of what is left.
template <class A>
A centre(A* row, int64_t n, A mean) {
  LaneVector<A> lanes;
  for (int64_t from = 0; from < n; from += kLanes) {
    const int64_t count = std::min(kLanes, n - from);
    for (int64_t i = 0; i < count; ++i) {
      row[from + i] -= mean;
    }
    const LaneVector<A> d(row + from, count);
    lanes.v += d.v * d.v;
  }
  return lanes.fold();
}

// Row by row; each is read before any of it is written.
template <class T, class A = Compute<T>>
void sweep(const Call& call) {
  const LayerNorm<T> n = read<T>(call);
  Carver carver = call.workspace();
  const Scratch<A> b(carver, n.columns);
  const A* gamma = dense(n.gamma, b.gamma);
  const A* beta = dense(n.beta, b.beta);
  const A count = static_cast<A>(n.columns);
  for (int64_t r = 0; r < n.rows; ++r) {
    load(n.x.at(r), b.row);
    const A mean = sum_of(b.row, n.columns) / count;
    const A rstd = A(1) / std::sqrt(centre(b.row, n.columns, mean) / count + n.eps);
    for (int64_t i = 0; i < n.columns; ++i) {
      b.row[i] = (b.row[i] * rstd) * gamma[i] + beta[i];
    }
    store(n.y.at(r), b.row);
    if (n.mean) {
      n.mean(r) = mean;
    }
    if (n.rstd) {
      n.rstd(r) = rstd;
    }
  }
}

// The intermediate tensors of the composition: [R, C], then [R].
template <class A>
struct Tensors {
  A *wide, *squares, *mean, *rstd;

  Tensors(Carver& c, int64_t rows, int64_t columns)
      : wide(c.take<A>(rows * columns)),
        squares(c.take<A>(rows * columns)),
        mean(c.take<A>(rows)),
        rstd(c.take<A>(rows)) {}
};

// means[r] = sum of row r of `from` / C.
template <class A>
void row_means(const A* from, int64_t rows, int64_t columns, A* means) {
  for (int64_t r = 0; r < rows; ++r) {
    means[r] = lane_sum<A>(columns, [&](int64_t i) { return from[r * columns + i]; }) / static_cast<A>(columns);
  }
}

// To f32, mean, sub, pow, mean, add, rsqrt, mul, mul, add, to the dtype: each over its whole tensor; inputs are read
// before any output is written.
template <class T, class A = Compute<T>>
void compose(const Call& call) {
  const LayerNorm<T> n = read<T>(call);
  const int64_t columns = n.columns;
  const int64_t all = n.rows * columns;
  Carver carver = call.workspace();
  const Tensors<A> t(carver, n.rows, columns);
  for (int64_t i = 0; i < all; ++i) {
    t.wide[i] = convert<A>(n.x(i / columns, i % columns));
  }
  row_means(t.wide, n.rows, columns, t.mean);
  for (int64_t i = 0; i < all; ++i) {
    t.wide[i] -= t.mean[i / columns];
  }
  for (int64_t i = 0; i < all; ++i) {
    t.squares[i] = t.wide[i] * t.wide[i];
  }
  row_means(t.squares, n.rows, columns, t.rstd);
  for (int64_t r = 0; r < n.rows; ++r) {
    t.rstd[r] = A(1) / std::sqrt(t.rstd[r] + n.eps);
  }
  for (int64_t i = 0; i < all; ++i) {
    t.wide[i] *= t.rstd[i / columns];
  }
  for (int64_t i = 0; i < all; ++i) {
    t.wide[i] *= convert<A>(n.gamma(i % columns));
  }
  for (int64_t i = 0; i < all; ++i) {
    t.wide[i] += convert<A>(n.beta(i % columns));
  }
  for (int64_t i = 0; i < all; ++i) {
    n.y(i / columns, i % columns) = convert<T>(t.wide[i]);
  }
  store(n.mean, t.mean);
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
    const LayerNorm<T> n = read<T>(call);
    Tensors<Compute<T>>(carver, n.rows, n.columns);
  });
}

}  // namespace

constinit const Operator kLayerNorm{
    "layer_norm", kSchema, {{"fused", fused, fused_workspace}, {"unfused", unfused, unfused_workspace}}};

}  // namespace fusediff::builtin
