// rms_norm_grad: the derivative of rms_norm. s is what the norm read: residual_out where there was a residual, else x.
// In the compute type: h = s * rstd, w = grad_y * gamma, m = (sum of w * h as lanes.h) / C,
// grad_x = rstd * (w - h * m), rounded; with a residual grad_residual_out is added to that and the sum rounded again,
// as a framework accumulates gradients. The gradient of the residual is grad_x too. grad_gamma is the sum over rows, in
// index order, of grad_y * h, rounded once; zeros over no rows.
// The bound of grad_x is of largest inputs: its two terms cancel where w is nearly parallel to h, by any factor up to
// mean of s^2 / eps, and always for C = 1.
#include <algorithm>

#include "builtin/any_float.h"
#include "builtin/lanes.h"
#include "builtin/operators.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "rms_norm_grad",
  "paths": ["fused", "unfused"],
  "dims": {"R": {"range": [0, 64], "typical": [1, 2, 4, 8, 16]},
           "C": {"range": [1, 1024], "typical": [1, 8, 16, 64, 100, 128, 256, 512]}},
  "attrs": [{"name": "add_residual", "bool": true, "default": false}],
  "where": ["C >= 1"],
  "given": [
    {"name": "residual", "shape": ["R", "C"], "dtype": "=x", "optional": true, "if": "add_residual == 1"}],
  "inputs": [
    {"name": "grad_y", "shape": ["R", "C"], "dtype": "=x", "role": "cotangent", "layout": "any"},
    {"name": "grad_residual_out", "shape": ["R", "C"], "dtype": "=x", "role": "cotangent", "optional": true,
     "if": "add_residual == 1", "layout": "any"},
    {"name": "x", "shape": ["R", "C"], "dtype": ["f32", "f16", "bf16", "f8e4m3fn", "f8e5m2"], "layout": "any"},
    {"name": "residual_out", "shape": ["R", "C"], "dtype": "=x", "role": "saved", "optional": true,
     "if": "add_residual == 1", "layout": "any",
     "saved": {"op": "rms_norm", "output": "residual_out",
               "inputs": {"x": "x", "residual": "residual", "gamma": "gamma"}}},
    {"name": "rstd", "shape": ["R"], "dtype": "f32", "role": "saved", "layout": "any",
     "saved": {"op": "rms_norm", "output": "rstd", "inputs": {"x": "x", "residual": "residual", "gamma": "gamma"}}},
    {"name": "gamma", "shape": ["C"], "dtype": "=x", "layout": "any"}],
  "outputs": [
    {"name": "grad_x", "shape": ["R", "C"], "dtype": "=x", "stage": 1, "layout": "any",
     "bound": {"ulp": {"f32": "3 * C + 40", "f16": "6 + 12 * add_residual + C / 1024",
                       "bf16": "6 + 12 * add_residual + C / 8192", "f8e4m3fn": "6 + 12 * add_residual + C / 65536",
                       "f8e5m2": "6 + 12 * add_residual + C / 65536"},
               "of": {"row_max_product": [["rstd", "grad_y", "gamma"], ["rstd", "grad_y", "gamma", "rstd", "x"],
                                          ["rstd", "grad_y", "gamma", "rstd", "residual_out"], ["grad_residual_out"]]},
               "why": "u the unit roundoff of the dtype, v <= u that of f32, W = max abs grad_y times max abs gamma. rstd is off by (C / 2 + 4) v of itself, and by u where x + residual was rounded, as s is. So rstd * w by u + (C / 2 + 7) v, rstd * h * m, at most rstd * W * max abs s * rstd since the mean of abs h is below 1, by 5 u + (5 C / 2 + 20) v; then one rounding, or with grad_residual_out two, of u each. Products of changes at most double that where u > v. One ULP is at least u of the scale. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 4.2. Not where squares leave the range of f32, nor, with a residual, where s is subnormal in its dtype"}},
    {"name": "grad_gamma", "shape": ["C"], "dtype": "=x", "stage": 1, "layout": "any",
     "bound": {"ulp": {"f32": "C + 2 * R + 24", "f16": "3 + 6 * add_residual + (C + 2 * R + 24) / 8192",
                       "bf16": "3 + 6 * add_residual + (C + 2 * R + 24) / 65536",
                       "f8e4m3fn": "3 + 6 * add_residual + (C + 2 * R + 24) / 1048576",
                       "f8e5m2": "3 + 6 * add_residual + (C + 2 * R + 24) / 1048576"}, "of": "abs_inputs",
               "why": "S is the sum over rows of abs grad_y * s * rstd. u the unit roundoff of the dtype, v <= u that of f32. A term has a relative error of (C / 2 + 6) v, and 2 u where x + residual was rounded, its place in the sum R v more, the last rounding is one u; products of relative changes and what S loses by the rounding of the saved tensors at most double that; one ULP is at least u of the value. Terms that underflow add half a unit of the smallest subnormal each, R / 2. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 4.2; not where s * rstd leaves the normal range of f32"}}],
  "rows": {"dim": "R", "inputs": ["grad_y", "grad_residual_out", "x", "residual_out", "rstd", "residual"],
           "outputs": ["grad_x"]},
  "inplace": [["grad_x", "grad_y"], ["grad_x", "grad_residual_out"]],
  "gradient": {"of": "rms_norm", "wrt": {"grad_x": "x", "grad_gamma": "gamma"},
               "cotangents": {"grad_y": "y", "grad_residual_out": "residual_out"}}
})";

