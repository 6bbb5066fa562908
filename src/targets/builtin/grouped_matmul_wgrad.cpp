// grouped_matmul_wgrad: the gradient of the weight of each expert, grad_w[e] = x_e^T @ grad_y_e over the tokens of that
// expert, which stand one expert behind the other, counts[e] each; with `into`, added to what stands there, as a main
// gradient is accumulated. In the compute type, which is the dtype of grad_w: products are added to +0 in the order of
// tokens, each rounded, then the sum to `into`. An expert without tokens has a gradient of zeros.
#include <algorithm>
#include <vector>

#include "builtin/operators.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr int64_t kTile = 64;  // columns of grad_w in registers

constexpr char kSchema[] = R"({
  "name": "grouped_matmul_wgrad",
  "paths": ["fused", "unfused"],
  "dims": {"T": {"range": [0, 128], "typical": [1, 8, 16, 64]}, "E": {"range": [1, 16], "typical": [1, 2, 4, 8]},
           "K": {"range": [1, 64], "typical": [1, 8, 16, 32]}, "N": {"range": [1, 128], "typical": [1, 8, 16, 64]}},
  "where": ["E >= 1"],
  "inputs": [
    {"name": "x",      "shape": ["T", "K"], "dtype": ["f32", "f16", "bf16", "f8e4m3fn", "f8e5m2"], "layout": "any"},
    {"name": "grad_y", "shape": ["T", "N"], "dtype": "=x", "role": "cotangent", "layout": "any"},
    {"name": "counts", "shape": ["E"], "dtype": ["i32", "i64"], "role": "counts", "sum": "T", "layout": "any"},
    {"name": "into",   "shape": ["E", "K", "N"], "dtype": "f32", "optional": true, "layout": "any"}],
  "outputs": [
    {"name": "grad_w", "shape": ["E", "K", "N"], "dtype": "f32", "stage": 1, "layout": "any",
     "bound": {"ulp": "2 * T + 2", "of": "abs_inputs",
               "why": "S is the sum of absolute terms, into among them. At most T products, each off by half a unit of a term, subnormal or not, and T additions, each by half a unit of a partial sum of at most S (1 + u)^(2 T) < 2 S: at most one ULP of S. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 4.2"}}],
  "rows": {"dim": "K", "inputs": ["x", "into"], "outputs": "all"},
  "inplace": [["grad_w", "into"]]
})";

// T: dtype of x; A: of grad_w.
template <class T, class A = Compute<T>>
struct Wgrad {
  View<const T, 2> x, grad_y;
  std::vector<int64_t> first;  // [E + 1]: first token of each expert, then the number of tokens
  View<const A, 3> into;       // false: none
  View<A, 3> grad_w;

  int64_t experts() const { return grad_w.shape[0]; }
  int64_t rows() const { return grad_w.shape[1]; }
  int64_t columns() const { return grad_w.shape[2]; }
};

// First tokens by the counts. REJECTED where these do not add up to `tokens`.
std::vector<int64_t> read_first(const Call& call, int64_t tokens) {
  std::vector<int64_t> first{0};
  by_dtype<int32_t, int64_t>(call.input("counts"), [&](auto type) {
    const auto counts = call.input("counts").view<const typename decltype(type)::type, 1>();
    for (int64_t e = 0; e < counts.shape[0]; ++e) {
      const int64_t count = counts(e);
      require(count >= 0 && count <= tokens - first.back(), "counts[", e, "] is ", count, ", left are ",
              tokens - first.back(), " tokens");
      first.push_back(first.back() + count);
    }
  });
  require(first.back() == tokens, "counts add up to ", first.back(), ", not to ", tokens);
  return first;
}

// REJECTED where the shapes do not fit each other.
template <class T>
Wgrad<T> read(const Call& call) {
  Wgrad<T> g{};
  g.x = call.input("x").view<const T, 2>();
  g.grad_y = call.input("grad_y").view<const T, 2>();
  require(g.grad_y.shape[0] == g.x.shape[0], "x and grad_y differ in their number of tokens");
  g.first = read_first(call, g.x.shape[0]);
  const int64_t experts = static_cast<int64_t>(g.first.size()) - 1;
  require(experts >= 1, "counts must name at least one expert");
  call.output("grad_w").require_shape({experts, g.x.shape[1], g.grad_y.shape[1]});
  call.input("into").require_shape({experts, g.x.shape[1], g.grad_y.shape[1]});
  g.into = call.input("into").optional_view<const Compute<T>, 3>();
  g.grad_w = call.output("grad_w").view<Compute<T>, 3>();
  return g;
}

