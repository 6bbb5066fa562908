// layer_norm_grad: the derivative of layer_norm, from x, mean and rstd as the forward gave them. In the compute type:
// h = (x - mean) * rstd, w = grad_y * gamma, a = (sum of w) / C, b = (sum of w * h) / C, both sums as lanes.h;
// grad_x = rstd * ((w - a) - h * b), rounded once. grad_gamma and grad_beta are the sums over rows, in index order, of
// grad_y * h and of grad_y, rounded once; zeros over no rows.
// The bounds are of largest inputs: the terms of grad_x cancel where w is nearly a + h * b, always for C <= 2, and h
// is less in proportion than what rounding makes of it where a row has little spread around a large mean.
#include <algorithm>

#include "builtin/any_float.h"
#include "builtin/lanes.h"
#include "builtin/operators.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "layer_norm_grad",
  "paths": ["fused", "unfused"],
  "dims": {"R": {"range": [0, 64], "typical": [1, 2, 4, 8, 16]},
           "C": {"range": [1, 1024], "typical": [1, 8, 16, 64, 100, 128, 256, 512]}},
  "where": ["C >= 1"],
  "given": [{"name": "beta", "shape": ["C"], "dtype": "=x"}],
  "inputs": [
    {"name": "grad_y", "shape": ["R", "C"], "dtype": "=x", "role": "cotangent", "layout": "any"},
    {"name": "x",      "shape": ["R", "C"], "dtype": ["f32", "f16", "bf16", "f8e4m3fn", "f8e5m2"], "layout": "any"},
    {"name": "mean", "shape": ["R"], "dtype": "f32", "role": "saved", "layout": "any",
     "saved": {"op": "layer_norm", "output": "mean", "inputs": {"x": "x", "gamma": "gamma", "beta": "beta"}}},
    {"name": "rstd", "shape": ["R"], "dtype": "f32", "role": "saved", "layout": "any",
     "saved": {"op": "layer_norm", "output": "rstd", "inputs": {"x": "x", "gamma": "gamma", "beta": "beta"}}},
    {"name": "gamma",  "shape": ["C"], "dtype": "=x", "layout": "any"}],
  "outputs": [
    {"name": "grad_x", "shape": ["R", "C"], "dtype": "=x", "stage": 1, "layout": "any",
     "bound": {"ulp": {"f32": "8 * C + 80", "f16": "3 + C / 512", "bf16": "3 + C / 4096", "f8e4m3fn": "3 + C / 65536",
                       "f8e5m2": "3 + C / 65536"},
               "of": {"row_max_product": [["rstd", "grad_y", "gamma"], ["rstd", "grad_y", "gamma", "x", "x", "rstd", "rstd"]]},
               "why": "v = 2^-24, u the unit roundoff of the dtype, W = max abs grad_y times max abs gamma, A = max abs x * rstd. As in layer_norm mean is off by (C + 1) v max abs x and rstd by r = (C / 2 + 8) v + (C + 1) v A / 3 of itself. abs h <= 2 A, the mean of abs h and so b / W <= 1. h is off by v ((2 C + 21) A + (C + 1) A^2 2 / 3), b by v W ((C + 1) A + 3 C / 2 + 12) and r W, w - a by (C + 5) v W, the outer rstd by r and a rounding of W (2 + 2 A): with A <= (1 + A^2) / 2 less than v (7.4 C + 60) rstd W (1 + A^2), and the last rounding half an ULP of less than four times the scale. One ULP is at least u of the scale. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 1.9, 3.1 and 4.2. For saved numbers of two passes, not where squares overflow f32"}},
    {"name": "grad_gamma", "shape": ["C"], "dtype": "=x", "stage": 1, "layout": "any",
     "bound": {"ulp": {"f32": "R * (2 * C + 2 * R + 28) + 1", "f16": "2 + R * (2 * C + 2 * R + 28) / 8192", "bf16": "2 + R * (2 * C + 2 * R + 28) / 65536",
                       "f8e4m3fn": "2 + R * (2 * C + 2 * R + 28) / 1048576", "f8e5m2": "2 + R * (2 * C + 2 * R + 28) / 1048576"},
               "of": {"row_max_product": [["grad_gamma"], ["grad_y", "x", "rstd"], ["grad_y", "x", "x", "rstd", "rstd"]]},
               "why": "all rows together: A = max abs x * max rstd. A term is at most 2 A max abs grad_y; h is off as in grad_x; R products and additions in any order R v of it: R v ((2 C + 21 + 2 R) A + (C + 1) A^2 2 / 3) max abs grad_y, and the last rounding half an ULP of grad_gamma. One ULP is at least u of the scale. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 1.9, 3.1 and 4.2. Weak where the rstd of rows are far apart. For saved numbers of two passes, not where squares overflow f32"}},
    {"name": "grad_beta", "shape": ["C"], "dtype": "=x", "stage": 1, "layout": "any",
     "bound": {"ulp": {"f32": "R + 2", "f16": "2 + R / 8192", "bf16": "2 + R / 65536", "f8e4m3fn": "2", "f8e5m2": "2"},
               "of": "abs_inputs",
               "why": "S is the sum of abs grad_y. R - 1 additions in f32, in any order: gamma_(R - 1) S, and one ULP is at least 2^-24 S; the last rounding half an ULP, or less than that of S; narrower dtypes have 2^13 (f16) units v in one or more (8 bits: R <= 2^19). Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 4.2"}}],
  "rows": {"dim": "R", "inputs": ["grad_y", "x", "mean", "rstd"], "outputs": ["grad_x"]},
  "inplace": [["grad_x", "grad_y"], ["grad_x", "x"]],
  "gradient": {"of": "layer_norm", "wrt": {"grad_x": "x", "grad_gamma": "gamma", "grad_beta": "beta"},
               "cotangents": {"grad_y": "y"}}
})";

