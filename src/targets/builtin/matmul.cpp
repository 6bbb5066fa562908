// matmul: y = activation(x @ w + bias), with w as [K, N] or, transposed, as [N, K]. All of it in the compute type: the
// products of an element are added to +0 in the order of K, each rounded, then bias; y is rounded once from the
// activation of that sum, pre is the sum itself. silu(v) = v * sigmoid(v); gelu_tanh(v) = v * sigmoid(2 z) with
// z = sqrt(2 / pi) * (v + 0.044715 v^3), which is 0.5 v (1 + tanh(z)) (Hendrycks and Gimpel, arXiv 1606.08415).
#include <algorithm>
#include <utility>

#include "builtin/exponential.h"
#include "builtin/exponential_rows.h"
#include "builtin/operators.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr int64_t kRows = 8;      // a tile of the fused path: rows and columns of y,
constexpr int64_t kColumns = 64;  // in registers and nearest cache,
constexpr int64_t kDepth = 32;    // and how many of K it widens at once

constexpr char kSchema[] = R"({
  "name": "matmul",
  "paths": ["fused", "unfused"],
  "dims": {"M": {"range": [0, 64], "typical": [1, 2, 8, 16, 32]}, "N": {"range": [0, 128], "typical": [1, 8, 16, 64]},
           "K": {"range": [0, 256], "typical": [1, 8, 16, 32, 64, 128]}},
  "attrs": [
    {"name": "transposed", "bool": true, "default": false},
    {"name": "activation", "choice": ["none", "relu", "silu", "gelu_tanh"], "default": "none"}],
  "inputs": [
    {"name": "x",    "shape": ["M", "K"], "dtype": ["f32", "f16", "bf16", "f8e4m3fn", "f8e5m2"], "layout": "any"},
    {"name": "w",    "shape": ["K", "N"], "dtype": "=x", "layout": "any", "optional": true, "if": "transposed == 0"},
    {"name": "w_t",  "shape": ["N", "K"], "dtype": "=x", "layout": "any", "optional": true, "if": "transposed == 1"},
    {"name": "bias", "shape": ["N"], "dtype": "=x", "optional": true, "layout": "any"}],
  "outputs": [
    {"name": "pre", "shape": ["M", "N"], "dtype": "f32", "stage": 1, "optional": true, "layout": "any",
     "bound": {"ulp": "2 * K + 2", "of": "abs_inputs",
               "why": "S is the sum of absolute terms, bias among them. K products, each off by half a unit of a term, subnormal or not, and K additions, each by half a unit of a partial sum of at most S (1 + u)^(2 K) < 2 S: at most one ULP of S. A fused multiply-add leaves out roundings, another order adds none. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 4.2"}},
    {"name": "y", "shape": ["M", "N"], "dtype": "=x", "stage": 2, "layout": "any",
     "bound": {"ulp": {"f32": "(activation == 'silu' || activation == 'gelu_tanh') * (3 * K + 21) + 2 * K + 3",
                       "f16": "2 + (5 * K + 24) / 4096", "bf16": "2 + (5 * K + 24) / 32768",
                       "f8e4m3fn": "2 + (5 * K + 24) / 524288", "f8e5m2": "2 + (5 * K + 24) / 524288"}, "of": "abs_inputs",
               "why": "the bound of pre, and one for the last rounding; relu changes neither. silu and gelu_tanh have a slope of at most 1.13 and give at least half of a positive argument, so the scale is at least S / 2: 2.26 (2 K + 2) ULP from pre. Their own error is below 20 ULP: z has at most 8 roundings, which sigmoid turns into 8 u max |z| exp(-|z|) = 3 u of |v|, sigmoid or 1 + tanh two, the products two, all at most doubled by the scale. Narrow dtypes: half an ULP for the last rounding of at most the scale, and the rest in f32, whose ULP is 2^-13 (f16), 2^-16 (bf16) or at most 2^-20 (8 bits) of theirs"
}
}],
  "rows": {"dim": "M", "inputs": ["x"], "outputs": "all"}
})";

