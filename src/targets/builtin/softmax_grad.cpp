// softmax_grad: grad_x = (grad_y - D) * y with D the sum over the row of grad_y * y as lanes.h, in the compute type,
// rounded once. It reads y as the forward stored it, and not x.
// The record states no bound for grad_x. With u the unit roundoff of the dtype and v <= u that of f32, y in the normal
// range is off by a relative r = u + (C + 3 d + 12) v, d = max - x < 104; so grad_x by 2 r + (C + 4) v of
// y * (|grad_y| + sum of |grad_y| * y), and u for the last rounding: less than 3 C + 680 units u of that row's sum
// (after Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 4.2), which tests hold. But
// where the grad_y of a row are nearly equal all of it cancels: no scale made of the outputs is in proportion.
#include <algorithm>

#include "builtin/any_float.h"
#include "builtin/lanes.h"
#include "builtin/operators.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "softmax_grad",
  "paths": ["fused", "unfused"],
  "dims": {"R": {"range": [0, 64], "typical": [1, 2, 4, 8, 16]},
           "C": {"range": [1, 1024], "typical": [2, 8, 16, 64, 100, 128, 256, 512]}},
  "given": [{"name": "x", "shape": ["R", "C"], "dtype": "=grad_y", "role": "score"}],
  "inputs": [
    {"name": "grad_y", "shape": ["R", "C"], "dtype": ["f32", "f16", "bf16", "f8e4m3fn", "f8e5m2"],
     "role": "cotangent", "layout": "any"},
    {"name": "y", "shape": ["R", "C"], "dtype": "=grad_y", "role": "saved", "layout": "any",
     "saved": {"op": "softmax", "output": "y", "inputs": {"x": "x"}}}],
  "outputs": [
    {"name": "dot", "shape": ["R"], "dtype": "f32", "stage": 1, "optional": true, "layout": "any",
     "bound": {"ulp": "16777216 + 4 * C", "of": "abs_inputs",
               "why": "S is the sum of abs grad_y * y. C products and C - 1 additions in f32, in any order: C v of S, v = 2^-24. The truth has y without the rounding to its dtype: u <= 2^-3 of each term (f8e5m2), 2^21 v, and up to half of it below the normal range, which in 8-bit dtypes begins at 1 / 64: 2^23 v, at most doubled by what S itself is off. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1. Not where a y that is rounded to 0 carries the sum: that one is off by all of itself"}},
    {"name": "grad_x", "shape": ["R", "C"], "dtype": "=grad_y", "stage": 2, "layout": "any"}],
  "rows": {"dim": "R", "inputs": ["grad_y", "y", "x"], "outputs": "all"},
  "inplace": [["grad_x", "grad_y"], ["grad_x", "y"]],
  "gradient": {"of": "softmax", "wrt": {"grad_x": "x"}, "cotangents": {"grad_y": "y"}}
})";

template <class T>
struct SoftmaxGrad {
  View<const T, 2> grad_y, y;
  View<Compute<T>, 1> dot;  // false where not wanted
  View<T, 2> grad_x;
};

// REJECTED where the shapes do not fit each other.
template <class T>
SoftmaxGrad<T> read(const Call& call) {
  SoftmaxGrad<T> s{};
  s.grad_y = call.input("grad_y").view<const T, 2>();
  call.input("y").require_shape({s.grad_y.shape[0], s.grad_y.shape[1]});
  call.output("dot").require_shape({s.grad_y.shape[0]});
  call.output("grad_x").require_shape({s.grad_y.shape[0], s.grad_y.shape[1]});
  s.y = call.input("y").view<const T, 2>();
  s.dot = call.output("dot").optional_view<Compute<T>, 1>();
  s.grad_x = call.output("grad_x").view<T, 2>();
  return s;
}

template <class A>
struct Scratch {
  A *grad, *y;  // [C]

  Scratch(Carver& c, int64_t columns) : grad(c.take<A>(columns)), y(c.take<A>(columns)) {}
};

