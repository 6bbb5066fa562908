// adam: one or several optimiser steps on a parameter and its two moments. Sources: Kingma and Ba, Adam (ICLR 2015),
// algorithm 1; Loshchilov and Hutter, Decoupled Weight Decay Regularization (ICLR 2019), algorithm 2. Step t, in the
// compute type, in this order:
//   g = grad; mode adam: g = g + weight_decay * p; mode adamw: p = p * (1 - lr * weight_decay)
//   m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * (g * g)
//   p = p - (lr / (1 - beta1^t)) * (m / (sqrt(v) / sqrt(1 - beta2^t) + eps))
// Without bias_correction the two divisors are 1. Scalars are computed in double and rounded once. After each step p is
// rounded to its dtype; m and v stay in the compute type, which is theirs. Every step sees the same gradient.
// param_out has no bound: p and the update may cancel, and where m is subnormal the update has no accurate digit.
#include <algorithm>
#include <cmath>

#include "builtin/operators.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr int64_t kTile = 64;
constexpr int64_t kMostSteps = 4;

constexpr char kSchema[] = R"({
  "name": "adam",
  "paths": ["fused", "unfused"],
  "dims": {"R": {"range": [0, 64], "typical": [1, 4, 16]}, "C": {"range": [0, 512], "typical": [1, 16, 64, 128, 256]}},
  "attrs": [
    {"name": "lr", "float": [1e-5, 1e-1], "scale": "log", "default": 1e-3},
    {"name": "beta1", "float": [0.5, 0.99], "default": 0.9, "also": [0.0]},
    {"name": "beta2", "float": [0.9, 0.9999], "default": 0.999, "also": [0.0]},
    {"name": "eps", "float": [1e-12, 1e-3], "scale": "log", "default": 1e-8},
    {"name": "weight_decay", "float": [1e-4, 0.3], "default": 0.0, "also": [0.0]},
    {"name": "mode", "choice": ["adam", "adamw"], "default": "adam"},
    {"name": "bias_correction", "bool": true, "default": true},
    {"name": "step", "int": [1, 1000], "default": 1},
    {"name": "steps", "int": [1, 4], "default": 1}],
  "where": ["step >= 1", "steps >= 1", "steps <= 4"],
  "inputs": [
    {"name": "param",      "shape": ["R", "C"], "dtype": ["f32", "f16", "bf16"], "layout": "any"},
    {"name": "grad",       "shape": ["R", "C"], "dtype": "=param", "layout": "any"},
    {"name": "exp_avg",    "shape": ["R", "C"], "dtype": "f32", "layout": "any"},
    {"name": "exp_avg_sq", "shape": ["R", "C"], "dtype": "f32", "role": "scale", "layout": "any"}],
  "outputs": [
    {"name": "exp_avg_out", "shape": ["R", "C"], "dtype": "f32", "stage": 1, "layout": "any",
     "bound": {"ulp": "8 * steps + (mode == 'adam' && steps > 1) * 1125899906842624", "of": "abs_inputs",
               "why": "S = beta1 |m| + (1 - beta1) (|grad| + weight_decay |p|). In a step each term meets at most six roundings, scalars included, or seven where it is written as an interpolation: 8 u S, and 8 units of the last place where terms are subnormal. Errors of earlier steps are multiplied by beta1, as S is. After Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1. No useful bound for several steps of mode adam: there the gradient follows the parameter, which may cancel"}},
    {"name": "exp_avg_sq_out", "shape": ["R", "C"], "dtype": "f32", "stage": 1, "layout": "any",
     "bound": {"ulp": "12 * steps + (mode == 'adam' && steps > 1) * 1125899906842624", "of": "abs_inputs",
               "why": "S = beta2 v + (1 - beta2) (|grad| + weight_decay |p|)^2. g has at most three roundings, its square six and its own, then two of scalar and product and one of the sum: 10 u S in a step, and less than 2 more of higher order or where terms are subnormal. As for exp_avg_out otherwise"}},
    {"name": "param_out", "shape": ["R", "C"], "dtype": "=param", "stage": 2, "layout": "any"}],
  "rows": {"dim": "R", "inputs": ["param", "grad", "exp_avg", "exp_avg_sq"], "outputs": "all"},
  "inplace": [["param_out", "param"], ["exp_avg_out", "exp_avg"], ["exp_avg_sq_out", "exp_avg_sq"]]
})";

// base to the power of a whole number >= 0, by squaring.
double power(double base, int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2) {
    result = exponent % 2 == 1 ? result * base : result;
    base *= base;
  }
  return result;
}

