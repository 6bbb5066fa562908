// The operators add, sigmoid and moe_gating_topk on a Context.
#pragma once

#include "cuda/elementwise.h"
#include "cuda/gating_fused.h"
#include "cuda/gating_unfused.h"
#include "cuda/operators.h"

namespace fusediff::cuda {

template <class Context>
void run_add_fused(const kit::Call& call) {
  run_on<Context>(call, [&](auto& stream) {
    by_any_float(call.input("a"), [&](auto type) { add_fused<typename decltype(type)::type>(stream, call); });
  });
}

template <class Context>
void run_add_unfused(const kit::Call& call) {
  run_on<Context>(call, [&](auto& stream) {
    by_any_float(call.input("a"), [&](auto type) { add_unfused<typename decltype(type)::type>(stream, call); });
  });
}

template <class Context>
void run_sigmoid_fused(const kit::Call& call) {
  run_on<Context>(call, [&](auto& stream) {
    by_any_float(call.input("x"), [&](auto type) { sigmoid_fused<typename decltype(type)::type>(stream, call); });
  });
}

template <class Context>
void run_sigmoid_unfused(const kit::Call& call) {
  run_on<Context>(call, [&](auto& stream) {
    by_any_float(call.input("x"), [&](auto type) { sigmoid_unfused<typename decltype(type)::type>(stream, call); });
  });
}

inline size_t size_elementwise(const kit::Call& call) {
  size_t bytes = 0;
  by_any_float(call.output("y"),
               [&](auto type) { bytes = elementwise_workspace<typename decltype(type)::type>(call); });
  return bytes;
}

template <class F>
void by_score(const kit::Call& call, F&& f) {
  kit::by_dtype<float, kit::Half, kit::BFloat16, double>(call.input("x"), f);
}

template <class Context>
void run_gating_fused(const kit::Call& call) {
  run_on<Context>(call, [&](auto& stream) {
    by_score(call, [&](auto type) { gating_fused<typename decltype(type)::type>(stream, call); });
  });
}

template <class Context>
void run_gating_unfused(const kit::Call& call) {
  run_on<Context>(call, [&](auto& stream) {
    by_score(call, [&](auto type) { gating_unfused<typename decltype(type)::type>(stream, call); });
  });
}

inline size_t size_gating_unfused(const kit::Call& call) {
  size_t bytes = 0;
  by_score(call, [&](auto type) { bytes = gating_unfused_workspace<typename decltype(type)::type>(call); });
  return bytes;
}

template <class Context>
inline constexpr kit::Operator kAdd{
    "add",
    FUSEDIFF_CUDA_LIKE_BUILTIN("add"),
    {{"fused", run_add_fused<Context>}, {"unfused", run_add_unfused<Context>, size_elementwise}}};

template <class Context>
inline constexpr kit::Operator kSigmoid{
    "sigmoid",
    FUSEDIFF_CUDA_LIKE_BUILTIN("sigmoid"),
    {{"fused", run_sigmoid_fused<Context>}, {"unfused", run_sigmoid_unfused<Context>, size_elementwise}}};

template <class Context>
inline constexpr kit::Operator kMoeGatingTopk{
    "moe_gating_topk",
    FUSEDIFF_CUDA_LIKE_BUILTIN("moe_gating_topk"),
    {{"fused", run_gating_fused<Context>}, {"unfused", run_gating_unfused<Context>, size_gating_unfused}}};

}  // namespace fusediff::cuda