// Row by row; each is read before any of it is written.
template <class T, class A = Compute<T>>
void sweep(const Call& call) {
  const SoftmaxGrad<T> s = read<T>(call);
  const int64_t columns = s.grad_y.shape[1];
  Carver carver = call.workspace();
  const Scratch<A> b(carver, columns);
  for (int64_t r = 0; r < s.grad_y.shape[0]; ++r) {
    load(s.grad_y.at(r), b.grad);
    load(s.y.at(r), b.y);
    LaneVector<A> lanes;
    for (int64_t i = 0; i < columns; i += kLanes) {
      const int64_t n = std::min(kLanes, columns - i);
      lanes.v += LaneVector<A>(b.grad + i, n).v * LaneVector<A>(b.y + i, n).v;
    }
    const A dot = lanes.fold();
    for (int64_t i = 0; i < columns; ++i) {
      b.grad[i] = (b.grad[i] - dot) * b.y[i];
    }
    store(s.grad_x.at(r), b.grad);
    if (s.dot) {
      s.dot(r) = dot;
    }
  }
}

// The intermediate tensors of the composition: [R, C], then [R].
template <class A>
struct Tensors {
  A *grad, *y, *product, *dot;

  Tensors(Carver& c, int64_t rows, int64_t columns)
      : grad(c.take<A>(rows * columns)),
        y(c.take<A>(rows * columns)),
        product(c.take<A>(rows * columns)),
        dot(c.take<A>(rows)) {}
};

// To f32, mul, sum, sub, mul, to the dtype: each over its whole tensor.
template <class T, class A = Compute<T>>
void compose(const Call& call) {
  const SoftmaxGrad<T> s = read<T>(call);
  const int64_t rows = s.grad_y.shape[0];
  const int64_t columns = s.grad_y.shape[1];
  Carver carver = call.workspace();
  const Tensors<A> t(carver, rows, columns);
  for (int64_t i = 0; i < rows * columns; ++i) {
    t.grad[i] = convert<A>(s.grad_y(i / columns, i % columns));
  }
  for (int64_t i = 0; i < rows * columns; ++i) {
    t.y[i] = convert<A>(s.y(i / columns, i % columns));
  }
  for (int64_t i = 0; i < rows * columns; ++i) {
    t.product[i] = t.grad[i] * t.y[i];
  }
  for (int64_t r = 0; r < rows; ++r) {
    const A* row = t.product + r * columns;
    t.dot[r] = lane_sum<A>(columns, [&](int64_t i) { return row[i]; });
  }
  for (int64_t i = 0; i < rows * columns; ++i) {
    t.grad[i] -= t.dot[i / columns];
  }
  for (int64_t i = 0; i < rows * columns; ++i) {
    s.grad_x(i / columns, i % columns) = convert<T>(t.grad[i] * t.y[i]);
  }
  store(s.dot, t.dot);
}

void fused(const Call& call) {
  by_any_float(call.input("grad_y"), [&](auto type) { sweep<typename decltype(type)::type>(call); });
}

size_t fused_workspace(const Call& call) {
  return workspace_by_any_float(call.input("grad_y"), [&](auto type, Carver& carver) {
    using T = typename decltype(type)::type;
    Scratch<Compute<T>>(carver, read<T>(call).grad_y.shape[1]);
  });
}

void unfused(const Call& call) {
  by_any_float(call.input("grad_y"), [&](auto type) { compose<typename decltype(type)::type>(call); });
}

size_t unfused_workspace(const Call& call) {
  return workspace_by_any_float(call.input("grad_y"), [&](auto type, Carver& carver) {
    using T = typename decltype(type)::type;
    const SoftmaxGrad<T> s = read<T>(call);
    Tensors<Compute<T>>(carver, s.grad_y.shape[0], s.grad_y.shape[1]);
  });
}

}  // namespace

constinit const Operator kSoftmaxGrad{
    "softmax_grad", kSchema, {{"fused", fused, fused_workspace}, {"unfused", unfused, unfused_workspace}}};

}  // namespace fusediff::builtin
