// softmax over the last dimension: y = exp(x - max) / sum of exp(x - max), everything in the compute type, y rounded
// once. max is the largest of the row, NaN if one is there, +0 for a zero of either sign, -inf of no columns; the sum
// is as lanes.h. So a row with a NaN, with +inf, or of nothing but -inf is NaN, as in torch.
#include <algorithm>
#include <limits>

#include "builtin/any_float.h"
#include "builtin/exponential.h"
#include "builtin/exponential_rows.h"
#include "builtin/lanes.h"
#include "builtin/operators.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "softmax",
  "paths": ["fused", "unfused"],
  "dims": {"R": {"range": [0, 64], "typical": [1, 2, 4, 8, 16]},
           "C": {"range": [0, 1024], "typical": [1, 8, 16, 64, 100, 128, 256, 512]}},
  "inputs": [
    {"name": "x", "shape": ["R", "C"], "dtype": ["f32", "f16", "bf16", "f8e4m3fn", "f8e5m2"], "role": "score",
     "layout": "any"}],
  "outputs": [
    {"name": "max", "shape": ["R"], "dtype": "=x", "stage": 1, "optional": true, "layout": "any",
     "bound": {"ulp": "0", "of": "element", "why": "one of the inputs, not rounded"}},
    {"name": "sum", "shape": ["R"], "dtype": "f32", "stage": 2, "optional": true, "layout": "any",
     "bound": {"ulp": "3 * C + 8", "of": "element",
               "why": "v = 2^-24, d = max - x. One rounding of d, and two more where exp is written as 2^(d log2 e), change exp(-d) by a relative 3 d v, at most 1.2 v of the largest term, 1; exp itself 4 v; C - 1 additions of positive terms in any order (C - 1) v. Terms below the normal range are off by 2^-149 each. One ULP is at least v of the value. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 4.2"}},
    {"name": "y", "shape": ["R", "C"], "dtype": "=x", "stage": 3, "layout": "any",
     "always": [{"range": [0, 1.00000095367431640625]},
                {"row_sums": 1, "within": 0.19, "if": "C >= 1 && C <= 128"}],
     "bound": {"ulp": {"f32": "4 * C + 16", "f16": "2 + C / 1024", "bf16": "2 + C / 8192", "f8e4m3fn": "2", "f8e5m2": "2"},
               "of": "row_max",
               "why": "v = 2^-24, d = max - x, u >= v the unit roundoff of the dtype. exp(-d) is off by 1.2 v + 4 v of the row's largest, the sum by (3 C + 5) v of itself, the quotient, or a rounded reciprocal and a product, by 2 v, the last rounding by u, in the subnormal range half an ULP: u + (3 C + 13) v, and v is 2^-13 u in f16, 2^-16 u in bf16, 2^-20 u or less in 8 bits (C <= 2^17). One ULP is at least u of the value. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 4.2. Row sums up to 128 columns: the last rounding moves them by at most u <= 2^-3 (f8e5m2) or, where elements are subnormal, 2^-4 + 128 * 2^-10 (f8e4m3fn), what comes before by less than 2^-12"}}],
  "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"},
  "inplace": [["y", "x"]]
})";

template <class T>
struct Softmax {
  View<const T, 2> x;
  View<T, 1> max;           // false where not wanted
  View<Compute<T>, 1> sum;  // false where not wanted
  View<T, 2> y;
};

// REJECTED where the shapes do not fit each other.
template <class T>
Softmax<T> read(const Call& call) {
  Softmax<T> s{};
  s.x = call.input("x").view<const T, 2>();
  call.output("max").require_shape({s.x.shape[0]});
  call.output("sum").require_shape({s.x.shape[0]});
  call.output("y").require_shape({s.x.shape[0], s.x.shape[1]});
  s.max = call.output("max").optional_view<T, 1>();
  s.sum = call.output("sum").optional_view<Compute<T>, 1>();
  s.y = call.output("y").view<T, 2>();
  return s;
}

// The larger of two; NaN if one is.
template <class A>
A larger(A a, A b) {
  return b > a || b != b ? b : a;
}