template <class T>
struct RmsNormGrad {
  using A = Compute<T>;
  int64_t rows, columns;
  bool add;
  View<const T, 2> grad_y, grad_residual_out, s;  // grad_residual_out: false where there is none
  View<const A, 1> rstd;
  View<const T, 1> gamma;
  View<T, 2> grad_x;
  View<T, 1> grad_gamma;
};

// REJECTED where shapes do not fit each other, C is 0, or tensors of the residual are there or not against
// add_residual.
template <class T>
RmsNormGrad<T> read(const Call& call) {
  RmsNormGrad<T> n{};
  n.s = call.input("x").view<const T, 2>();
  n.rows = n.s.shape[0];
  n.columns = n.s.shape[1];
  require(n.columns >= 1, "x must have at least one column");
  n.add = call.flag("add_residual");
  call.input("grad_y").require_shape({n.rows, n.columns});
  call.input("rstd").require_shape({n.rows});
  call.input("gamma").require_shape({n.columns});
  call.output("grad_x").require_shape({n.rows, n.columns});
  call.output("grad_gamma").require_shape({n.columns});
  for (const char* name : {"residual_out", "grad_residual_out"}) {
    if (n.add) {
      call.input(name).require_shape({n.rows, n.columns});
    } else {
      require(!call.input(name).present(), name, " is given, but add_residual is false");
    }
  }
  if (n.add) {
    n.s = call.input("residual_out").view<const T, 2>();
    n.grad_residual_out = call.input("grad_residual_out").view<const T, 2>();
  }
  n.grad_y = call.input("grad_y").view<const T, 2>();
  n.rstd = call.input("rstd").view<const Compute<T>, 1>();
  n.gamma = call.input("gamma").view<const T, 1>();
  n.grad_x = call.output("grad_x").view<T, 2>();
  n.grad_gamma = call.output("grad_gamma").view<T, 1>();
  return n;
}

template <class A>
struct Scratch {
  A *w, *h, *gamma, *grad_gamma;  // [C]

  Scratch(Carver& c, int64_t columns)
      : w(c.take<A>(columns)), h(c.take<A>(columns)), gamma(c.take<A>(columns)), grad_gamma(c.take<A>(columns)) {}
};

// w and h of one row; adds the row's part to grad_gamma; returns the sum of w * h.
template <class T, class A>
A read_row(const RmsNormGrad<T>& n, const Scratch<A>& b, const A* gamma, int64_t row) {
  load(n.grad_y.at(row), b.w);
  load(n.s.at(row), b.h);
  const A rstd = n.rstd(row);
  LaneVector<A> products;
  for (int64_t from = 0; from < n.columns; from += kLanes) {
    const int64_t count = std::min(kLanes, n.columns - from);
    A* w = b.w + from;
    A* h = b.h + from;
    for (int64_t i = 0; i < count; ++i) {
      h[i] *= rstd;
      b.grad_gamma[from + i] += w[i] * h[i];
      w[i] *= gamma[from + i];
    }
    products.v += LaneVector<A>(w, count).v * LaneVector<A>(h, count).v;
  }
  return products.fold();
}