// Row by row of grad_w, a tile of columns in registers while the tokens of the expert pass by.
template <class T, class A = Compute<T>>
void multiply_fused(const Call& call) {
  const Wgrad<T> g = read<T>(call);
  A sum[kTile];
  A grad[kTile];
  for (int64_t e = 0; e < g.experts(); ++e) {
    for (int64_t k = 0; k < g.rows(); ++k) {
      for (int64_t from = 0; from < g.columns(); from += kTile) {
        const int64_t n = std::min(kTile, g.columns() - from);
        std::fill_n(sum, n, A(0));
        const size_t expert = static_cast<size_t>(e);
        for (int64_t t = g.first[expert]; t < g.first[expert + 1]; ++t) {
          const A x = convert<A>(g.x(t, k));
          load(g.grad_y.at(t).part(from, n), grad);
          for (int64_t i = 0; i < n; ++i) {
            sum[i] += x * grad[i];
          }
        }
        for (int64_t i = 0; g.into && i < n; ++i) {
          sum[i] = g.into(e, k, from + i) + sum[i];
        }
        store(g.grad_w.at(e, k).part(from, n), sum);
      }
    }
  }
}

// The tensors of the composition: one token of each, widened, and the gradients [E, K, N].
template <class A>
struct Buffers {
  A *x, *grad_y, *grad_w;

  Buffers(Carver& c, int64_t experts, int64_t rows, int64_t columns)
      : x(c.take<A>(rows)), grad_y(c.take<A>(columns)), grad_w(c.take<A>(experts * rows * columns)) {}
};

// Zeros, then the outer product of each token added to the slab of its expert, then the addition to `into`.
template <class T, class A = Compute<T>>
void multiply_composed(const Call& call) {
  const Wgrad<T> g = read<T>(call);
  const int64_t rows = g.rows(), columns = g.columns();
  Carver carver = call.workspace();
  const Buffers<A> b(carver, g.experts(), rows, columns);
  std::fill_n(b.grad_w, g.experts() * rows * columns, A(0));
  int64_t expert = 0;
  for (int64_t t = 0; t < g.x.shape[0]; ++t) {
    while (t >= g.first[static_cast<size_t>(expert) + 1]) {
      ++expert;
    }
    load(g.x.at(t), b.x);
    load(g.grad_y.at(t), b.grad_y);
    A* slab = b.grad_w + expert * rows * columns;
    for (int64_t at = 0; at < rows * columns; ++at) {
      slab[at] += b.x[at / columns] * b.grad_y[at % columns];
    }
  }
  for (int64_t row = 0; row < g.experts() * rows; ++row) {
    A* sums = b.grad_w + row * columns;
    for (int64_t c = 0; g.into && c < columns; ++c) {
      sums[c] = g.into(row / rows, row % rows, c) + sums[c];
    }
    store(g.grad_w.at(row / rows, row % rows), sums);
  }
}

template <class F>
void by_float(const Call& call, F&& f) {
  by_dtype<float, Half, BFloat16, F8E4M3, F8E5M2, double>(call.input("x"), f);
}

void fused(const Call& call) {
  by_float(call, [&](auto type) { multiply_fused<typename decltype(type)::type>(call); });
}

void unfused(const Call& call) {
  by_float(call, [&](auto type) { multiply_composed<typename decltype(type)::type>(call); });
}

size_t unfused_workspace(const Call& call) {
  Carver carver;
  const Tensor grad_w = call.output("grad_w");
  require(grad_w.rank() == 3, "grad_w has rank ", grad_w.rank(), ", not 3");
  by_float(call, [&](auto type) {
    using A = Compute<typename decltype(type)::type>;
    Buffers<A>(carver, grad_w.size(0), grad_w.size(1), grad_w.size(2));
  });
  return carver.bytes();
}

}  // namespace

constinit const Operator kGroupedMatmulWgrad{
    "grouped_matmul_wgrad", kSchema, {{"fused", fused}, {"unfused", unfused, unfused_workspace}}};

}  // namespace fusediff::builtin