template <class T>
struct LayerNormGrad {
  using A = Compute<T>;
  int64_t rows, columns;
  View<const T, 2> grad_y, x;
  View<const A, 1> mean, rstd;
  View<const T, 1> gamma;
  View<T, 2> grad_x;
  View<T, 1> grad_gamma, grad_beta;
};

// REJECTED where shapes do not fit each other or C is 0.
template <class T>
LayerNormGrad<T> read(const Call& call) {
  LayerNormGrad<T> n{};
  n.x = call.input("x").view<const T, 2>();
  n.rows = n.x.shape[0];
  n.columns = n.x.shape[1];
  require(n.columns >= 1, "x must have at least one column");
  call.input("grad_y").require_shape({n.rows, n.columns});
  call.input("mean").require_shape({n.rows});
  call.input("rstd").require_shape({n.rows});
  call.input("gamma").require_shape({n.columns});
  call.output("grad_x").require_shape({n.rows, n.columns});
  call.output("grad_gamma").require_shape({n.columns});
  call.output("grad_beta").require_shape({n.columns});
  n.grad_y = call.input("grad_y").view<const T, 2>();
  n.mean = call.input("mean").view<const Compute<T>, 1>();
  n.rstd = call.input("rstd").view<const Compute<T>, 1>();
  n.gamma = call.input("gamma").view<const T, 1>();
  n.grad_x = call.output("grad_x").view<T, 2>();
  n.grad_gamma = call.output("grad_gamma").view<T, 1>();
  n.grad_beta = call.output("grad_beta").view<T, 1>();
  return n;
}

template <class A>
struct Scratch {
  A *w, *h, *gamma, *grad_gamma, *grad_beta;  // [C]

  Scratch(Carver& c, int64_t columns)
      : w(c.take<A>(columns)),
        h(c.take<A>(columns)),
        gamma(c.take<A>(columns)),
        grad_gamma(c.take<A>(columns)),
        grad_beta(c.take<A>(columns)) {}
};

template <class A>
struct RowSums {
  A w, product;
};

// w and h of one row; adds the row's part to grad_gamma and grad_beta; returns the sums of w and of w * h.
template <class T, class A>
RowSums<A> read_row(const LayerNormGrad<T>& n, const Scratch<A>& b, const A* gamma, int64_t row) {
  load(n.grad_y.at(row), b.w);
  load(n.x.at(row), b.h);
  const A mean = n.mean(row);
  const A rstd = n.rstd(row);
  LaneVector<A> sum, products;
  for (int64_t from = 0; from < n.columns; from += kLanes) {
    const int64_t count = std::min(kLanes, n.columns - from);
    A* w = b.w + from;
    A* h = b.h + from;
    for (int64_t i = 0; i < count; ++i) {
      h[i] = (h[i] - mean) * rstd;
      b.grad_gamma[from + i] += w[i] * h[i];
      b.grad_beta[from + i] += w[i];
      w[i] *= gamma[from + i];
    }
    const LaneVector<A> lanes(w, count);
    sum.v += lanes.v;
    products.v += lanes.v * LaneVector<A>(h, count).v;
  }
  return {sum.fold(), products.fold()};
}