// The scalars of one step.
template <class A>
struct StepScalars {
  A step_size, root;  // lr / (1 - beta1^t), sqrt(1 - beta2^t)
};

// T: dtype of the parameter; A: of its state.
template <class T, class A = Compute<T>>
struct Adam {
  View<const T, 2> param, grad;
  View<const A, 2> exp_avg, exp_avg_sq;
  View<T, 2> param_out;
  View<A, 2> exp_avg_out, exp_avg_sq_out;
  bool in_gradient;  // weight decay: in the gradient, or of the parameter
  A beta1, rest1, beta2, rest2, eps, weight_decay, keep;
  int64_t steps;
  StepScalars<A> of_step[kMostSteps];

  int64_t rows() const { return param.shape[0]; }
  int64_t columns() const { return param.shape[1]; }
};

template <class T, class A>
void read_scalars(const Call& call, Adam<T, A>& a) {
  const double lr = call.real("lr"), beta1 = call.real("beta1"), beta2 = call.real("beta2");
  a.in_gradient = call.text("mode") == "adam";
  require(a.in_gradient || call.text("mode") == "adamw", "mode must be adam or adamw");
  a.beta1 = static_cast<A>(beta1);
  a.rest1 = static_cast<A>(1 - beta1);
  a.beta2 = static_cast<A>(beta2);
  a.rest2 = static_cast<A>(1 - beta2);
  a.eps = static_cast<A>(call.real("eps"));
  a.weight_decay = static_cast<A>(call.real("weight_decay"));
  a.keep = static_cast<A>(1 - lr * call.real("weight_decay"));
  a.steps = call.integer("steps");
  const int64_t first = call.integer("step");
  require(first >= 1, "step must be at least 1, not ", first);
  require(a.steps >= 1 && a.steps <= kMostSteps, "steps must be 1 to 4, not ", a.steps);
  const bool corrected = call.flag("bias_correction");
  for (int64_t s = 0; s < a.steps; ++s) {
    const double first_moment = corrected ? 1 - power(beta1, first + s) : 1;
    const double second_moment = corrected ? 1 - power(beta2, first + s) : 1;
    a.of_step[s] = {static_cast<A>(lr / first_moment), static_cast<A>(std::sqrt(second_moment))};
  }
}

// REJECTED where the shapes do not fit each other.
template <class T>
Adam<T> read(const Call& call) {
  using A = Compute<T>;
  Adam<T> a{};
  a.param = call.input("param").view<const T, 2>();
  for (const char* name : {"grad", "exp_avg", "exp_avg_sq"}) {
    call.input(name).require_shape({a.rows(), a.columns()});
  }
  for (const char* name : {"param_out", "exp_avg_out", "exp_avg_sq_out"}) {
    call.output(name).require_shape({a.rows(), a.columns()});
  }
  a.grad = call.input("grad").view<const T, 2>();
  a.exp_avg = call.input("exp_avg").view<const A, 2>();
  a.exp_avg_sq = call.input("exp_avg_sq").view<const A, 2>();
  a.param_out = call.output("param_out").view<T, 2>();
  a.exp_avg_out = call.output("exp_avg_out").view<A, 2>();
  a.exp_avg_sq_out = call.output("exp_avg_sq_out").view<A, 2>();
  read_scalars(call, a);
  return a;
}

// One tile of a row in registers, through all steps.
template <class A>
struct Tile {
  A p[kTile], g[kTile], m[kTile], v[kTile];
};

template <class T, class A>
void step_tile(const Adam<T, A>& a, const StepScalars<A>& s, Tile<A>& t, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const A g = a.in_gradient ? t.g[i] + a.weight_decay * t.p[i] : t.g[i];
    const A p = a.in_gradient ? t.p[i] : t.p[i] * a.keep;
    t.m[i] = a.beta1 * t.m[i] + a.rest1 * g;
    t.v[i] = a.beta2 * t.v[i] + a.rest2 * (g * g);
    t.p[i] = p - s.step_size * (t.m[i] / (std::sqrt(t.v[i]) / s.root + a.eps));
  }
  for (int64_t i = 0; i < n; ++i) {
    t.p[i] = convert<A>(convert<T>(t.p[i]));
  }
}

