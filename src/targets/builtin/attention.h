// What the paths of attention share: the call, read and checked once, and which keys a query sees. No arithmetic here.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kit/target.h"

namespace fusediff::builtin {

inline constexpr int64_t kKeyBlock = 32;  // part of the definition: where the running maximum is renewed

// T: dtype of q; A: to compute in, and of scores, lse and mask.
template <class T, class A = kit::Compute<T>>
struct Attention {
  int64_t batch, heads, queries, keys, width;
  kit::View<const T, 4> q, k, v;
  kit::View<const A, 2> mask;  // false: none
  A scale;
  bool causal;
  kit::View<A, 4> scores;  // false: not wanted
  kit::View<A, 3> lse;     // likewise
  kit::View<T, 4> out;

  // How many keys, from the first on, query i sees: with causal the last query sees all of them.
  int64_t seen_by(int64_t i) const { return causal ? std::clamp<int64_t>(i + 1 + keys - queries, 0, keys) : keys; }
  int64_t blocks() const { return (keys + kKeyBlock - 1) / kKeyBlock; }
};

// REJECTED where the shapes do not fit each other.
template <class T>
Attention<T> read_attention(const kit::Call& call) {
  using A = kit::Compute<T>;
  Attention<T> a{};
  a.q = call.input("q").view<const T, 4>();
  a.k = call.input("k").view<const T, 4>();
  a.batch = a.q.shape[0], a.heads = a.q.shape[1], a.queries = a.q.shape[2], a.width = a.q.shape[3];
  a.keys = a.k.shape[2];
  call.input("k").require_shape({a.batch, a.heads, a.keys, a.width});
  call.input("v").require_shape({a.batch, a.heads, a.keys, a.width});
  call.input("mask").require_shape({a.queries, a.keys});
  call.output("scores").require_shape({a.batch, a.heads, a.queries, a.keys});
  call.output("lse").require_shape({a.batch, a.heads, a.queries});
  call.output("out").require_shape({a.batch, a.heads, a.queries, a.width});
  a.v = call.input("v").view<const T, 4>();
  a.mask = call.input("mask").optional_view<const A, 2>();
  a.scale = static_cast<A>(call.real("scale"));
  a.causal = call.flag("causal");
  a.scores = call.output("scores").optional_view<A, 4>();
  a.lse = call.output("lse").optional_view<A, 3>();
  a.out = call.output("out").view<T, 4>();
  return a;
}

template <class F>
void by_attention_dtype(const kit::Call& call, F&& f) {
  kit::by_dtype<float, kit::Half, kit::BFloat16, kit::F8E4M3, kit::F8E5M2, double>(call.input("q"), f);
}

void run_attention_fused(const kit::Call& call);
size_t attention_fused_workspace(const kit::Call& call);
void run_attention_unfused(const kit::Call& call);
size_t attention_unfused_workspace(const kit::Call& call);

}  // namespace fusediff::builtin
