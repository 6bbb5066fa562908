// mhc_pre_sinkhorn and its gradient on a Context.
#pragma once

#include "cuda/mhc_fused.h"
#include "cuda/mhc_grad_fused.h"
#include "cuda/mhc_grad_unfused.h"
#include "cuda/mhc_unfused.h"
#include "cuda/operators.h"

namespace fusediff::cuda {

template <class F>
void by_stream_dtype(const kit::Call& call, F&& f) {
  kit::by_dtype<kit::BFloat16, kit::Half, double>(call.input("x"), f);
}

template <class Context>
void run_mhc_fused(const kit::Call& call) {
  run_on<Context>(call, [&](auto& stream) {
    by_stream_dtype(call, [&](auto type) { mhc_fused<typename decltype(type)::type>(stream, call); });
  });
}

template <class Context>
void run_mhc_unfused(const kit::Call& call) {
  run_on<Context>(call, [&](auto& stream) {
    by_stream_dtype(call, [&](auto type) { mhc_unfused<typename decltype(type)::type>(stream, call); });
  });
}

inline size_t size_mhc_unfused(const kit::Call& call) {
  size_t bytes = 0;
  by_stream_dtype(call, [&](auto type) { bytes = mhc_unfused_workspace<typename decltype(type)::type>(call); });
  return bytes;
}

template <class Context>
void run_mhc_grad_fused(const kit::Call& call) {
  run_on<Context>(call, [&](auto& stream) {
    by_stream_dtype(call, [&](auto type) { mhc_grad_fused<typename decltype(type)::type>(stream, call); });
  });
}

inline size_t size_mhc_grad_fused(const kit::Call& call) {
  size_t bytes = 0;
  by_stream_dtype(call, [&](auto type) { bytes = mhc_grad_fused_workspace<typename decltype(type)::type>(call); });
  return bytes;
}

template <class Context>
void run_mhc_grad_unfused(const kit::Call& call) {
  run_on<Context>(call, [&](auto& stream) {
    by_stream_dtype(call, [&](auto type) { mhc_grad_unfused<typename decltype(type)::type>(stream, call); });
  });
}

inline size_t size_mhc_grad_unfused(const kit::Call& call) {
  size_t bytes = 0;
  by_stream_dtype(call, [&](auto type) { bytes = mhc_grad_unfused_workspace<typename decltype(type)::type>(call); });
  return bytes;
}

template <class Context>
inline constexpr kit::Operator kMhcPreSinkhorn{
    "mhc_pre_sinkhorn",
    FUSEDIFF_CUDA_LIKE_BUILTIN("mhc_pre_sinkhorn"),
    {{"fused", run_mhc_fused<Context>}, {"unfused", run_mhc_unfused<Context>, size_mhc_unfused}}};

template <class Context>
inline constexpr kit::Operator kMhcPreSinkhornGrad{"mhc_pre_sinkhorn_grad",
                                                   FUSEDIFF_CUDA_LIKE_BUILTIN("mhc_pre_sinkhorn_grad"),
                                                   {{"fused", run_mhc_grad_fused<Context>, size_mhc_grad_fused},
                                                    {"unfused", run_mhc_grad_unfused<Context>, size_mhc_grad_unfused}}};

}  // namespace fusediff::cuda