// The argument of sigmoid in gelu_tanh: 2 sqrt(2 / pi) (v + 0.044715 v^3).
template <class A>
A gelu_gate(A v) {
  return A(1.5957691216057308) * (v + A(0.044715) * (v * v * v));
}

enum class Activation { kNone, kRelu, kSilu, kGeluTanh };

Activation read_activation(const Call& call) {
  constexpr const char* kNames[] = {"none", "relu", "silu", "gelu_tanh"};
  for (int i = 0; i < 4; ++i) {
    if (call.text("activation") == kNames[i]) {
      return static_cast<Activation>(i);
    }
  }
  reject("activation must be none, relu, silu or gelu_tanh, not ", call.text("activation"));
}

// T: dtype of x; A: of the sums.
template <class T, class A = Compute<T>>
struct Matmul {
  View<const T, 2> x, w;  // w as [K, N], whatever its memory
  Row<const T> bias;      // false: none
  Activation activation;
  View<A, 2> pre;  // false: not wanted
  View<T, 2> y;

  int64_t rows() const { return x.shape[0]; }
  int64_t depth() const { return x.shape[1]; }
  int64_t columns() const { return w.shape[1]; }
};

// REJECTED where the shapes do not fit each other.
template <class T>
Matmul<T> read(const Call& call) {
  Matmul<T> m{};
  m.x = call.input("x").view<const T, 2>();
  m.activation = read_activation(call);
  m.y = call.output("y").view<T, 2>();
  const int64_t columns = m.y.shape[1];
  if (call.flag("transposed")) {
    call.input("w_t").require_shape({columns, m.depth()});
    m.w = call.input("w_t").view<const T, 2>();
    std::swap(m.w.shape[0], m.w.shape[1]);
    std::swap(m.w.stride[0], m.w.stride[1]);
  } else {
    call.input("w").require_shape({m.depth(), columns});
    m.w = call.input("w").view<const T, 2>();
  }
  call.input("bias").require_shape({columns});
  call.output("y").require_shape({m.rows(), columns});
  call.output("pre").require_shape({m.rows(), columns});
  m.bias = call.input("bias").optional_view<const T, 1>();
  m.pre = call.output("pre").optional_view<Compute<T>, 2>();
  return m;
}

template <class A>
struct Tile {
  alignas(64) A sum[kRows][kColumns];
  alignas(64) A w[kDepth][kColumns];
  alignas(64) A gate[kColumns];
};

// The products of one tile of y, from (row, column) on.
template <class T, class A>
void multiply_tile(const Matmul<T>& m, int64_t row, int64_t rows, int64_t column, int64_t columns, Tile<A>& t) {
  for (int64_t r = 0; r < rows; ++r) {
    std::fill_n(t.sum[r], columns, A(0));
  }
  for (int64_t from = 0; from < m.depth(); from += kDepth) {
    const int64_t depth = std::min(kDepth, m.depth() - from);
    for (int64_t k = 0; k < depth; ++k) {
      load(m.w.at(from + k).part(column, columns), t.w[k]);
    }
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t k = 0; k < depth; ++k) {
        const A x = convert<A>(m.x(row + r, from + k));
        for (int64_t c = 0; c < columns; ++c) {
          t.sum[r][c] += x * t.w[k][c];
        }
      }
    }
  }
}

// The activation of a row in its place; gate is as long.
template <class A>
void activate_row(Activation activation, A* v, A* gate, int64_t n) {
  if (activation == Activation::kNone) {
    return;
  }
  for (int64_t i = 0; i < n && activation == Activation::kRelu; ++i) {
    v[i] = v[i] < A(0) ? A(0) : v[i];
  }
  if (activation == Activation::kRelu) {
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    gate[i] = activation == Activation::kSilu ? v[i] : gelu_gate(v[i]);
  }
  sigmoid_row(gate, n);
  for (int64_t i = 0; i < n; ++i) {
    v[i] *= gate[i];
  }
}

