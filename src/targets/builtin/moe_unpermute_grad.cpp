// moe_unpermute_grad: grad_in of a row is its probability times the gradient of its token; grad_probs of a pick is the
// dot product of that gradient with its row, in f32 in the order of lanes.h, and zero where the pick was cut off.
// There is no sum over picks, so no attribute `compute`. Source: Transformer Engine moe_unpermute, backward.
#include <algorithm>
#include <vector>

#include "builtin/lanes.h"
#include "builtin/operators.h"
#include "builtin/row_map.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "moe_unpermute_grad",
  "paths": ["fused", "unfused"],
  "dims": {"T": {"range": [0, 128], "typical": [1, 2, 8, 16, 64]},
           "H": {"range": [1, 512], "typical": [1, 8, 16, 32, 64, 128, 256]},
           "K": {"range": [1, 8], "typical": [1, 2, 4, 8]}, "E": {"range": [1, 64], "typical": [4, 8, 16, 64]},
           "N": {"range": [0, 1024]}},
  "where": ["K >= 1", "K <= 128", "K <= E", "N <= T * K"],
  "given": [
    {"name": "tokens",  "shape": ["T", "H"], "dtype": "=grad_out"},
    {"name": "indices", "shape": ["T", "K"], "dtype": "i32", "role": "index", "range": [0, "E - 1"],
     "distinct": true}],
  "inputs": [
    {"name": "grad_out", "shape": ["T", "H"], "dtype": ["f32", "f16", "bf16", "f8e5m2", "f8e4m3fn"],
     "role": "cotangent", "layout": "any"},
    {"name": "in", "shape": ["N", "H"], "dtype": "=grad_out", "layout": "any"},
    {"name": "row_id_map", "shape": ["K", "T"], "dtype": "i32", "role": "saved", "layout": "any",
     "saved": {"op": "moe_permute", "output": "row_id_map", "inputs": {"tokens": "tokens", "indices": "indices"}}},
    {"name": "probs", "shape": ["T", "K"], "dtype": "f32", "role": "probability", "optional": true, "layout": "any"}],
  "outputs": [
    {"name": "grad_in", "shape": ["N", "H"], "dtype": "=grad_out", "stage": 1, "layout": "any",
     "bound": {"ulp": "1", "of": "element",
               "why": "one f32 product, rounded once more into a narrow dtype: half a unit and at most 2^-8 of one"}},
    {"name": "grad_probs", "shape": ["T", "K"], "dtype": "f32", "stage": 1, "optional": true, "layout": "any",
     "bound": {"ulp": "2 * H", "of": "abs_inputs",
               "why": "S is the sum of absolute terms. H products and H - 1 additions in f32, in any order: each rounds by half a unit of a term or a partial sum, which is at most S (1 + u)^H < 2 S, so by at most one ULP of S. After Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 4.2"}}],
  "gradient": {"of": "moe_unpermute", "wrt": {"grad_in": "in", "grad_probs": "probs"},
               "cotangents": {"grad_out": "out"}}
})";

template <class T>
struct UnpermuteGrad {
  View<const T, 2> grad_out, in;
  RowMap map;
  Probs<T> probs;
  View<T, 2> grad_in;
  View<Compute<T>, 2> grad_probs;  // false: not wanted
};

// REJECTED where the shapes do not fit each other.
template <class T>
UnpermuteGrad<T> read(const Call& call) {
  UnpermuteGrad<T> g{};
  g.grad_out = call.input("grad_out").view<const T, 2>();
  g.in = call.input("in").view<const T, 2>();
  require(g.in.shape[1] == g.grad_out.shape[1], "in and grad_out differ in their last dimension");
  g.map = read_row_map(call, g.grad_out.shape[0], g.in.shape[0]);
  g.probs = read_probs<T>(call, g.grad_out.shape[0], g.map.shape[0]);
  call.output("grad_in").require_shape({g.in.shape[0], g.in.shape[1]});
  call.output("grad_probs").require_shape({g.grad_out.shape[0], g.map.shape[0]});
  g.grad_in = call.output("grad_in").view<T, 2>();
  g.grad_probs = call.output("grad_probs").optional_view<Compute<T>, 2>();
  return g;
}

// Which rows the map reaches, one byte a row, and what a gradient row and an input row need as dense memory.
template <class T>
struct Scratch {
  uint8_t* reached;
  Compute<T>*gradient, *row, *product;
  size_t bytes;
  Scratch(Carver carver, int64_t rows, int64_t columns)
      : reached(carver.take<uint8_t>(rows)),
        gradient(carver.take<Compute<T>>(columns)),
        row(carver.take<Compute<T>>(columns)),
        product(carver.take<Compute<T>>(columns)),
        bytes(carver.bytes()) {}
};

