// softmax_grad: grad_x = (grad_y - D) * y with D the sum over the row of grad_y * y as lanes.h, in the compute type,
// rounded once. It reads y as the forward stored it, and not x.
// The bounds are of the largest of grad_y, and of y, in the row: where the grad_y of a row are nearly equal all of
// grad_x cancels, and no output says how large the terms were.
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
     "bound": {"ulp": {"f32": "8 * C + 24", "f16": "16384 + 16 * C", "bf16": "131072 + 16 * C",
                       "f8e4m3fn": "2097152 + 32768 * C", "f8e5m2": "4194304 + 512 * C"},
               "by": "grad_y", "of": {"row_max_product": ["grad_y"]},
               "why": "G = max abs grad_y, v = 2^-24, u the unit roundoff and e the smallest subnormal of grad_y's dtype, d = max - x. The saved y differ from the truth's by a relative u + (3 C + 3 d + 12) v and by e / 2, and sum to 1; the mean of d weighted by y is at most log C <= C / 4 + 2: in all G (u + (4 C + 18) v + C e / 2). C products and C - 1 additions in any order add C v of G times the sum of y. Products of changes at most double it; one ULP is at least v of G. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 4.2"}},
    {"name": "grad_x", "shape": ["R", "C"], "dtype": "=grad_y", "stage": 2, "layout": "any",
     "bound": {"ulp": {"f32": "16 * C + 96", "f16": "13 + C / 256", "bf16": "13 + C / 2048", "f8e4m3fn": "13 + C / 8",
                       "f8e5m2": "13 + C / 2048"},
               "of": {"row_max_product": ["y", "grad_y"]},
               "why": "G and Y the largest abs grad_y and y, Y >= 1 / C; v, u, e as for dot. y is off by Y (u + (3 C + 13) v) + e / 2, grad_y - D by G (u + (5 C + 20) v + C e / 2) and is at most 2 G; subtraction and product 4 v, the last rounding 2 u, of Y G: Y G (5 u + (11 C + 60) v + 3 C e / 2). Products of changes at most double that where u > v; one ULP is at least u of the scale. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 4.2"}}],
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