template <class T>
void update_tiles(const Call& call) {
  const Adam<T> a = read<T>(call);
  Tile<Compute<T>> tile;
  for (int64_t r = 0; r < a.rows(); ++r) {
    for (int64_t from = 0; from < a.columns(); from += kTile) {
      const int64_t n = std::min(kTile, a.columns() - from);
      load(a.param.at(r).part(from, n), tile.p);
      load(a.grad.at(r).part(from, n), tile.g);
      load(a.exp_avg.at(r).part(from, n), tile.m);
      load(a.exp_avg_sq.at(r).part(from, n), tile.v);
      for (int64_t s = 0; s < a.steps; ++s) {
        step_tile(a, a.of_step[s], tile, n);
      }
      store(a.exp_avg_out.at(r).part(from, n), tile.m);
      store(a.exp_avg_sq_out.at(r).part(from, n), tile.v);
      store(a.param_out.at(r).part(from, n), tile.p);
    }
  }
}

// The tensors of the composition, [R * C].
template <class A>
struct Buffers {
  A *p, *g, *m, *v, *step;

  Buffers(Carver& c, int64_t count)
      : p(c.take<A>(count)), g(c.take<A>(count)), m(c.take<A>(count)), v(c.take<A>(count)), step(c.take<A>(count)) {}
};

// to = to * by, and to = to * by + other * weight, over whole tensors.
template <class A>
void scale(A* to, A by, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    to[i] *= by;
  }
}

template <class A>
void add_weighted(A* to, const A* other, A weight, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const A term = weight * other[i];
    to[i] += term;
  }
}

// One step as a list of small operators; b.g keeps the gradient itself.
template <class T, class A>
void compose_step(const Adam<T, A>& a, const StepScalars<A>& s, const Buffers<A>& b, int64_t n) {
  std::copy_n(b.g, n, b.step);
  if (a.in_gradient) {
    add_weighted(b.step, b.p, a.weight_decay, n);
  } else {
    scale(b.p, a.keep, n);
  }
  scale(b.m, a.beta1, n);
  add_weighted(b.m, b.step, a.rest1, n);
  scale(b.v, a.beta2, n);
  for (int64_t i = 0; i < n; ++i) {
    b.step[i] *= b.step[i];
  }
  add_weighted(b.v, b.step, a.rest2, n);
  for (int64_t i = 0; i < n; ++i) {
    b.step[i] = std::sqrt(b.v[i]);
  }
  for (int64_t i = 0; i < n; ++i) {
    b.step[i] /= s.root;
  }
  for (int64_t i = 0; i < n; ++i) {
    b.step[i] += a.eps;
  }
  for (int64_t i = 0; i < n; ++i) {
    b.step[i] = b.m[i] / b.step[i];
  }
  scale(b.step, s.step_size, n);
  for (int64_t i = 0; i < n; ++i) {
    b.p[i] = convert<A>(convert<T>(b.p[i] - b.step[i]));
  }
}

template <class T>
void update_composed(const Call& call) {
  const Adam<T> a = read<T>(call);
  const int64_t columns = a.columns();
  Carver carver = call.workspace();
  const Buffers<Compute<T>> b(carver, a.rows() * columns);
  for (int64_t r = 0; r < a.rows(); ++r) {
    load(a.param.at(r), b.p + r * columns);
    load(a.grad.at(r), b.g + r * columns);
    load(a.exp_avg.at(r), b.m + r * columns);
    load(a.exp_avg_sq.at(r), b.v + r * columns);
  }
  for (int64_t s = 0; s < a.steps; ++s) {
    compose_step(a, a.of_step[s], b, a.rows() * columns);
  }
  for (int64_t r = 0; r < a.rows(); ++r) {
    store(a.exp_avg_out.at(r), b.m + r * columns);
    store(a.exp_avg_sq_out.at(r), b.v + r * columns);
    store(a.param_out.at(r), b.p + r * columns);
  }
}

void fused(const Call& call) {
  by_dtype<float, Half, BFloat16, double>(call.input("param"),
                                          [&](auto type) { update_tiles<typename decltype(type)::type>(call); });
}

void unfused(const Call& call) {
  by_dtype<float, Half, BFloat16, double>(call.input("param"),
                                          [&](auto type) { update_composed<typename decltype(type)::type>(call); });
}

size_t unfused_workspace(const Call& call) {
  Carver carver;
  by_dtype<float, Half, BFloat16, double>(call.input("param"), [&](auto type) {
    Buffers<Compute<typename decltype(type)::type>>(carver, call.input("param").count());
  });
  return carver.bytes();
}

}  // namespace

constinit const Operator kAdam{"adam", kSchema, {{"fused", fused}, {"unfused", unfused, unfused_workspace}}};

}  // namespace fusediff::builtin