size_t fused_workspace(const Call& call) {
  size_t bytes = 0;
  by_dtype<float, Half, BFloat16, double, F8E4M3, F8E5M2>(call.input("in"), [&](auto type) {
    bytes = Scratch<typename decltype(type)::type>(Carver(), call.input("in").size(0), call.input("in").size(1)).bytes;
  });
  return bytes;
}

// Rows that no pick names get zeros. REJECTED where two picks name one row.
template <class T>
void clear_unreached(const UnpermuteGrad<T>& g, const Scratch<T>& s) {
  std::fill_n(s.reached, g.in.shape[0], uint8_t{0});
  for (int64_t k = 0; k < g.map.shape[0]; ++k) {
    for (int64_t t = 0; t < g.map.shape[1]; ++t) {
      const int64_t row = g.map(k, t);
      if (row >= 0) {
        require(s.reached[row] == 0, "row_id_map names row ", row, " twice");
        s.reached[row] = 1;
      }
    }
  }
  for (int64_t row = 0; row < g.in.shape[0]; ++row) {
    for (int64_t h = 0; s.reached[row] == 0 && h < g.in.shape[1]; ++h) {
      g.grad_in(row, h) = T{};
    }
  }
}

template <class A>
A dot(const A* a, const A* b, int64_t n) {
  LaneVector<A> sums;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    sums.v += LaneVector<A>(a + i).v * LaneVector<A>(b + i).v;
  }
  sums.v += LaneVector<A>(a + i, n - i).v * LaneVector<A>(b + i, n - i).v;
  return sums.fold();
}

// Token by token: its gradient is read once and serves all its picks.
template <class T>
void gradients_fused(const Call& call) {
  const UnpermuteGrad<T> g = read<T>(call);
  const int64_t columns = g.in.shape[1];
  const Scratch<T> s(call.workspace(), g.in.shape[0], columns);
  clear_unreached(g, s);
  for (int64_t t = 0; t < g.grad_out.shape[0]; ++t) {
    const Compute<T>* gradient = dense(g.grad_out.at(t), s.gradient);
    for (int64_t k = 0; k < g.map.shape[0]; ++k) {
      const int64_t row = g.map(k, t);
      if (g.grad_probs) {
        g.grad_probs(t, k) = row < 0 ? 0 : dot(gradient, dense(g.in.at(row), s.row), columns);
      }
      if (row < 0) {
        continue;
      }
      const Compute<T> weight = g.probs ? g.probs(t, k) : Compute<T>{1};
      for (int64_t h = 0; h < columns; ++h) {
        s.product[h] = weight * gradient[h];
      }
      store(g.grad_in.at(row), s.product);
    }
  }
}

// Zeros, then for each pick index_copy of the weighted gradients; gather, multiply and sum over columns for probs.
template <class T>
void gradients_unfused(const Call& call) {
  const UnpermuteGrad<T> g = read<T>(call);
  const int64_t columns = g.in.shape[1];
  for (int64_t row = 0; row < g.in.shape[0]; ++row) {
    for (int64_t h = 0; h < columns; ++h) {
      g.grad_in(row, h) = T{};
    }
  }
  std::vector<Compute<T>> products(static_cast<size_t>(columns));
  for (int64_t k = 0; k < g.map.shape[0]; ++k) {
    for (int64_t t = 0; t < g.map.shape[1]; ++t) {
      const int64_t row = g.map(k, t);
      for (int64_t h = 0; row >= 0 && h < columns; ++h) {
        const Compute<T> gradient = convert<Compute<T>>(g.grad_out(t, h));
        g.grad_in(row, h) = convert<T>(g.probs ? g.probs(t, k) * gradient : gradient);
        products[static_cast<size_t>(h)] = gradient * convert<Compute<T>>(g.in(row, h));
      }
      if (g.grad_probs) {
        const auto term = [&](int64_t h) { return products[static_cast<size_t>(h)]; };
        g.grad_probs(t, k) = row < 0 ? 0 : lane_sum<Compute<T>>(columns, term);
      }
    }
  }
}

void fused(const Call& call) {
  by_dtype<float, Half, BFloat16, double, F8E4M3, F8E5M2>(
      call.input("in"), [&](auto type) { gradients_fused<typename decltype(type)::type>(call); });
}

void unfused(const Call& call) {
  by_dtype<float, Half, BFloat16, double, F8E4M3, F8E5M2>(
      call.input("in"), [&](auto type) { gradients_unfused<typename decltype(type)::type>(call); });
}

}  // namespace

constinit const Operator kMoeUnpermuteGrad{
    "moe_unpermute_grad", kSchema, {{"fused", fused, fused_workspace}, {"unfused", unfused}}};

}  // namespace fusediff::builtin
