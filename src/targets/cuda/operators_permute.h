// The moe_permute family on a Context.
#pragma once

#include "cuda/operators.h"
#include "cuda/permute.h"
#include "cuda/unpermute.h"
#include "cuda/unpermute_grad.h"

namespace fusediff::cuda {

template <class Context>
void run_permute_fused(const kit::Call& call) {
  run_on<Context>(call, [&](auto& stream) {
    by_any_float(call.input("tokens"), [&](auto type) { permute_fused<typename decltype(type)::type>(stream, call); });
  });
}

template <class Context>
void run_permute_unfused(const kit::Call& call) {
  run_on<Context>(call, [&](auto& stream) {
    by_any_float(call.input("tokens"),
                 [&](auto type) { permute_unfused<typename decltype(type)::type>(stream, call); });
  });
}

template <class Context>
void run_permute_grad_fused(const kit::Call& call) {
  run_on<Context>(call, [&](auto& stream) {
    by_any_float(call.input("grad_out"), [&](auto type) {
      using T = typename decltype(type)::type;
      sum_fused<T>(stream, call, read_permute_grad<T>(call));
    });
  });
}

template <class Context>
void run_permute_grad_unfused(const kit::Call& call) {
  run_on<Context>(call, [&](auto& stream) {
    by_any_float(call.input("grad_out"), [&](auto type) {
      using T = typename decltype(type)::type;
      sum_unfused<T>(stream, call, read_permute_grad<T>(call));
    });
  });
}

inline size_t size_permute_grad_unfused(const kit::Call& call) {
  size_t bytes = 0;
  by_any_float(call.input("grad_out"), [&](auto type) {
    using T = typename decltype(type)::type;
    bytes = sum_unfused_workspace<T>(read_permute_grad<T>(call));
  });
  return bytes;
}

template <class Context>
void run_unpermute_fused(const kit::Call& call) {
  run_on<Context>(call, [&](auto& stream) {
    by_any_float(call.input("in"), [&](auto type) {
      using T = typename decltype(type)::type;
      sum_fused<T>(stream, call, read_unpermute<T>(call));
    });
  });
}

template <class Context>
void run_unpermute_unfused(const kit::Call& call) {
  run_on<Context>(call, [&](auto& stream) {
    by_any_float(call.input("in"), [&](auto type) {
      using T = typename decltype(type)::type;
      sum_unfused<T>(stream, call, read_unpermute<T>(call));
    });
  });
}

inline size_t size_unpermute_unfused(const kit::Call& call) {
  size_t bytes = 0;
  by_any_float(call.input("in"), [&](auto type) {
    using T = typename decltype(type)::type;
    bytes = sum_unfused_workspace<T>(read_unpermute<T>(call));
  });
  return bytes;
}

template <class Context>
void run_unpermute_grad_fused(const kit::Call& call) {
  run_on<Context>(call, [&](auto& stream) {
    by_any_float(call.input("in"),
                 [&](auto type) { unpermute_grad_fused<typename decltype(type)::type>(stream, call); });
  });
}

template <class Context>
void run_unpermute_grad_unfused(const kit::Call& call) {
  run_on<Context>(call, [&](auto& stream) {
    by_any_float(call.input("in"),
                 [&](auto type) { unpermute_grad_unfused<typename decltype(type)::type>(stream, call); });
  });
}

template <bool kFused>
size_t size_unpermute_grad(const kit::Call& call) {
  size_t bytes = 0;
  by_any_float(call.input("in"),
               [&](auto type) { bytes = unpermute_grad_workspace<typename decltype(type)::type>(call, kFused); });
  return bytes;
}

template <class Context>
inline constexpr kit::Operator kMoePermute{
    "moe_permute",
    FUSEDIFF_CUDA_LIKE_BUILTIN("moe_permute"),
    {{"fused", run_permute_fused<Context>}, {"unfused", run_permute_unfused<Context>, permute_unfused_workspace}}};

template <class Context>
inline constexpr kit::Operator kMoePermuteGrad{
    "moe_permute_grad",
    FUSEDIFF_CUDA_LIKE_BUILTIN("moe_permute_grad"),
    {{"fused", run_permute_grad_fused<Context>, sum_fused_workspace},
     {"unfused", run_permute_grad_unfused<Context>, size_permute_grad_unfused}}};

template <class Context>
inline constexpr kit::Operator kMoeUnpermute{"moe_unpermute",
                                             FUSEDIFF_CUDA_LIKE_BUILTIN("moe_unpermute"),
                                             {{"fused", run_unpermute_fused<Context>, sum_fused_workspace},
                                              {"unfused", run_unpermute_unfused<Context>, size_unpermute_unfused}}};

template <class Context>
inline constexpr kit::Operator kMoeUnpermuteGrad{
    "moe_unpermute_grad",
    FUSEDIFF_CUDA_LIKE_BUILTIN("moe_unpermute_grad"),
    {{"fused", run_unpermute_grad_fused<Context>, size_unpermute_grad<true>},
     {"unfused", run_unpermute_grad_unfused<Context>, size_unpermute_grad<false>}}};

}  // namespace fusediff::cuda
