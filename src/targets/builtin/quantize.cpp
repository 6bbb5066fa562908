// quantize: to fp8 (e4m3, e5m2) or int8 with one scale for each block of B along a row, symmetric: scale = amax / most,
// where most is the largest number of the format (448, 57344, 127) and amax the largest magnitude of the block;
// q = x / scale, beyond +-most taken as that, rounded once, to nearest even. B >= C is one scale a row. A block whose
// amax is below 2^-110, zeros above all, has scale 1 (amax / most would lose digits). NaN is no magnitude: it stays NaN
// in fp8 and becomes 0 in int8; a block with an infinity has an infinite scale. All in the compute type, which is the
// dtype of scale. In f64 the formats differ by `most` alone: q is then what would be rounded.
// Source of the formats: OCP 8-bit Floating Point Specification, saturating mode.
#include <algorithm>
#include <type_traits>

#include "builtin/operators.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr int64_t kTile = 64;
constexpr double kLeastMagnitude = 0x1p-110;

constexpr char kSchema[] = R"({
  "name": "quantize",
  "paths": ["fused", "unfused"],
  "dims": {"R": {"range": [0, 64], "typical": [1, 4, 16]}, "C": {"range": [0, 512], "typical": [1, 16, 64, 128, 256]},
           "B": {"range": [1, 1024], "typical": [16, 32, 64, 128, 1024]}},
  "attrs": [{"name": "block", "int": "B"}, {"name": "format", "choice": ["e4m3", "e5m2", "int8"], "default": "e4m3"}],
  "where": ["B >= 1"],
  "inputs": [{"name": "x", "shape": ["R", "C"], "dtype": ["f32", "f16", "bf16"], "layout": "any"}],
  "outputs": [
    {"name": "scale", "shape": ["R", "(C + B - 1) / B"], "dtype": "f32", "stage": 1, "layout": "any",
     "always": [{"finite_if_inputs_finite": true}],
     "bound": {"ulp": "2", "of": "element",
               "why": "amax is exact. One division, half a unit; or a product with 1 / most rounded, two roundings, each at most one unit after a change of binade"}},
    {"name": "q_e4m3", "shape": ["R", "C"], "dtype": "f8e4m3fn", "stage": 2, "layout": "any", "if": "format == 'e4m3'",
     "always": [{"finite_if_inputs_finite": true}],
     "bound": {"ulp": "1", "of": "element",
               "why": "x / scale by at most five f32 roundings (two of scale, two of its reciprocal, one product): 5 u, below 2^-17 of a unit of 8-bit numbers; then half a unit to nearest. Where the binade differs, both neighbours of the edge are within one"}},
    {"name": "q_e5m2", "shape": ["R", "C"], "dtype": "f8e5m2", "stage": 2, "layout": "any", "if": "format == 'e5m2'",
     "always": [{"finite_if_inputs_finite": true}],
     "bound": {"ulp": "1", "of": "element", "why": "as q_e4m3"}},
    {"name": "q_int8", "shape": ["R", "C"], "dtype": "i8", "stage": 2, "layout": "any", "if": "format == 'int8'",
     "always": [{"range": [-127, 127]}]}],
  "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"}
})";

// T: dtype of x; Q: of the numbers it becomes; A: to compute in, and of scale.
template <class T, class Q, class A = Compute<T>>
struct Quantize {
  View<const T, 2> x;
  View<A, 2> scale;
  View<Q, 2> q;
  int64_t block;
  A most;

  int64_t rows() const { return x.shape[0]; }
  int64_t columns() const { return x.shape[1]; }
  int64_t blocks() const { return (x.shape[1] + block - 1) / block; }
};

// `value`, at most `most` in magnitude or NaN, as a Q.
template <class Q, class A>
Q rounded(A value) {
  if constexpr (std::is_same_v<Q, int8_t>) {
    constexpr A kToInteger = sizeof(A) == 8 ? A(0x1.8p52) : A(0x1.8p23);  // no fraction is left behind the sum
    const A number = value == value ? value : A(0);
    return static_cast<int8_t>((number + kToInteger) - kToInteger);
  } else {
    return convert<Q>(value);
  }
}

template <class A>
A saturated(A value, A most) {
  const A below = value > most ? most : value;
  return below < -most ? -most : below;
}

template <class A>
A scale_of(A amax, A most) {
  return amax < A(kLeastMagnitude) ? A(1) : amax / most;
}

template <class T, class Q>
Quantize<T, Q> read(const Call& call, const char* output, double most) {
  Quantize<T, Q> z{};
  z.x = call.input("x").view<const T, 2>();
  z.block = call.integer("block");
  require(z.block >= 1, "block must be at least 1, not ", z.block);
  call.output("scale").require_shape({z.rows(), z.blocks()});
  call.output(output).require_shape({z.rows(), z.columns()});
  z.scale = call.output("scale").view<Compute<T>, 2>();
  z.q = call.output(output).view<Q, 2>();
  z.most = static_cast<Compute<T>>(most);
  return z;
}