// Of a dense row, in lanes: no order gives another result.
template <class A>
A largest(const A* row, int64_t n) {
  A lanes[kLanes];
  std::fill_n(lanes, kLanes, -std::numeric_limits<A>::infinity());
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) {
      lanes[l] = larger(lanes[l], row[i + l]);
    }
  }
  for (; i < n; ++i) {
    lanes[0] = larger(lanes[0], row[i]);
  }
  for (int64_t l = 1; l < kLanes; ++l) {
    lanes[0] = larger(lanes[0], lanes[l]);
  }
  return lanes[0] + A(0);
}

// Row by row; each is read before any of it is written.
template <class T, class A = Compute<T>>
void sweep(const Call& call) {
  const Softmax<T> s = read<T>(call);
  const int64_t columns = s.x.shape[1];
  A* row = call.workspace().take<A>(columns);
  for (int64_t r = 0; r < s.x.shape[0]; ++r) {
    load(s.x.at(r), row);
    const A max = largest(row, columns);
    for (int64_t i = 0; i < columns; ++i) {
      row[i] -= max;
    }
    exp_row(row, columns);
    LaneVector<A> lanes;
    for (int64_t i = 0; i < columns; i += kLanes) {
      lanes.v += LaneVector<A>(row + i, std::min(kLanes, columns - i)).v;
    }
    const A sum = lanes.fold();
    for (int64_t i = 0; i < columns; ++i) {
      row[i] /= sum;
    }
    store(s.y.at(r), row);
    if (s.max) {
      s.max(r) = convert<T>(max);
    }
    if (s.sum) {
      s.sum(r) = sum;
    }
  }
}

// The intermediate tensors of the composition: [R, C], then [R].
template <class A>
struct Tensors {
  A *shifted, *max, *sum;

  Tensors(Carver& c, int64_t rows, int64_t columns)
      : shifted(c.take<A>(rows * columns)), max(c.take<A>(rows)), sum(c.take<A>(rows)) {}
};

// amax, sub, exp, sum, div: each over its whole tensor; x is read to its end before anything is written.
template <class T, class A = Compute<T>>
void compose(const Call& call) {
  const Softmax<T> s = read<T>(call);
  const int64_t rows = s.x.shape[0];
  const int64_t columns = s.x.shape[1];
  Carver carver = call.workspace();
  const Tensors<A> t(carver, rows, columns);
  for (int64_t r = 0; r < rows; ++r) {
    t.max[r] = -std::numeric_limits<A>::infinity();
    for (int64_t i = 0; i < columns; ++i) {
      t.max[r] = larger(t.max[r], convert<A>(s.x(r, i)));
    }
    t.max[r] += A(0);
  }
  for (int64_t i = 0; i < rows * columns; ++i) {
    t.shifted[i] = convert<A>(s.x(i / columns, i % columns)) - t.max[i / columns];
  }
  for (int64_t i = 0; i < rows * columns; ++i) {
    t.shifted[i] = exp(t.shifted[i]);
  }
  for (int64_t r = 0; r < rows; ++r) {
    const A* row = t.shifted + r * columns;
    t.sum[r] = lane_sum<A>(columns, [&](int64_t i) { return row[i]; });
  }
  for (int64_t i = 0; i < rows * columns; ++i) {
    s.y(i / columns, i % columns) = convert<T>(t.shifted[i] / t.sum[i / columns]);
  }
  store(s.max, t.max);
  store(s.sum, t.sum);
}

void fused(const Call& call) {
  by_any_float(call.input("x"), [&](auto type) { sweep<typename decltype(type)::type>(call); });
}

size_t fused_workspace(const Call& call) {
  return workspace_by_any_float(call.input("x"), [&](auto type, Carver& carver) {
    using T = typename decltype(type)::type;
    carver.take<Compute<T>>(read<T>(call).x.shape[1]);
  });
}

void unfused(const Call& call) {
  by_any_float(call.input("x"), [&](auto type) { compose<typename decltype(type)::type>(call); });
}

size_t unfused_workspace(const Call& call) {
  return workspace_by_any_float(call.input("x"), [&](auto type, Carver& carver) {
    using T = typename decltype(type)::type;
    const Softmax<T> s = read<T>(call);
    Tensors<Compute<T>>(carver, s.x.shape[0], s.x.shape[1]);
  });
}

}  // namespace

constinit const Operator kSoftmax{
    "softmax", kSchema, {{"fused", fused, fused_workspace}, {"unfused", unfused, unfused_workspace}}};

}  // namespace fusediff::builtin