// Row by row; each is read before any of it is written.
template <class T, class A = Compute<T>>
void sweep(const Call& call) {
  const LayerNormGrad<T> n = read<T>(call);
  Carver carver = call.workspace();
  const Scratch<A> b(carver, n.columns);
  const A* gamma = dense(n.gamma, b.gamma);
  std::fill_n(b.grad_gamma, n.columns, A(0));
  std::fill_n(b.grad_beta, n.columns, A(0));
  for (int64_t row = 0; row < n.rows; ++row) {
    const RowSums<A> sums = read_row(n, b, gamma, row);
    const A mean_w = sums.w / static_cast<A>(n.columns);
    const A mean_product = sums.product / static_cast<A>(n.columns);
    const A rstd = n.rstd(row);
    for (int64_t i = 0; i < n.columns; ++i) {
      b.w[i] = rstd * ((b.w[i] - mean_w) - b.h[i] * mean_product);
    }
    store(n.grad_x.at(row), b.w);
  }
  store(n.grad_gamma, b.grad_gamma);
  store(n.grad_beta, b.grad_beta);
}

// The intermediate tensors of the composition: [R, C], then [R], then [C].
template <class A>
struct Tensors {
  A *g, *h, *w, *product, *mean_w, *mean_product, *grad_gamma, *grad_beta;

  Tensors(Carver& c, int64_t rows, int64_t columns)
      : g(c.take<A>(rows * columns)),
        h(c.take<A>(rows * columns)),
        w(c.take<A>(rows * columns)),
        product(c.take<A>(rows * columns)),
        mean_w(c.take<A>(rows)),
        mean_product(c.take<A>(rows)),
        grad_gamma(c.take<A>(columns)),
        grad_beta(c.take<A>(columns)) {}
};

// sums[c] = sum over rows of column c, one column after the other.
template <class A>
void column_sums(const A* from, int64_t rows, int64_t columns, A* sums) {
  for (int64_t c = 0; c < columns; ++c) {
    sums[c] = 0;
    for (int64_t r = 0; r < rows; ++r) {
      sums[c] += from[r * columns + c];
    }
  }
}

template <class A>
void row_means(const A* from, int64_t rows, int64_t columns, A* means) {
  for (int64_t r = 0; r < rows; ++r) {
    means[r] = lane_sum<A>(columns, [&](int64_t i) { return from[r * columns + i]; }) / static_cast<A>(columns);
  }
}

// The backward of each step of the composition, over its whole tensor; inputs are read before any output is written.
template <class T, class A = Compute<T>>
void compose(const Call& call) {
  const LayerNormGrad<T> n = read<T>(call);
  const int64_t columns = n.columns;
  const int64_t all = n.rows * columns;
  Carver carver = call.workspace();
  const Tensors<A> t(carver, n.rows, columns);
  for (int64_t i = 0; i < all; ++i) {
    t.g[i] = convert<A>(n.grad_y(i / columns, i % columns));
  }
  column_sums(t.g, n.rows, columns, t.grad_beta);
  for (int64_t i = 0; i < all; ++i) {
    t.h[i] = convert<A>(n.x(i / columns, i % columns)) - n.mean(i / columns);
  }
  for (int64_t i = 0; i < all; ++i) {
    t.h[i] *= n.rstd(i / columns);
  }
  for (int64_t i = 0; i < all; ++i) {
    t.product[i] = t.g[i] * t.h[i];
  }
  column_sums(t.product, n.rows, columns, t.grad_gamma);
  for (int64_t i = 0; i < all; ++i) {
    t.w[i] = t.g[i] * convert<A>(n.gamma(i % columns));
  }
  row_means(t.w, n.rows, columns, t.mean_w);
  for (int64_t i = 0; i < all; ++i) {
    t.product[i] = t.w[i] * t.h[i];
  }
  row_means(t.product, n.rows, columns, t.mean_product);
  for (int64_t i = 0; i < all; ++i) {
    t.h[i] *= t.mean_product[i / columns];
  }
  for (int64_t i = 0; i < all; ++i) {
    t.w[i] = t.w[i] - t.mean_w[i / columns] - t.h[i];
  }
  for (int64_t i = 0; i < all; ++i) {
    n.grad_x(i / columns, i % columns) = convert<T>(n.rstd(i / columns) * t.w[i]);
  }
  store(n.grad_gamma, t.grad_gamma);
  store(n.grad_beta, t.grad_beta);
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
    const LayerNormGrad<T> n = read<T>(call);
    Tensors<Compute<T>>(carver, n.rows, n.columns);
  });
}

}  // namespace

constinit const Operator kLayerNormGrad{
    "layer_norm_grad", kSchema, {{"fused", fused, fused_workspace}, {"unfused", unfused, unfused_workspace}}};

}  // namespace fusediff::builtin