// Block by block: the magnitude, then the numbers, a tile at a time.
template <class T, class Q>
void quantize_fused(const Quantize<T, Q>& z) {
  using A = Compute<T>;
  A tile[kTile];
  Q out[kTile];
  for (int64_t r = 0; r < z.rows(); ++r) {
    for (int64_t b = 0; b < z.blocks(); ++b) {
      const int64_t end = std::min(z.columns(), (b + 1) * z.block);
      A amax = 0;
      for (int64_t from = b * z.block; from < end; from += kTile) {
        const int64_t n = std::min(kTile, end - from);
        load(z.x.at(r).part(from, n), tile);
        for (int64_t i = 0; i < n; ++i) {
          const A magnitude = tile[i] < A(0) ? -tile[i] : tile[i];
          amax = magnitude > amax ? magnitude : amax;
        }
      }
      const A scale = scale_of(amax, z.most);
      z.scale(r, b) = scale;
      for (int64_t from = b * z.block; from < end; from += kTile) {
        const int64_t n = std::min(kTile, end - from);
        load(z.x.at(r).part(from, n), tile);
        for (int64_t i = 0; i < n; ++i) {
          out[i] = rounded<Q>(saturated(tile[i] / scale, z.most));
        }
        store(z.q.at(r).part(from, n), out);
      }
    }
  }
}

// The tensors of the composition: x [R, C], magnitudes [R, C], scales [R, blocks].
template <class A>
struct Buffers {
  A *x, *magnitude, *scale;

  Buffers(Carver& c, int64_t count, int64_t scales)
      : x(c.take<A>(count)), magnitude(c.take<A>(count)), scale(c.take<A>(scales)) {}
};

// abs, amax over blocks, division by the largest number, division by the scales, clamp, cast: each over whole tensors.
template <class T, class Q>
void quantize_composed(const Quantize<T, Q>& z, Carver carver) {
  using A = Compute<T>;
  const int64_t columns = z.columns(), blocks = z.blocks(), count = z.rows() * columns;
  const Buffers<A> b(carver, count, z.rows() * blocks);
  for (int64_t r = 0; r < z.rows(); ++r) {
    load(z.x.at(r), b.x + r * columns);
  }
  for (int64_t i = 0; i < count; ++i) {
    b.magnitude[i] = b.x[i] < A(0) ? -b.x[i] : b.x[i];
  }
  std::fill_n(b.scale, z.rows() * blocks, A(0));
  for (int64_t i = 0; i < count; ++i) {
    A& amax = b.scale[i / columns * blocks + i % columns / z.block];
    amax = b.magnitude[i] > amax ? b.magnitude[i] : amax;
  }
  for (int64_t i = 0; i < z.rows() * blocks; ++i) {
    b.scale[i] = scale_of(b.scale[i], z.most);
  }
  for (int64_t i = 0; i < count; ++i) {
    b.x[i] /= b.scale[i / columns * blocks + i % columns / z.block];
  }
  for (int64_t i = 0; i < count; ++i) {
    b.x[i] = saturated(b.x[i], z.most);
  }
  for (int64_t r = 0; r < z.rows(); ++r) {
    store(z.scale.at(r), b.scale + r * blocks);
    for (int64_t c = 0; c < columns; ++c) {
      z.q(r, c) = rounded<Q>(b.x[r * columns + c]);
    }
  }
}

// Calls f with the call, read; Narrow is the format's type, in place of which the f64 run has double.
template <class Format, class T, class F>
void read_format(const Call& call, const char* output, double most, F&& f) {
  using Q = std::conditional_t<std::is_same_v<T, double> && !std::is_same_v<Format, int8_t>, double, Format>;
  f(read<T, Q>(call, output, most));
}

template <class F>
void by_dtypes(const Call& call, F&& f) {
  const std::string_view format = call.text("format");
  by_dtype<float, Half, BFloat16, double>(call.input("x"), [&](auto type) {
    using T = typename decltype(type)::type;
    if (format == "e4m3") {
      read_format<F8E4M3, T>(call, "q_e4m3", 448, f);
    } else if (format == "e5m2") {
      read_format<F8E5M2, T>(call, "q_e5m2", 57344, f);
    } else {
      require(format == "int8", "format must be e4m3, e5m2 or int8, not ", format);
      read_format<int8_t, T>(call, "q_int8", 127, f);
    }
  });
}

void fused(const Call& call) {
  by_dtypes(call, [&](const auto& z) { quantize_fused(z); });
}

void unfused(const Call& call) {
  by_dtypes(call, [&](const auto& z) { quantize_composed(z, call.workspace()); });
}

size_t unfused_workspace(const Call& call) {
  Carver carver;
  by_dtypes(call, [&](const auto& z) {
    Buffers<std::remove_cv_t<decltype(z.most)>>(carver, z.rows() * z.columns(), z.rows() * z.blocks());
  });
  return carver.bytes();
}

}  // namespace

constinit const Operator kQuantize{"quantize", kSchema, {{"fused", fused}, {"unfused", unfused, unfused_workspace}}};

}  // namespace fusediff::builtin