// Row by row; each is read before any of it is written.
template <class T, class A = Compute<T>>
void sweep(const Call& call) {
  const RmsNormGrad<T> n = read<T>(call);
  Carver carver = call.workspace();
  const Scratch<A> b(carver, n.columns);
  const A* gamma = dense(n.gamma, b.gamma);
  std::fill_n(b.grad_gamma, n.columns, A(0));
  for (int64_t row = 0; row < n.rows; ++row) {
    const A mean = read_row(n, b, gamma, row) / static_cast<A>(n.columns);
    const A rstd = n.rstd(row);
    for (int64_t i = 0; i < n.columns; ++i) {
      b.w[i] = rstd * (b.w[i] - b.h[i] * mean);
    }
    if (n.add) {
      load(n.grad_residual_out.at(row), b.h);
      for (int64_t i = 0; i < n.columns; ++i) {
        b.w[i] = convert<A>(convert<T>(b.w[i])) + b.h[i];
      }
    }
    store(n.grad_x.at(row), b.w);
  }
  store(n.grad_gamma, b.grad_gamma);
}

// The intermediate tensors of the composition: [R, C], then [R], then [C].
template <class T, class A = Compute<T>>
struct Tensors {
  T* grad;
  A *g, *s, *h, *w, *product, *mean, *grad_gamma;

  Tensors(Carver& c, const RmsNormGrad<T>& n)
      : grad(c.take<T>(n.rows * n.columns)),
        g(c.take<A>(n.rows * n.columns)),
        s(c.take<A>(n.rows * n.columns)),
        h(c.take<A>(n.rows * n.columns)),
        w(c.take<A>(n.rows * n.columns)),
        product(c.take<A>(n.rows * n.columns)),
        mean(c.take<A>(n.rows)),
        grad_gamma(c.take<A>(n.columns)) {}
};

// h, w, grad_gamma and the means, each over its whole tensor.
template <class T, class A>
void undo_products(const RmsNormGrad<T>& n, const Tensors<T>& t) {
  const int64_t columns = n.columns;
  const int64_t all = n.rows * columns;
  for (int64_t i = 0; i < all; ++i) {
    t.g[i] = convert<A>(n.grad_y(i / columns, i % columns));
  }
  for (int64_t i = 0; i < all; ++i) {
    t.s[i] = convert<A>(n.s(i / columns, i % columns));
  }
  for (int64_t i = 0; i < all; ++i) {
    t.h[i] = t.s[i] * n.rstd(i / columns);
  }
  for (int64_t i = 0; i < all; ++i) {
    t.product[i] = t.g[i] * t.h[i];
  }
  for (int64_t c = 0; c < columns; ++c) {
    t.grad_gamma[c] = 0;
    for (int64_t row = 0; row < n.rows; ++row) {
      t.grad_gamma[c] += t.product[row * columns + c];
    }
  }
  for (int64_t i = 0; i < all; ++i) {
    t.w[i] = t.g[i] * convert<A>(n.gamma(i % columns));
  }
  for (int64_t i = 0; i < all; ++i) {
    t.product[i] = t.w[i] * t.h[i];
  }
  for (int64_t row = 0; row < n.rows; ++row) {
    const A* product = t.product + row * columns;
    t.mean[row] = lane_sum<A>(columns, [&](int64_t i) { return product[i]; }) / static_cast<A>(columns);
  }
}

// Inputs are read before any output is written, but for grad_residual_out: element by element, where grad_x may lie.
template <class T, class A = Compute<T>>
void compose(const Call& call) {
  const RmsNormGrad<T> n = read<T>(call);
  const int64_t columns = n.columns;
  const int64_t all = n.rows * columns;
  Carver carver = call.workspace();
  const Tensors<T> t(carver, n);
  undo_products<T, A>(n, t);
  for (int64_t i = 0; i < all; ++i) {
    t.product[i] = t.h[i] * t.mean[i / columns];
  }
  for (int64_t i = 0; i < all; ++i) {
    t.w[i] -= t.product[i];
  }
  for (int64_t i = 0; i < all; ++i) {
    t.grad[i] = convert<T>(n.rstd(i / columns) * t.w[i]);
  }
  for (int64_t i = 0; n.add && i < all; ++i) {
    t.grad[i] = convert<T>(convert<A>(t.grad[i]) + convert<A>(n.grad_residual_out(i / columns, i % columns)));
  }
  for (int64_t row = 0; row < n.rows; ++row) {
    store(n.grad_x.at(row), t.grad + row * columns);
  }
  store(n.grad_gamma, t.grad_gamma);
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

constinit const Operator kRmsNormGrad{
    "rms_norm_grad", kSchema, {{"fused", fused, fused_workspace}, {"unfused", unfused, unfused_workspace}}};

}  // namespace fusediff::builtin