template <class T, class A = Compute<T>>
void multiply_fused(const Call& call) {
  const Matmul<T> m = read<T>(call);
  Tile<A> tile;
  for (int64_t column = 0; column < m.columns(); column += kColumns) {
    const int64_t columns = std::min(kColumns, m.columns() - column);
    for (int64_t row = 0; row < m.rows(); row += kRows) {
      const int64_t rows = std::min(kRows, m.rows() - row);
      multiply_tile(m, row, rows, column, columns, tile);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; m.bias && c < columns; ++c) {
          tile.sum[r][c] += convert<A>(m.bias(column + c));
        }
        if (m.pre) {
          store(m.pre.at(row + r).part(column, columns), tile.sum[r]);
        }
        activate_row(m.activation, tile.sum[r], tile.gate, columns);
        store(m.y.at(row + r).part(column, columns), tile.sum[r]);
      }
    }
  }
}

// The tensors of the composition: x [M, K], w [N, K], the product [M, N] and bias [N], widened.
template <class A>
struct Buffers {
  A *x, *w, *sum, *bias;

  template <class T>
  Buffers(Carver& c, const Matmul<T>& m)
      : x(c.take<A>(m.rows() * m.depth())),
        w(c.take<A>(m.columns() * m.depth())),
        sum(c.take<A>(m.rows() * m.columns())),
        bias(c.take<A>(m.columns())) {}
};

// One element after another: a dot product each.
template <class A>
void products(const Buffers<A>& b, int64_t rows, int64_t columns, int64_t depth) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      A sum = 0;
      for (int64_t k = 0; k < depth; ++k) {
        sum += b.x[r * depth + k] * b.w[c * depth + k];
      }
      b.sum[r * columns + c] = sum;
    }
  }
}

template <class A>
A activated(Activation activation, A v) {
  switch (activation) {
    case Activation::kRelu:
      return v < A(0) ? A(0) : v;
    case Activation::kSilu:
      return v * sigmoid(v);
    case Activation::kGeluTanh:
      return v * sigmoid(gelu_gate(v));
    default:
      return v;
  }
}

// Matrix product, addition of bias, activation, cast: each over whole tensors.
template <class T, class A = Compute<T>>
void multiply_composed(const Call& call) {
  const Matmul<T> m = read<T>(call);
  Carver carver = call.workspace();
  const Buffers<A> b(carver, m);
  const int64_t rows = m.rows(), columns = m.columns(), depth = m.depth();
  for (int64_t r = 0; r < rows; ++r) {
    load(m.x.at(r), b.x + r * depth);
  }
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t k = 0; k < depth; ++k) {
      b.w[c * depth + k] = convert<A>(m.w(k, c));
    }
  }
  products(b, rows, columns, depth);
  if (m.bias) {
    load(m.bias, b.bias);
    for (int64_t i = 0; i < rows * columns; ++i) {
      b.sum[i] += b.bias[i % columns];
    }
  }
  for (int64_t r = 0; m.pre && r < rows; ++r) {
    store(m.pre.at(r), b.sum + r * columns);
  }
  for (int64_t i = 0; i < rows * columns; ++i) {
    b.sum[i] = activated(m.activation, b.sum[i]);
  }
  for (int64_t r = 0; r < rows; ++r) {
    store(m.y.at(r), b.sum + r * columns);
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
  by_float(call, [&](auto type) {
    using T = typename decltype(type)::type;
    Buffers<Compute<T>>(carver, read<T>(call));
  });
  return carver.bytes();
}

}  // namespace

constinit const Operator kMatmul{"matmul", kSchema, {{"fused", fused}, {"unfused", unfused, unfused_workspace}}};

}  // namespace fusediff::builtin
