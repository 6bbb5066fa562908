// What planted rms_norms share: the call, and the steps of a row with the bits of the built-in paths. No fault stands
// here. A path loads s of a row, sums its squares in its own way, and finishes the row.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "builtin/lanes.h"
#include "planted/planted.h"

namespace fusediff::planted {

template <class T>
struct Norm {
  int64_t rows, columns;
  bool add;
  float eps;
  kit::View<const T, 2> x, residual;  // residual: false where there is none
  kit::View<const T, 1> gamma;
  kit::View<T, 2> residual_out, y;  // residual_out: false where not wanted
  kit::View<float, 1> rstd;         // false where not wanted
};

// REJECTED where shapes do not fit each other, C is 0, or the residual is there or not against add_residual.
template <class T>
Norm<T> read_norm(const kit::Call& call) {
  Norm<T> n{};
  n.x = call.input("x").view<const T, 2>();
  n.rows = n.x.shape[0];
  n.columns = n.x.shape[1];
  kit::require(n.columns >= 1, "x must have at least one column");
  n.add = call.flag("add_residual");
  n.eps = static_cast<float>(call.real("eps"));
  call.input("gamma").require_shape({n.columns});
  call.output("y").require_shape({n.rows, n.columns});
  call.output("rstd").require_shape({n.rows});
  if (n.add) {
    call.input("residual").require_shape({n.rows, n.columns});
    call.output("residual_out").require_shape({n.rows, n.columns});
    n.residual = call.input("residual").view<const T, 2>();
    n.residual_out = call.output("residual_out").optional_view<T, 2>();
  } else {
    kit::require(!call.input("residual").present(), "residual is given, but add_residual is false");
  }
  n.gamma = call.input("gamma").view<const T, 1>();
  n.y = call.output("y").view<T, 2>();
  n.rstd = call.output("rstd").optional_view<float, 1>();
  return n;
}

// to[C] = x + residual of a row, in f32.
template <class T>
void load_wide_sums(const Norm<T>& n, int64_t row, float* to) {
  kit::load(n.x.at(row), to);
  for (int64_t c = 0; n.add && c < n.columns; ++c) {
    to[c] += kit::convert<float>(n.residual(row, c));
  }
}

// s[C] = x + residual of a row, rounded to the dtype.
template <class T>
void load_sums(const Norm<T>& n, int64_t row, float* s) {
  load_wide_sums(n, row, s);
  for (int64_t c = 0; n.add && c < n.columns; ++c) {
    s[c] = kit::convert<float>(kit::convert<T>(s[c]));
  }
}

inline float sum_of_squares(const float* s, int64_t n) {
  return builtin::lane_sum<float>(n, [&](int64_t c) { return s[c] * s[c]; });
}

// Every output of a row; s is overwritten.
template <class T>
void finish_row(const Norm<T>& n, int64_t row, float* s, float squares) {
  const float rstd = 1 / std::sqrt(squares / static_cast<float>(n.columns) + n.eps);
  if (n.residual_out) {
    kit::store(n.residual_out.at(row), s);
  }
  if (n.rstd) {
    n.rstd(row) = rstd;
  }
  for (int64_t c = 0; c < n.columns; ++c) {
    s[c] = (s[c] * rstd) * kit::convert<float>(n.gamma(c));
  }
  kit::store(n.y.at(row), s);
}

// Calls f(Norm<T>) for the dtypes of the record.
template <class F>
void with_norm(const kit::Call& call, F&& f) {
  kit::by_dtype<float, kit::Half, kit::BFloat16, kit::F8E4M3, kit::F8E5M2>(
      call.input("x"), [&](auto type) { f(read_norm<typename decltype(type)::type>(call)); });
}

// A whole fused path: squares(n, row, s) is the sum of squares of a row whose s is loaded.
template <class F>
void run_norm(const kit::Call& call, F&& squares) {
  with_norm(call, [&](const auto& n) {
    std::vector<float> s(static_cast<size_t>(n.columns));
    for (int64_t row = 0; row < n.rows; ++row) {
      load_sums(n, row, s.data());
      finish_row(n, row, s.data(), squares(n, row, s.data()));
    }
  });
}

}  // namespace fusediff::planted
